"""The milestone file that ships with the order desk, on conversations that the desk really holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import MemorySaver

import arq_graph.examples.order_desk as order_desk
from arq_graph import Agent, create_guided_agent
from arq_graph.milestones import MilestoneGraph, read_transcript, score

FOLDER = Path(order_desk.__path__[0])
DESK = Agent.from_yaml(FOLDER / "agent.yaml")
GRAPH = MilestoneGraph.from_yaml(FOLDER / "milestones.yaml")
TOOLS = list(DESK.toolbox.values())


@pytest.mark.parametrize(
    ("turns", "through"),
    [
        (
            ["My order ORD-1004 is late, where is it?", "Yes, I take the discount.", "Goodbye!"],
            "apply_discount",
        ),
        (["My order ORD-1004 is late!", "No, thanks, not necessary.", "Goodbye!"], "Goodwill Declined"),
        (["Where is my order ORD-1001?", "Thanks, goodbye!"], "Delivery Day Told"),
        (["Where is my order ORD-1003?", "Yes, it did. Goodbye!"], "Condition Asked"),
        (["I want to cancel my order.", "Then I want to speak to a human."], "hand_over_to_human"),
        (["Where is my order ORD-1004?", "I am angry! Give me a human!"], "hand_over_to_human"),
    ],
)
def test_each_goal_of_a_customer_has_a_road_of_its_own(turns: list[str], through: str) -> None:
    app = create_guided_agent("offline", DESK, checkpointer=MemorySaver())
    state: dict[str, Any] = {}
    for turn in turns:
        state = app.invoke({"messages": [("user", turn)]}, {"configurable": {"thread_id": "t"}})
    assert list(GRAPH.check(TOOLS)) == []
    reached = score(GRAPH, read_transcript(state["messages"]), tools=TOOLS)
    assert (reached.goal_completed, reached.progress_rate) == (True, 1)
    assert through in reached.path_taken
