"""Live milestones: how far the conversation got, as it runs, and the same number from the finished thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph

from arq_graph import (
    AgentState,
    InputError,
    SpecError,
    create_guided_agent,
    create_preact_agent,
)
from arq_graph.milestones import MilestoneGraph, Verdict
from arq_graph.nodes import TrackProgress
from tests.apps.desk import desk, get_order, late, says
from tests.brain import brain
from tests.planning import act, planner, say

GRAPH = MilestoneGraph.parse_yaml("""\
milestones:
- {name: Start, type: NFC}
- {name: get_order, type: FC, description: the order was looked up}
- {name: give_discount, type: FC, dependencies: [get_order]}
- {name: Goodbye, type: NFC, check: {said_by: agent, pattern: '(?i)goodbye'}, dependencies: [give_discount]}
- {name: End, type: NFC, dependencies: [Goodbye]}
""")
FOR_A_JUDGE = MilestoneGraph.parse_yaml("""\
milestones:
- {name: Start, type: NFC}
- {name: Calmed Down, type: NFC, description: the customer is calm}
- {name: End, type: NFC, dependencies: [Calmed Down]}
""")
A1 = {"order_id": "A-1"}
SETTINGS: list[dict[str, Any]] = [{}, {"strategy": "react"}, {"strategy": "pre-act"}]


def names(state: dict[str, Any]) -> list[str]:
    return [milestone.name for milestone in state["progress"][-1].next]


def test_what_the_reply_itself_says_counts_in_its_own_turn(runs):
    model = planner(
        [act("get_order", A1), act("give_discount", A1), say("Bye")],
        judge={"G1": 9, "G2": late},
        reply="Goodbye!",
    )
    state = runs.invoke(
        create_guided_agent(model, desk(), strategy="pre-act", milestones=GRAPH), says("Where is A-1?")
    )
    assert (state["progress"][-1].progress_rate, state["progress"][-1].goal_completed) == (1.0, True)


def test_each_change_of_progress_is_an_event_and_nothing_else_is(runs):
    model = planner([act("get_order", A1), say("It is late.")], judge={"G1": 9}, reply="It is late.")
    app = create_guided_agent(model, desk(), strategy="react", milestones=GRAPH)
    events = [
        event
        for event in runs.stream(app, says("Where is A-1?"), stream_mode="custom")
        if event.type == "progress_made"
    ]
    assert [event.newly_reached for event in events] == [("Start",), ("get_order",)]
    # Three milestones on the only road, and End, each of weight 1.
    assert [event.progress.progress_rate for event in events] == [0.0, 0.25]


def test_what_code_cannot_decide_stays_a_range_without_a_judge(runs):
    state = runs.invoke(create_guided_agent(brain(), desk(), milestones=FOR_A_JUDGE), says("Grr!"))
    progress = state["progress"][-1]
    assert (progress.goal_completed, progress.progress_rate, progress.progress_range) == (
        None,
        None,
        (0.0, 1.0),
    )
    assert progress.undecided == ("Calmed Down",)


def test_a_judge_is_asked_only_where_one_is_given(runs):
    def judge(graph, transcript, observations):
        return [Verdict("Calmed Down", True, len(transcript), transcript.events[-1].text)]

    app = create_guided_agent(brain(reply="All is well now."), desk(), milestones=FOR_A_JUDGE, judge=judge)
    assert runs.invoke(app, says("Grr, I am so angry!"))["progress"][-1].goal_completed is True


def test_a_judge_without_milestones_is_a_mistake():
    with pytest.raises(InputError, match="milestones="):
        create_guided_agent(brain(), desk(), judge=lambda *_: [])
    with pytest.raises(InputError, match="milestones="):
        create_preact_agent(brain(), [get_order], judge=lambda *_: [])


def test_a_graph_that_cannot_be_measured_on_is_told_before_anything_runs():
    with pytest.raises(SpecError, match="no milestone named 'End'"):
        create_guided_agent(
            brain(), desk(), milestones=MilestoneGraph.parse_yaml("- {name: Start, type: NFC}")
        )
    with pytest.raises(InputError, match=r"MilestoneGraph\.from_yaml"):
        TrackProgress("milestones.yaml")  # type: ignore[arg-type]


CALLED = [
    HumanMessage("Where is A-1?", id="h1"),
    AIMessage("", tool_calls=[{"name": "get_order", "args": A1, "id": "c1"}]),
    ToolMessage("A-1 is late", tool_call_id="c1"),
]


def test_the_node_alone_works_in_a_graph_that_has_only_messages(runs):
    builder = StateGraph(MessagesState)
    builder.add_node("measure", TrackProgress(GRAPH))
    builder.add_node(
        "read",
        lambda state: {"messages": f"rate {state['progress'][-1].progress_rate}"},
        input_schema=AgentState,
    )
    builder.add_edge(START, "measure")
    builder.add_edge("measure", "read")
    assert runs.invoke(builder.compile(), {"messages": CALLED})["messages"][-1].text == "rate 0.25"


def test_the_node_alone_reads_a_dataclass_and_another_channel(runs):
    @dataclass
    class Chat:
        talk: list[Any] = field(default_factory=list)

    node = TrackProgress(GRAPH, messages_key="talk")
    assert runs.invoke(node, Chat(CALLED))["progress"][-1].reached == ("Start", "get_order")


def test_progress_is_not_shown_by_graphs_that_ask_for_none(runs):
    assert isinstance(GRAPH, MilestoneGraph)
    assert "progress" not in runs.invoke(create_guided_agent(brain(), desk()), says("Hi"))
