"""The text of the Glaive function-calling dataset, with its quirks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph import ScriptedChatModel
from arq_graph.milestones import (
    BrokenRecord,
    Call,
    Message,
    Result,
    Transcript,
    evaluate_turns,
    read_transcript,
    read_transcripts,
)

SYSTEM = """SYSTEM: You are a clerk with access to the following functions. Use them if required -
{
    "name": "get_order",
    "description": "Look an order up",
    "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
}

{
    "name": "roll_dice",
    "description": "Roll two dice",
    "parameters": {}
}
"""
CHAT = """USER: Where is A-1?


ASSISTANT: <functioncall> {"name": "get_order", "arguments": '{"id": "A-1"}'} <|endoftext|>


FUNCTION RESPONSE: {"status": "late"}


ASSISTANT: It is late. <|endoftext|>


USER: Thanks


ASSISTANT: You are welcome! <|endoftext|>


"""
EVENTS = (
    Message("user", "Where is A-1?", 0),
    Call("get_order", {"id": "A-1"}, None, None, 1),
    Result(2, "get_order", '{"status": "late"}', False, 2),
    Message("agent", "It is late.", 3),
    Message("user", "Thanks", 4),
    Message("agent", "You are welcome!", 5),
)


def call_written(text: str) -> Call:
    transcript = read_transcript(f"USER: hello\n\n\nASSISTANT: <functioncall> {text} <|endoftext|>")
    [(_, call)] = transcript.calls()
    return call


def test_a_record_is_recognised_and_read():
    transcript = read_transcript({"system": SYSTEM, "chat": CHAT}, id="7")
    assert transcript.events == EVENTS
    assert transcript.id == "7"
    assert (
        transcript.instructions
        == "You are a clerk with access to the following functions. Use them if required -"
    )
    assert transcript.tools["get_order"]["required"] == ["id"]


def test_the_functions_are_the_tools_even_those_without_arguments():
    transcript = read_transcript({"system": SYSTEM, "chat": CHAT})
    model = ScriptedChatModel(lambda call: "Hello.")
    evaluate_turns(model, transcript)
    defined = [tool["function"] for tool in model.calls[0].kwargs["tools"]]
    assert [(tool["name"], tool["description"]) for tool in defined] == [
        ("get_order", "Look an order up"),
        ("roll_dice", "Roll two dice"),
    ]
    assert defined[1]["parameters"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ("""{"name": "f", "arguments": '{"a": 1}'}""", {"a": 1}),
        ("""{"name": "f", "arguments": {"a": 1}}""", {"a": 1}),
        ("""{"name": "f", "arguments": "{\\"a\\": 1}"}""", {"a": 1}),
        ("""{"name": "f", "arguments": '{"a": "it's late"}'}""", {"a": "it's late"}),
        ("""{"name": "f", "arguments": '{"a": "it\\'s late"}'}""", {"a": "it's late"}),
        ("""{"name": "f", "arguments": '{"a": "}'}"}'}""", {"a": "}'}"}),
        ("""{"name": "f", "arguments": '{"a": "two\nlines"}'}""", {"a": "two\nlines"}),
        ("""{"name": "f", "arguments": '{}'}""", {}),
        ("""{"name": "f", "arguments": {}}""", {}),
        ("""{'name': 'f', 'arguments': {'a': True}}""", {"a": True}),
        ("""{"arguments": '{"a": null}', "name": "f"}""", {"a": None}),
        ("""{"name": "f"}""", {}),
        ("""{"name": "f", "arguments": null}""", {}),
        ("""{'name': 'f'}""", {}),
    ],
)
def test_arguments_are_read_however_they_are_quoted(written, arguments):
    call = call_written(written)
    assert (call.tool, call.arguments, call.malformed) == ("f", arguments, None)


def test_arguments_beyond_reading_make_a_malformed_call():
    call = call_written("""{"name": "f", "arguments": '{"a": }'}""")
    assert (call.tool, call.arguments, call.malformed) == ("f", {}, '{"a": }')
    cut = call_written("""{"name": "f", "arguments": '{"a": "no end""")
    assert cut.tool == "f"
    assert "no end" in str(cut.malformed)


@pytest.mark.parametrize(
    ("chat", "said"),
    [
        ("USER: hi\nASSISTANT: <functioncall> nothing at all", "part 1: the function call cannot be read"),
        ("""USER: hi\nASSISTANT: <functioncall> {"arguments": {}}""", "without a name"),
        ("hello USER: hi", "does not begin with `USER:`"),
    ],
)
def test_a_broken_record_is_reported_with_its_index_and_does_not_stop_the_rest(chat, said):
    good = {"system": SYSTEM, "chat": CHAT}
    first, broken, last = read_transcripts([good, {"system": SYSTEM, "chat": chat}, good], format="glaive")
    assert isinstance(first, Transcript)
    assert isinstance(last, Transcript)
    assert isinstance(broken, BrokenRecord)
    assert broken.index == 1
    assert "record 1" in str(broken.error)
    assert said in str(broken.error)


def test_words_beside_a_call_and_several_calls_belong_to_one_message():
    chat = (
        "USER: both\nASSISTANT: Let me see. "
        """<functioncall> {"name": "f", "arguments": '{"a": 1}'} <functioncall> {"name": "g", "arguments": {}}"""
        " <|endoftext|>\nFUNCTION RESPONSE: one\nFUNCTION RESPONSE: two\n"
    )
    assert read_transcript(chat).events[1:] == (
        Message("agent", "Let me see.", 1),
        Call("f", {"a": 1}, None, None, 1),
        Call("g", {}, None, None, 1),
        Result(3, "f", "one", False, 2),
        Result(4, "g", "two", False, 3),
    )


@pytest.mark.parametrize(
    "said",
    [
        "I write <functioncall> and then the call.",
        'Without a name, `<functioncall> {"arguments": {}}` calls nothing.',
        "Either <functioncall> or <functioncall>, both are words.",
    ],
)
def test_a_marker_behind_words_without_a_call_is_words(said):
    assert read_transcript(f"USER: how?\nASSISTANT: {said} <|endoftext|>").events[1:] == (
        Message("agent", said, 1),
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text("ab'\"\\ {}:é\n", max_size=8),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text("ab'", max_size=2), inner, max_size=2)
    ),
    max_leaves=5,
)


@given(st.dictionaries(st.text("ab", min_size=1, max_size=2), json_values, max_size=3))
@settings(max_examples=60)
def test_any_arguments_come_back_from_single_quotes(arguments):
    call = call_written(f"""{{"name": "f", "arguments": '{json.dumps(arguments)}'}}""")
    assert call.arguments == arguments
