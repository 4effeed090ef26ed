"""The milestone file that ships with the order desk, on conversations that the desk really holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import MemorySaver

import arq_graph.examples.order_desk as order_desk
from arq_graph import Agent, create_guided_agent
from arq_graph.milestones import MilestoneGraph, Score, Transcript, read_transcript, score
from tests.milestones.conversations import agent, called, conversation, user

FOLDER = Path(order_desk.__path__[0])
DESK = Agent.from_yaml(FOLDER / "agent.yaml")
GRAPH = MilestoneGraph.from_yaml(FOLDER / "milestones.yaml")
TOOLS = list(DESK.toolbox.values())


def held(*turns: str) -> Transcript:
    app = create_guided_agent("offline", DESK, checkpointer=MemorySaver())
    state: dict[str, Any] = {}
    for turn in turns:
        state = app.invoke({"messages": [("user", turn)]}, {"configurable": {"thread_id": "t"}})
    return read_transcript(state["messages"])


def measured(transcript: Transcript) -> Score:
    return score(GRAPH, transcript, tools=TOOLS)


def test_the_file_fits_the_agents_tools() -> None:
    assert list(GRAPH.check(TOOLS)) == []
    assert {one.called_tool for one in GRAPH.milestones if one.type == "FC"} == set(DESK.toolbox)


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
    reached = measured(held(*turns))
    assert reached.goal_completed is True
    assert through in reached.path_taken


def test_a_case_that_is_closed_without_looking_the_order_up_is_not_done() -> None:
    talk = conversation(
        user("Where is ORD-1001?"),
        agent("Thank you for writing to us!"),
        called("mark_resolved"),
        agent("Have a great day outdoors!"),
    )
    missed = score(GRAPH, talk)
    assert missed.goal_completed is False
    assert missed.wasted_calls == (3,)
    assert "mark_resolved" not in missed.reached
    # The join: depth 4 (look-up, status, what is told, mark_resolved) + 1 further (the welcome) = 5, and 4 are
    # still needed; Farewell and End are left: (5 - 4) / (5 + 2).
    assert missed.progress_rate == 1 / 7


def test_the_shipped_conversation_reaches_the_goal_with_its_farewell() -> None:
    transcript = held(*(FOLDER / "conversation.txt").read_text(encoding="utf-8").splitlines())
    reached = measured(transcript)
    assert (reached.goal_completed, reached.progress_rate) == (True, 1)
    assert (reached.undecided, reached.forbidden, reached.wasted_calls) == ((), (), ())
    # The boots are at the warehouse and are expedited; the tent, asked for later, is in transit.
    assert {"expedite_shipping", "Goodwill Offered", "Farewell"} < set(reached.path_taken)
    assert "Delivery Day Told" in reached.reached
    assert reached.invented_arguments == {}
    assert measured(Transcript(transcript.events[:-1])).progress_rate < 1
