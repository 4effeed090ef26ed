"""Each node in graphs with any kind of state, and outside of graphs."""

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
    points: int = 0


class PydanticState(BaseModel):
    messages: Messages = Field(default_factory=list)
    points: int = 0


class OtherKey(TypedDict):
    chat: Messages


STATES = [
    (MessagesState, "messages"),
    (DataclassState, "messages"),
    (PydanticState, "messages"),
    (OtherKey, "chat"),
]
DESK = Agent("Desk", "You help.", [Guideline(None, "greet")], tools=[search])
MESSAGE = HumanMessage("Search for x", id="h1")


def make_node(node_type: Any, key: str = "messages") -> Any:
    model = brain(judge={"G1": 9}, moves=[act("search", {"words": "x"})], reply="Hello")
    return node_type(model, DESK, messages_key=key)


def make_sequence(state_schema: Any, *nodes: Any) -> Any:
    steps = [(f"step {number}", node) for number, node in enumerate(nodes)]
    return StateGraph(state_schema).add_sequence(steps).add_edge(START, "step 0").compile()


@pytest.mark.filterwarnings("ignore:guidelines were not matched")
@pytest.mark.parametrize(
    ("node_type", "written"),
    [
        (GuidelineMatcher, {"guideline_matches"}),
        (ToolCaller, {"tool_insights", "messages"}),
        (PreActPlanner, {"plan", "tool_insights", "messages"}),
        (ReActPlanner, {"plan", "tool_insights", "messages"}),
        (Speaker, {"moves", "tool_insights", "messages"}),
        (MessageReviser, {"messages", "revisions", "applied_guidelines"}),
    ],
)
def test_no_write_of_a_node_is_lost(node_type, written):
    for state_schema, key in STATES[2:]:
        graph = make_sequence(state_schema, make_node(node_type, key))
        (update,) = graph.stream({key: [MESSAGE]}, stream_mode="updates")
        channels = {channel for channel, value in update["step 0"].items() if value}
        assert channels == {key if channel == "messages" else channel for channel in written}
        *_, values = graph.stream({key: [MESSAGE]}, stream_mode="values")
        assert all(values[channel] for channel in channels)


@pytest.mark.parametrize(("state_schema", "key"), STATES)
def test_node_reads_what_another_wrote(state_schema, key):
    model = brain(judge={"G1": 9, "G2": 2}, reply="Hello")
    agent = Agent("Desk", "You help.", [Guideline("they greet", "greet"), Guideline("they ask", "tell")])
    nodes = [node_type(model, agent, messages_key=key) for node_type in (GuidelineMatcher, MessageReviser)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        *_, values = make_sequence(state_schema, *nodes).stream({key: [MESSAGE]}, stream_mode="values")
    assert [record["guideline"] for record in values["applied_guidelines"]] == ["G1"]


def test_condition_can_read_another_channel_of_the_graph():
    guideline = Guideline(lambda state: state["points"] == 7, "cheer", continuous=True)
    node = GuidelineMatcher(brain(), Agent("Desk", "You help.", [guideline]), reads=["points"])
    graph = make_sequence(PydanticState, node)
    for points in (7, 0):
        (update,) = graph.stream({"messages": [MESSAGE], "points": points}, stream_mode="updates")
        assert update["step 0"]["guideline_matches"][0]["active"] is (points == 7)


@pytest.mark.filterwarnings("ignore:guidelines were not matched")
def test_node_works_in_a_chain_and_in_batches(runs):
    to_state = RunnableLambda(lambda text: PydanticState(messages=[HumanMessage(text)]))
    chain = to_state | make_node(MessageReviser)
    replies = [update["messages"][0].text for update in runs.batch(chain, ["Hi", "Hi"])]
    assert replies == ["Hello", "Hello"]
