"""An agent of LangChain's `create_agent` that follows its guidelines, with its own prompt, tools and middleware.

The matcher and the reviser are the offline model. It cannot call tools, so a script plays the agent's own model;
put a chat model in the place of both.

pip install "arq_graph[middleware]"
python examples/middleware_agent.py
"""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.messages import AIMessage, ToolCall
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, ScriptedChatModel
from arq_graph.middleware import GuidelineMiddleware


def find_bike(station: str) -> str:
    """Tell which bike is free at a station.

    Args:
        station: The name of the station, like Harbour.
    """
    return f"bike B-7 is free at {station}"


def rent_bike(bike: str) -> str:
    """Rent a bike.

    Args:
        bike: The number of the bike, like B-7.
    """
    return f"{bike} is rented"


def opening_hours() -> str:
    """Tell when the shop is open: a tool of the app's own, which no guideline has to grant."""
    return "9 to 18"


SHOP = Agent(
    name="Bike shop",
    profile="You are the desk of a bike shop.",
    guidelines=[
        Guideline("the customer asks for a free bike", "tell which bike is free", tools=[find_bike]),
        Guideline("the customer wants to rent a bike", "rent the bike", tools=[rent_bike]),
        Guideline(None, "always be brief", continuous=True),
    ],
    confirm={"rent_bike": "customer"},
)


def call(tool: str, **args: str) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name=tool, args=args, id=f"call-{tool}")])


SCRIPT: list[str | AIMessage] = [
    call("find_bike", station="Harbour"),
    "Bike B-7 is free at Harbour.",
    call("rent_bike", bike="B-7"),  # waits for the customer's yes; code makes it then
    "Bike B-7 is rented.",
]


def build(own: Any, ours: Any = "offline") -> Any:
    """The app: `own` is the agent's model, `ours` matches and revises."""
    return create_agent(
        own,
        tools=[opening_hours],
        system_prompt="Answer in English.",
        middleware=[TodoListMiddleware(), GuidelineMiddleware(ours, SHOP)],
        checkpointer=MemorySaver(),
    )


TURNS = ["Is there a free bike at Harbour?", "I want to rent the bike B-7.", "Yes, please."]

if __name__ == "__main__":
    app = build(ScriptedChatModel(SCRIPT))
    for text in TURNS:
        print("customer:", text)
        state = app.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "1"}})
        print("agent:   ", state["messages"][-1].text)
