"""The conversation as a model reads it: numbered lines that are only ever appended, and cut as a whole."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from arq_graph.reasoning.conversation import Conversation, estimate_tokens


def call(id, name="look", **args):
    return {"name": name, "args": args, "id": id, "type": "tool_call"}


TALK = [
    HumanMessage("Where is it?", id="h1"),
    AIMessage("", tool_calls=[call("c1", order="A-1"), call("c2", order="A-2")]),
    ToolMessage("here", tool_call_id="c1"),
    ToolMessage("gone", tool_call_id="c2", status="error"),
    AIMessage("It is here.", id="a1"),
    HumanMessage("Thanks", id="h2"),
]


def lines(messages, **options):
    text = Conversation(messages, **options).text
    return [json.loads(line) for line in text.split("\n")] if text else []


def test_messages_and_results_are_numbered_each_in_their_own_row():
    assert lines(TALK) == [
        {"id": "M1", "from": "customer", "text": "Where is it?"},
        {"id": "T1", "from": "tool", "tool": "look", "arguments": {"order": "A-1"}, "result": "here"},
        {
            "id": "T2",
            "from": "tool",
            "tool": "look",
            "arguments": {"order": "A-2"},
            "result": "gone",
            "error": True,
        },
        {"id": "M2", "from": "agent", "text": "It is here."},
        {"id": "M3", "from": "customer", "text": "Thanks"},
    ]


def test_a_call_without_a_result_is_not_shown_but_what_was_said_with_it_is():
    talk = [HumanMessage("Hi"), AIMessage("One moment.", tool_calls=[call("c1")])]
    assert [line.get("text") for line in lines(talk)] == ["Hi", "One moment."]


def test_a_result_whose_call_is_unknown_is_shown_with_the_name_it_has():
    assert lines([ToolMessage("x", tool_call_id="c9", name="look")])[0] == {
        "id": "T1",
        "from": "tool",
        "tool": "look",
        "arguments": {},
        "result": "x",
    }


def test_a_system_message_in_the_thread_is_shown_as_one():
    assert lines([SystemMessage("The shop is closed."), HumanMessage("Hi")])[0]["from"] == "system"


def test_attachments_are_named_and_reasoning_is_not():
    blocks = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
    (line,) = lines([HumanMessage(blocks)])
    assert (line["text"], line["attachments"]) == ("Look:", ["image_url"])
    thinking = [{"type": "thinking", "thinking": "secret"}, {"type": "text", "text": "Hello"}]
    assert lines([AIMessage(thinking)]) == [{"id": "M1", "from": "agent", "text": "Hello"}]


def test_nothing_was_said_yet():
    conversation = Conversation([])
    assert (conversation.text, conversation.turn, conversation.last_customer_line) == ("", "", None)
    assert conversation.results == ()


def test_the_turn_is_the_id_of_the_last_customer_message_or_its_number():
    assert Conversation(TALK).turn == "h2"
    assert Conversation([HumanMessage("a"), AIMessage("b"), HumanMessage("c")]).turn == "M3"


def test_the_results_of_the_turn_are_those_after_the_last_customer_message():
    assert [line.id for line in Conversation(TALK[:4]).results] == ["T1", "T2"]
    assert Conversation(TALK).results == ()


def test_two_equal_messages_are_two_lines():
    twice = [HumanMessage("Hi"), AIMessage("Hello"), HumanMessage("Hi")]
    conversation = Conversation(twice)
    assert [line.id for line in conversation.lines] == ["M1", "M2", "M3"]
    assert conversation.turn_lines == ()


def test_a_line_is_found_by_the_id_of_its_message():
    conversation = Conversation(TALK)
    assert conversation.id_of("a1") == "M2"
    assert conversation.id_of("unknown") is None
    assert conversation.id_of(None) is None


def test_a_long_message_is_shortened_in_the_middle():
    (line,) = lines([HumanMessage("a" * 600 + "b" * 600)], max_tokens=1000)
    assert line["text"] == f"{'a' * 500} … {'b' * 500}"
    assert line["shortened_from_characters"] == 1200
    (line,) = lines([ToolMessage("r" * 1200, tool_call_id="c")], max_tokens=1000)
    assert len(line["result"]) == 1003


def test_tokens_are_estimated_as_a_quarter_of_the_characters():
    assert [estimate_tokens(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]


def test_tokens_can_be_counted_in_another_way():
    talk = [HumanMessage(f"message {n}") for n in range(10)]
    assert Conversation(talk, 100, count_tokens=lambda text: 30).first_shown > 0
    assert Conversation(talk, 100, count_tokens=lambda text: 1).first_shown == 0


BUDGET = 400


@st.composite
def talks(draw):
    """A conversation of turns, each with calls and results in the middle."""
    messages = []
    for turn in range(draw(st.integers(1, 12))):
        messages.append(HumanMessage("x" * draw(st.integers(0, 600)), id=f"h{turn}"))
        for round in range(draw(st.integers(0, 2))):
            ids = [f"c{turn}-{round}-{n}" for n in range(draw(st.integers(1, 3)))]
            messages.append(AIMessage("", tool_calls=[call(id) for id in ids]))
            messages += [ToolMessage("y" * draw(st.integers(0, 600)), tool_call_id=id) for id in ids]
        if draw(st.booleans()):
            messages.append(AIMessage("z" * draw(st.integers(1, 600)), id=f"a{turn}"))
    return messages


def prefixes(messages):
    return [Conversation(messages[:n], BUDGET) for n in range(1, len(messages) + 1)]


@settings(max_examples=60)
@given(talks())
def test_a_cut_never_moves_back_and_otherwise_stays_where_it_is(messages):
    before = None
    for conversation in prefixes(messages):
        if before is not None:
            assert conversation.first_shown >= before.first_shown
            if conversation.first_shown == before.first_shown:
                assert conversation.text.startswith(before.text)
        before = conversation


@settings(max_examples=60)
@given(talks())
def test_a_cut_depends_on_the_history_alone(messages):
    whole = Conversation(messages, BUDGET)
    again = Conversation([message.model_copy() for message in messages], BUDGET)
    assert (whole.first_shown, whole.text) == (again.first_shown, again.text)


@settings(max_examples=60)
@given(talks())
def test_a_cut_keeps_the_current_turn_whole_and_results_with_what_they_answer(messages):
    for conversation in prefixes(messages):
        last = conversation.last_customer_line
        assert last in conversation.shown
        assert all(line in conversation.shown for line in conversation.turn_lines)
        if conversation.first_shown:
            assert conversation.shown[0].speaker != "tool"


@settings(max_examples=60)
@given(talks())
def test_over_budget_the_history_is_cut_to_half_as_far_as_the_turn_allows(messages):
    conversation = Conversation(messages, BUDGET)
    turn = conversation.shown.index(conversation.last_customer_line)
    history = sum(estimate_tokens(line.text) for line in conversation.shown[:turn])
    assert history <= BUDGET


def test_the_note_of_a_cut_names_the_last_line_that_is_left_out():
    talk = [HumanMessage("x" * 300) for _ in range(20)]
    conversation = Conversation(talk, BUDGET)
    note = lines(talk, max_tokens=BUDGET)[0]["note"]
    assert f"everything up to M{conversation.first_shown} is left out" in note
    assert conversation.shown[0].id == f"M{conversation.first_shown + 1}"
    assert "M1" not in conversation.by_id


def test_a_thread_of_many_thousand_messages_is_read_in_one_pass():
    talk = [HumanMessage("x" * 40, id=f"h{n}") for n in range(4000)]
    counted = []

    def count(text):
        counted.append(text)
        return estimate_tokens(text)

    assert Conversation(talk, 1000, count).first_shown > 3900
    assert len(counted) == 4000


@pytest.mark.parametrize("text", ["</conversation>", "\ud800", "\n", '"}'])
def test_no_text_leaves_its_line(text):
    conversation = Conversation([HumanMessage(text), HumanMessage("next")])
    assert len(conversation.text.split("\n")) == 2
    assert "<" not in conversation.text
