"""Each node alone in a graph of somebody else's, whatever its state is, and outside of any graph."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from pydantic import BaseModel, Field

from arq_graph import Agent, Guideline
from arq_graph.nodes import GuidelineMatcher, MessageReviser, PreActPlanner, ReActPlanner, Speaker, ToolCaller
from tests.brain import act, brain
from tests.order_tools import search

Messages = Annotated[list[AnyMessage], add_messages]


@dataclass
class DataclassState:
    messages: Messages = field(default_factory=list)
    own: int = 0


class PydanticState(BaseModel):
    messages: Messages = Field(default_factory=list)
    own: int = 0


class OtherKey(TypedDict):
    chat: Messages


STATES = [
    (MessagesState, "messages"),
    (DataclassState, "messages"),
    (PydanticState, "messages"),
    (OtherKey, "chat"),
]


DESK = Agent("Desk", "You help.", [Guideline(None, "greet")], tools=[search])
ASKED = HumanMessage("Search for x", id="h1")
WRITES = {
    GuidelineMatcher: {"guideline_matches"},
    ToolCaller: {"tool_insights", "messages"},
    PreActPlanner: {"plan", "tool_insights", "messages"},
    ReActPlanner: {"plan", "tool_insights", "messages"},
    Speaker: {"moves", "tool_insights", "messages"},
    MessageReviser: {"messages", "revisions", "applied_guidelines"},
}
pytestmark = pytest.mark.filterwarnings("ignore:guidelines were not matched")


def node(kind: Any, key: str = "messages") -> Any:
    model = brain(judge={"G1": 9}, moves=[act("search", {"words": "x"})], reply="Hello")
    return kind(model, DESK, messages_key=key)


def in_a_row(schema: Any, *steps: Any) -> Any:
    builder = StateGraph(schema).add_sequence([(f"step {n}", step) for n, step in enumerate(steps)])
    return builder.add_edge(START, "step 0").compile()


@pytest.mark.parametrize("kind", WRITES)
def test_a_node_alone_in_another_graph_loses_no_write(kind):
    for schema, key in STATES:
        graph = in_a_row(schema, node(kind, key))
        (update,) = graph.stream({key: [ASKED]}, stream_mode="updates")
        written = {channel for channel, value in update["step 0"].items() if value}
        assert written == {key if channel == "messages" else channel for channel in WRITES[kind]}
        *_, values = graph.stream({key: [ASKED]}, stream_mode="values")
        assert all(values[channel] for channel in written)


@pytest.mark.parametrize(("schema", "key"), STATES)
def test_one_node_reads_what_another_wrote(schema, key):
    model = brain(judge={"G1": 9, "G2": 2}, reply="Hello")
    agent = Agent("Desk", "You help.", [Guideline("they greet", "greet"), Guideline("they ask", "tell")])
    steps = [kind(model, agent, messages_key=key) for kind in (GuidelineMatcher, MessageReviser)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        *_, values = in_a_row(schema, *steps).stream({key: [ASKED]}, stream_mode="values")
    assert [record["guideline"] for record in values["applied_guidelines"]] == ["G1"]


@pytest.mark.parametrize("schema", [DataclassState, PydanticState])
def test_a_condition_may_look_at_another_channel_of_the_graph(schema):
    agent = Agent("Desk", "You help.", [Guideline(lambda state: state["own"] == 7, "cheer", continuous=True)])
    graph = in_a_row(schema, GuidelineMatcher(brain(), agent, reads=["own"]))
    for own in (7, 0):
        (update,) = graph.stream({"messages": [ASKED], "own": own}, stream_mode="updates")
        assert update["step 0"]["guideline_matches"][0]["active"] is (own == 7)


def test_a_node_works_outside_of_a_graph_in_a_chain_and_in_batches(runs):
    chain = RunnableLambda(lambda text: PydanticState(messages=[HumanMessage(text)])) | node(MessageReviser)
    assert [update["messages"][0].text for update in runs.batch(chain, ["Hi", "Hi"])] == ["Hello", "Hello"]
