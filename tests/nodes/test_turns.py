"""What an unfinished turn leaves behind: every call gets an answer, directly after its message."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph.message import add_messages

from arq_graph.nodes.turns import abandoned_calls, pending_calls, rounds_of_turn, settled


def calling(*ids, message_id=None):
    calls = [{"name": "look", "args": {}, "id": id, "type": "tool_call"} for id in ids]
    return AIMessage("", tool_calls=calls, id=message_id)


def result(id):
    return ToolMessage("done", tool_call_id=id)


def kinds(messages):
    return [
        f"{m.tool_call_id}:{m.status}" if isinstance(m, ToolMessage) else m.id or m.type for m in messages
    ]


def test_calls_of_an_unfinished_turn_get_a_message_directly_after_those_that_are_there():
    talk = [HumanMessage("a"), calling("c1", "c2", "c3"), result("c2"), HumanMessage("b")]
    assert kinds(settled(talk)) == ["human", "ai", "c2:success", "c1:error", "c3:error", "human"]
    assert "abandoned" in settled(talk)[3].content


def test_every_unfinished_turn_is_settled():
    talk = [HumanMessage("a"), calling("c1"), HumanMessage("b"), calling("c2"), HumanMessage("c")]
    assert kinds(settled(talk)) == ["human", "ai", "c1:error", "human", "ai", "c2:error", "human"]


def test_the_calls_of_this_turn_are_left_alone():
    talk = [HumanMessage("a"), calling("c1"), result("c1"), HumanMessage("b"), calling("c2")]
    assert settled(talk) == talk
    assert abandoned_calls(talk) is None
    assert [call["id"] for call in pending_calls(talk)] == ["c2"]


def test_settling_is_done_once():
    talk = settled([HumanMessage("a"), calling("c1"), HumanMessage("b")])
    assert settled(talk) == talk


def test_the_update_rewrites_the_thread_in_order():
    talk = [HumanMessage("a", id="h1"), calling("c1", message_id="a1"), HumanMessage("b", id="h2")]
    assert kinds(add_messages(talk, abandoned_calls(talk))) == ["h1", "a1", "c1:error", "h2"]


def test_a_thread_without_messages_or_customer_has_nothing_to_settle():
    assert settled([]) == []
    assert abandoned_calls([calling("c1")]) is None
    assert pending_calls([]) == []


def test_rounds_are_counted_since_the_customer_last_spoke():
    talk = [HumanMessage("a"), calling("c1"), result("c1"), AIMessage("x"), HumanMessage("b")]
    assert rounds_of_turn(talk) == 0
    assert rounds_of_turn([*talk, calling("c2"), result("c2"), calling("c3")]) == 2
