"""A planner, and a speaker, as nodes of your own graph: no guidelines, and any state that keeps messages.

python examples/planner_and_speaker.py
"""

from __future__ import annotations

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph

from arq_graph import Agent
from arq_graph.milestones import parse_milestones
from arq_graph.nodes import PreActPlanner, ProgressTracker, Speaker, guarded_tools, route_calls

BOATS = {"S-3": "B4", "S-8": "A1"}


def find_boat(boat: str) -> dict[str, str]:
    """Find out at which berth a boat lies.

    Args:
        boat: The boat's number, like S-3.
    """
    return {"boat": boat, "berth": BOATS.get(boat, "unknown")}


def tow_boat(boat: str) -> str:
    """Tow a boat away.

    Args:
        boat: The boat's number, like S-3.
    """
    return f"{boat} was towed away."


HARBOUR = Agent(
    "Harbour",
    "You are the office of a small harbour.",
    tools=[find_boat, tow_boat],
    confirm={"tow_boat": "customer"},
)
MILESTONES = parse_milestones("""
- {name: Start, type: NFC}
- {name: find_boat, type: FC, dependencies: [Start]}
- {name: tow_boat, type: FC, dependencies: [Start, find_boat]}
- {name: End, type: NFC, dependencies: [find_boat, tow_boat]}
""")


def planner(model: str) -> CompiledStateGraph:
    """Plan, take one call, see how far that got, and refine the plan, until the plan is its final answer."""
    graph = StateGraph(MessagesState)
    graph.add_node("plan", PreActPlanner(model, HARBOUR))
    graph.add_node("tools", guarded_tools(HARBOUR))
    graph.add_node("progress", ProgressTracker(MILESTONES))
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", route_calls(HARBOUR, otherwise=END))
    graph.add_edge("tools", "progress")
    graph.add_edge("progress", "plan")
    return graph.compile(checkpointer=MemorySaver())


def speaker(model: str) -> CompiledStateGraph:
    """Think, speak or act, one move at a time; in a chat, speaking ends the turn."""
    graph = StateGraph(MessagesState)
    graph.add_node("speak", Speaker(model, HARBOUR))
    graph.add_node("tools", guarded_tools(HARBOUR))
    graph.add_edge(START, "speak")
    graph.add_conditional_edges("speak", route_calls(HARBOUR, otherwise=END))
    graph.add_edge("tools", "speak")
    return graph.compile(checkpointer=MemorySaver())


if __name__ == "__main__":
    for app in (planner("offline"), speaker("offline")):
        thread: RunnableConfig = {"configurable": {"thread_id": "1"}}
        for text in ["At which berth is boat S-3?", "Please tow boat S-3 away.", "Yes, please."]:
            state = app.invoke({"messages": [("user", text)]}, thread)
            print("customer:", text, "\nagent:   ", state["messages"][-1].text)
        # The nodes' own channels are kept beside those of your state.
        kept = app.get_state(thread).values
        if "progress" in kept:
            print("reached:", ", ".join(kept["progress"][-1]["reached"]))
        for move in kept.get("moves", ()):
            print("move:", move["kind"], move["text"])
