"""The milestone file that ships with the order desk, on conversations that the desk really holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import MemorySaver

import arq_graph.examples.order_desk as order_desk
from arq_graph import Agent, create_guided_agent
from arq_graph.milestones import (
    MilestoneGraph,
    Transcript,
    read_transcript,
    score,
)
from tests.milestones.conversations import agent, called, conversation, user

LOOKED_UP = '{"order_id": "ORD-1001", "status": "in transit", "expected_delivery": "Thursday"}'


@pytest.fixture(scope="module")
def desk() -> Agent:
    return Agent.from_yaml(_file("agent.yaml"))


@pytest.fixture(scope="module")
def graph() -> MilestoneGraph:
    return MilestoneGraph.from_yaml(_file("milestones.yaml"))


def _file(name: str) -> Path:
    return Path(order_desk.__path__[0]) / name


def tools_of(desk: Agent) -> list[Any]:
    return list(desk.toolbox.values())


def hold(desk: Agent, *turns: str) -> Transcript:
    app = create_guided_agent("offline", desk, checkpointer=MemorySaver())
    thread = {"configurable": {"thread_id": "t"}}
    state: dict[str, Any] = {}
    for turn in turns:
        state = app.invoke({"messages": [("user", turn)]}, thread)
    return read_transcript(state["messages"])


def test_the_file_fits_the_agents_tools(desk: Agent, graph: MilestoneGraph) -> None:
    assert list(graph.check(tools_of(desk))) == []
    watched = {one.called_tool for one in graph.milestones if one.type == "FC"}
    assert watched == set(desk.toolbox)


def test_the_shipped_conversation_reaches_the_goal(desk: Agent, graph: MilestoneGraph) -> None:
    turns = _file("conversation.txt").read_text(encoding="utf-8").splitlines()
    transcript = hold(desk, *turns)
    measured = score(graph, transcript, tools=tools_of(desk))
    assert measured.goal_completed is True
    assert measured.progress_rate == 1
    assert measured.undecided == ()
    assert measured.forbidden == ()
    # The boots are at the warehouse and are expedited; the tent, asked for later, is in transit.
    assert measured.path_taken == (
        "Start",
        "Customer Welcomed",
        "get_order_details",
        "At The Warehouse",
        "Goodwill Offered",
        "expedite_shipping",
        "mark_resolved",
        "Welcomed And Resolved",
        "Farewell",
        "End",
    )
    assert "Delivery Day Told" in measured.reached
    assert measured.wasted_calls == ()
    assert measured.invented_arguments == {}

    before = score(graph, Transcript(transcript.events[:-1]), tools=tools_of(desk))
    assert before.progress_rate < 1  # End waits for the farewell


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
def test_each_goal_of_a_customer_has_a_road_of_its_own(
    desk: Agent, graph: MilestoneGraph, turns: list[str], through: str
) -> None:
    transcript = hold(desk, *turns)
    measured = score(graph, transcript, tools=tools_of(desk))
    assert measured.goal_completed is True
    assert through in measured.path_taken


def test_a_case_that_is_closed_without_looking_the_order_up_is_not_done(graph: MilestoneGraph) -> None:
    talk = conversation(
        user("Where is ORD-1001?"),
        agent("Thank you for writing to us!"),
        called("mark_resolved"),
        agent("Have a great day outdoors!"),
    )
    measured = score(graph, talk)
    assert measured.goal_completed is False
    assert measured.wasted_calls == (3,)
    assert "mark_resolved" not in measured.reached
    # The join: depth 4 (look-up, status, what is told, mark_resolved) + 1 further (the welcome) = 5, and 4 are
    # still needed; Farewell and End are left: (5 - 4) / (5 + 2).
    assert measured.progress_rate == 1 / 7
