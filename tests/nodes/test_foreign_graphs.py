"""Each node alone in a graph of somebody else's, whatever its state is, and outside of any graph."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from pydantic import BaseModel, Field

from arq_graph import ARQ, Agent, Guideline, query, respond
from arq_graph.models.scripted import ScriptedChatModel
from arq_graph.nodes import BlueprintNode, GuidelineMatcher, MessageReviser, ToolCaller
from tests.brain import brain

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
    own: int


STATES = [
    pytest.param(OnlyMessages, "messages", id="only-messages"),
    pytest.param(MessagesState, "messages", id="MessagesState"),
    pytest.param(DataclassState, "messages", id="dataclass"),
    pytest.param(PydanticState, "messages", id="pydantic"),
    pytest.param(OtherKey, "chat", id="another-key"),
]


def search(words: str) -> str:
    """Search the help pages."""
    return words


DESK = Agent("Desk", "You help.", [Guideline(None, "greet")], tools=[search])
ASKED = HumanMessage("Hi", id="h1")


class Mood(ARQ):
    """How does the customer feel?"""

    signs: str = query("What shows it?")
    mood: str = respond("In one word.")


def node(name: str, key: str = "messages") -> Any:
    model = brain(judge={"G1": 9}, call={"search": {"words": "x"}}, reply="Hello")
    if name == "blueprint":
        template = "{% block head %}Mood.{% endblock %}{% block tail %}Answer.{% endblock %}"
        model = ScriptedChatModel([{"signs": "!", "mood": "glad"}])
        write = {"mood": lambda answer: answer.value.mood}
        return BlueprintNode(model, Mood, template, write=write, messages_key=key)
    made = {"matcher": GuidelineMatcher, "caller": ToolCaller, "reviser": MessageReviser}[name]
    return made(model, DESK, messages_key=key)


WRITES = {
    "matcher": {"guideline_matches": 1},
    "caller": {"tool_insights": 1, "messages": 2},
    "reviser": {"messages": 2, "revisions": 1, "applied_guidelines": 1},
    "blueprint": {"mood": 4},
}


def alone(step: Any, schema: Any) -> Any:
    builder = StateGraph(schema)
    builder.add_node("step", step)
    builder.add_edge(START, "step")
    builder.add_edge("step", END)
    return builder.compile()


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize(("schema", "key"), STATES)
def test_a_node_alone_in_another_graph_loses_no_write(runs, name, schema, key):
    (update,) = runs.stream(alone(node(name, key), schema), {key: [ASKED]}, stream_mode="updates")
    written = {channel: value for channel, value in update["step"].items() if value}
    expected = {key if channel == "messages" else channel for channel in WRITES[name]}
    assert set(written) == expected


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize(("schema", "key"), STATES)
def test_what_a_node_wrote_is_in_the_state(runs, name, schema, key):
    graph = alone(node(name, key), schema)
    values = runs.stream(graph, {key: [ASKED]}, stream_mode="values")[-1]
    assert {c: len(values[key if c == "messages" else c]) for c in WRITES[name]} == WRITES[name]


@pytest.mark.parametrize(("schema", "key"), STATES)
def test_one_node_reads_what_another_wrote(runs, schema, key):
    model = brain(judge={"G1": 9, "G2": 2}, reply="Hello")
    agent = Agent("Desk", "You help.", [Guideline("they greet", "greet"), Guideline("they ask", "tell")])
    builder = StateGraph(schema)
    builder.add_node("match", GuidelineMatcher(model, agent, messages_key=key))
    builder.add_node("reply", MessageReviser(model, agent, messages_key=key))
    builder.add_edge(START, "match")
    builder.add_edge("match", "reply")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        values = runs.stream(builder.compile(), {key: [ASKED]}, stream_mode="values")[-1]
    assert [record.guideline for record in values["applied_guidelines"]] == ["G1"]


@pytest.mark.parametrize("schema", [DataclassState, PydanticState])
def test_a_condition_may_look_at_another_channel_of_the_graph(runs, schema):
    agent = Agent("Desk", "You help.", [Guideline(lambda state: state["own"] == 7, "cheer", continuous=True)])
    graph = alone(GuidelineMatcher(brain(), agent, reads=["own"]), schema)
    for own in (7, 0):
        (update,) = runs.stream(graph, {"messages": [ASKED], "own": own}, stream_mode="updates")
        assert update["step"]["guideline_matches"][0].active is (own == 7)


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("make", [dict, lambda **kw: DataclassState(**kw), lambda **kw: PydanticState(**kw)])
def test_a_node_works_outside_of_any_graph(runs, name, make):
    update = runs.invoke(node(name), make(messages=[ASKED]))
    assert set(WRITES[name]) <= set(update)


def test_a_node_works_in_a_chain_without_a_graph(runs):
    chain = RunnableLambda(lambda text: {"messages": [HumanMessage(text)]}) | node("reviser")
    assert runs.invoke(chain, "Hi")["messages"][0].content == "Hello"


def test_a_node_can_be_called_like_a_function():
    assert node("reviser")({"messages": [ASKED]})["messages"][0].content == "Hello"


def test_nodes_can_be_batched(runs):
    states = [{"messages": [HumanMessage(text)]} for text in ("Hi", "Hello")]
    assert len(runs.batch(node("matcher"), states)) == 2


def test_messages_may_be_dicts_or_tuples(runs):
    for message in ({"role": "user", "content": "Hi"}, ("user", "Hi")):
        update = runs.invoke(node("reviser"), {"messages": [message]})
        assert update["messages"][0].content == "Hello"


@pytest.mark.parametrize("name", ["caller", "reviser"])
def test_where_nothing_was_matched_only_unconditional_guidelines_apply_with_a_warning(runs, name):
    agent = Agent(
        "Desk", "You help.", [Guideline("they ask", "tell"), Guideline(None, "greet")], tools=[search]
    )
    model = brain(call={"search": {"words": "x"}}, reply="Hello")
    step = (MessageReviser if name == "reviser" else ToolCaller)(model, agent)
    with pytest.warns(UserWarning, match="guidelines were not matched in this turn: only those without"):
        update = runs.invoke(step, {"messages": [ASKED]})
    if name == "reviser":
        assert [record.guideline for record in update["applied_guidelines"]] == ["G2"]
    else:
        assert update["messages"][0].tool_calls[0]["name"] == "search"


def test_matched_without_a_match_is_not_the_same_as_never_matched(runs):
    agent = Agent("Desk", "You help.", [Guideline("they ask", "tell"), Guideline("they go", "wave")])
    state = {"messages": [ASKED]}
    state |= runs.invoke(GuidelineMatcher(brain(), agent), state)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert runs.invoke(MessageReviser(brain(), agent), state)["applied_guidelines"] == []
