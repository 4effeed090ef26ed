"""The speaking agent in a chat: speaking ends the turn; what it asks for is there in the next one."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from arq_graph import Agent, Guideline, InputError
from arq_graph.nodes.events import Spoke, Thought
from tests.apps.desk import get_order, kinds, says, thread
from tests.speaking import act, ask, respact, say, speaker, think

A1 = {"order_id": "A-1"}


def agent(script, tools=(get_order,), **options):
    return respact(speaker(script), list(tools), **options)


def test_a_turn_thinks_acts_and_speaks(runs):
    app = agent([think("An order."), act("get_order", A1), say("A-1 is late.")])
    state = runs.invoke(app, says("Where is A-1?"))
    assert kinds(state) == ["human", "ai", "tool", "ai"]
    assert [move.kind for move in state["moves"]] == ["think", "act", "speak"]
    assert state["messages"][-1].text == "A-1 is late."


def test_thoughts_and_utterances_are_streamed(runs):
    app = agent([think("An order."), ask("Which one?")])
    events = runs.stream(app, says("Where is it?"), stream_mode="custom")
    assert [type(event) for event in events] == [Thought, Spoke]
    assert events[0].text == "An order."
    assert (events[1].text, events[1].category, events[1].asks, events[1].waits) == (
        "Which one?",
        "probing_question",
        True,
        False,
    )
    assert events[1].calls == 2


def test_an_operators_word_is_asked_for_before_a_call_runs(runs):
    desk = Agent("Desk", "You help.", tools=[get_order], confirm={"get_order": "operator"})
    app = respact(speaker([act("get_order", A1), say("Done.")]), desk, checkpointer=MemorySaver())
    waiting = runs.invoke(app, says("Where is A-1?"), thread())
    assert waiting["__interrupt__"][0].value["action_requests"][0]["args"] == A1
    done = runs.invoke(app, Command(resume={"decisions": [{"type": "approve"}]}), thread())
    assert kinds(done) == ["human", "ai", "tool", "ai"]


def test_a_new_message_abandons_a_call_that_waits():
    desk = Agent("Desk", "You help.", tools=[get_order], confirm={"get_order": "operator"})
    app = respact(speaker([act("get_order", A1), say("Fine.")]), desk, checkpointer=MemorySaver())
    app.invoke(says("Where is A-1?"), thread())
    state = app.invoke(says("Forget it."), thread())
    assert kinds(state) == ["human", "ai", "tool", "human", "ai"]
    assert state["messages"][2].status == "error"


def test_an_agent_with_guidelines_is_told_where_to_go():
    desk = Agent("Desk", "You help.", [Guideline("they greet", "greet back")])
    with pytest.raises(InputError, match="create_guided_agent"):
        respact(speaker([]), desk)


def test_a_profile_belongs_to_tools_alone():
    with pytest.raises(InputError, match="profile"):
        respact(speaker([]), Agent("Desk", "You help."), profile="x")
