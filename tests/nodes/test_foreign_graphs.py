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

from arq_graph import ARQ, Agent, Guideline, ScriptedChatModel, query, respond
from arq_graph.nodes import (
    BlueprintNode,
    GuidelineMatcher,
    MessageReviser,
    PreActPlanner,
    ReActPlanner,
    Speaker,
    ToolCaller,
)
from tests.brain import act, brain

Messages = Annotated[list[AnyMessage], add_messages]


class OnlyMessages(TypedDict):
    messages: Messages


@dataclass
class DataclassState:
    messages: Messages = field(default_factory=list)
    own: int = 0


class PydanticState(BaseModel):
    messages: Messages = Field(default_factory=list)
    own: int = 0


class OtherKey(TypedDict):
    chat: Messages


STATES = pytest.mark.parametrize(
    ("schema", "key"),
    [
        (OnlyMessages, "messages"),
        (MessagesState, "messages"),
        (DataclassState, "messages"),
        (PydanticState, "messages"),
        (OtherKey, "chat"),
    ],
)


def search(words: str) -> str:
    """Search the help pages."""
    return words


DESK = Agent("Desk", "You help.", [Guideline(None, "greet")], tools=[search])
ASKED = HumanMessage("Search for x", id="h1")
MADE = {
    "matcher": GuidelineMatcher,
    "caller": ToolCaller,
    "planner": PreActPlanner,
    "react": ReActPlanner,
    "speaker": Speaker,
    "reviser": MessageReviser,
}
WRITES = {
    "matcher": {"guideline_matches"},
    "caller": {"tool_insights", "messages"},
    "planner": {"plan", "tool_insights", "messages"},
    "react": {"plan", "tool_insights", "messages"},
    "speaker": {"moves", "tool_insights", "messages"},
    "reviser": {"messages", "revisions", "applied_guidelines"},
    "blueprint": {"mood"},
}


class Mood(ARQ):
    """How does the customer feel?"""

    signs: str = query("What shows it?")
    mood: str = respond("In one word.")


def node(name: str, key: str = "messages") -> Any:
    if name == "blueprint":
        template = "{% block head %}Mood.{% endblock %}{% block tail %}Answer.{% endblock %}"
        model = ScriptedChatModel([{"signs": "!", "mood": "glad"}])
        write = {"mood": lambda answer: answer.value.mood}
        return BlueprintNode(model, Mood, template, write=write, messages_key=key)
    model = brain(judge={"G1": 9}, moves=[act("search", {"words": "x"})], reply="Hello")
    return MADE[name](model, DESK, messages_key=key)


def alone(step: Any, schema: Any) -> Any:
    builder = StateGraph(schema)
    builder.add_node("step", step)
    builder.add_edge(START, "step")
    return builder.compile()


@pytest.mark.filterwarnings("ignore:guidelines were not matched")
@pytest.mark.parametrize("name", WRITES)
@STATES
def test_a_node_alone_in_another_graph_loses_no_write(name, schema, key):
    graph = alone(node(name, key), schema)
    updates, values = [], {}
    for mode, part in graph.stream({key: [ASKED]}, stream_mode=["updates", "values"]):
        if mode == "updates":
            updates.append(part["step"])
        else:
            values = part
    written = {channel for channel, value in updates[0].items() if value}
    assert written == {key if channel == "messages" else channel for channel in WRITES[name]}
    assert all(values[channel] for channel in written)


@STATES
def test_one_node_reads_what_another_wrote(schema, key):
    model = brain(judge={"G1": 9, "G2": 2}, reply="Hello")
    agent = Agent("Desk", "You help.", [Guideline("they greet", "greet"), Guideline("they ask", "tell")])
    builder = StateGraph(schema)
    builder.add_node("match", GuidelineMatcher(model, agent, messages_key=key))
    builder.add_node("reply", MessageReviser(model, agent, messages_key=key))
    builder.add_edge(START, "match")
    builder.add_edge("match", "reply")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        values = list(builder.compile().stream({key: [ASKED]}, stream_mode="values"))[-1]
    assert [record["guideline"] for record in values["applied_guidelines"]] == ["G1"]


@pytest.mark.parametrize("schema", [DataclassState, PydanticState])
def test_a_condition_may_look_at_another_channel_of_the_graph(schema):
    agent = Agent("Desk", "You help.", [Guideline(lambda state: state["own"] == 7, "cheer", continuous=True)])
    graph = alone(GuidelineMatcher(brain(), agent, reads=["own"]), schema)
    for own in (7, 0):
        (update,) = graph.stream({"messages": [ASKED], "own": own}, stream_mode="updates")
        assert update["step"]["guideline_matches"][0]["active"] is (own == 7)


@pytest.mark.filterwarnings("ignore:guidelines were not matched")
@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("make", [dict, DataclassState, PydanticState])
def test_a_node_works_outside_of_any_graph(runs, name, make):
    update = runs.invoke(node(name), make(messages=[ASKED]))
    assert set(update) >= WRITES[name]


def test_a_node_works_in_a_chain_like_a_function_and_in_batches(runs):
    chain = RunnableLambda(lambda text: {"messages": [HumanMessage(text)]}) | node("reviser")
    assert runs.invoke(chain, "Hi")["messages"][0].text == "Hello"
    assert node("reviser")({"messages": [ASKED]})["messages"][0].text == "Hello"
    assert len(runs.batch(node("matcher"), [{"messages": [ASKED]}, {"messages": [ASKED]}])) == 2


@pytest.mark.parametrize("message", [{"role": "user", "content": "Hi"}, ("user", "Hi")])
def test_messages_may_be_dicts_or_tuples(message):
    assert node("reviser").invoke({"messages": [message]})["messages"][0].text == "Hello"


TWO = Agent("Desk", "You help.", [Guideline("they ask", "tell"), Guideline(None, "greet")])


def test_where_nothing_was_matched_only_unconditional_guidelines_apply_with_a_warning():
    with pytest.warns(UserWarning, match="guidelines were not matched in this turn: only those without"):
        update = MessageReviser(brain(), TWO).invoke({"messages": [ASKED]})
    assert [record["guideline"] for record in update["applied_guidelines"]] == ["G2"]


def test_matched_without_a_match_is_not_the_same_as_never_matched():
    agent = Agent("Desk", "You help.", TWO.guidelines[:1])
    state = {"messages": [ASKED]}
    state |= GuidelineMatcher(brain(), agent).invoke(state)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert MessageReviser(brain(), agent).invoke(state)["applied_guidelines"] == []
