"""The same nodes in a LangGraph app that is already there: its router and its sub-agent stay as they are.

python examples/drop_in_nodes.py
"""

from __future__ import annotations

from typing import Literal

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph

from arq_graph import Agent, Guideline
from arq_graph.nodes import GuidelineMatcher, MessageReviser, ToolCaller, guarded_tools, route_calls

Day = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def opening_hours(day: Day) -> str:
    """Tell when the library is open.

    Args:
        day: The day of the week.
    """
    return "closed" if day == "Sunday" else "9 to 18"


LIBRARY = Agent(
    name="Library desk",
    profile="You are the desk of the city library.",
    guidelines=[
        Guideline("the customer asks when you are open", "tell the opening hours", tools=[opening_hours]),
        Guideline(None, "always be brief"),
    ],
)


def route(state: MessagesState) -> str:
    """The app's own router: loans go to the sub-agent that was always there."""
    return "loans" if "loan" in state["messages"][-1].text.casefold() else "match"


def loans(state: MessagesState) -> dict[str, list[AIMessage]]:
    """The app's own sub-agent."""
    return {"messages": [AIMessage("Your loans are due on Friday.")]}


def build(model: str = "offline") -> CompiledStateGraph:
    """The app, with guided nodes beside its own."""
    graph = StateGraph(MessagesState)
    graph.add_node("loans", loans)
    graph.add_node("match", GuidelineMatcher(model, LIBRARY))
    graph.add_node("call_tools", ToolCaller(model, LIBRARY))
    graph.add_node("tools", guarded_tools(LIBRARY))
    graph.add_node("message", MessageReviser(model, LIBRARY))
    graph.add_conditional_edges(START, route, ["loans", "match"])
    graph.add_edge("match", "call_tools")
    graph.add_conditional_edges("call_tools", route_calls(LIBRARY))
    graph.add_edge("tools", "message")
    graph.add_edge("loans", END)
    graph.add_edge("message", END)
    return graph.compile()


if __name__ == "__main__":
    app = build()
    for text in ["When are you open on Monday?", "How long is my loan?"]:
        print("customer:", text)
        print("agent:   ", app.invoke({"messages": [("user", text)]})["messages"][-1].text)
