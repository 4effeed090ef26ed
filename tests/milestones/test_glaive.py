"""The text of the Glaive function-calling dataset, with its quirks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph import ScriptedChatModel
from arq_graph.milestones import Call, Message, Result, evaluate_turns, read_transcript, read_transcripts

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


ASSISTANT: Let me see. <functioncall> {"name": "get_order", "arguments": '{"id": "A-1"}'} <|endoftext|>


FUNCTION RESPONSE: {"status": "late"}


ASSISTANT: It is late. <|endoftext|>


"""
RECORD = {"system": SYSTEM, "chat": CHAT, "id": 7}


def call_written(text: str) -> Call:
    transcript = read_transcript({"chat": f"USER: hello\n\n\nASSISTANT: <functioncall> {text} <|endoftext|>"})
    [(_, call)] = transcript.calls()
    return call


def test_a_record_is_recognised_and_read():
    transcript = read_transcript(RECORD)
    assert transcript.events == (
        Message("user", "Where is A-1?", 0),
        Message("agent", "Let me see.", 1),
        Call("get_order", {"id": "A-1"}, None, None, 1),
        Result(3, "get_order", '{"status": "late"}', False, 2),
        Message("agent", "It is late.", 3),
    )
    assert transcript.id == "7"
    assert transcript.instructions.startswith("You are a clerk")
    assert transcript.instructions.endswith("if required -")
    assert transcript.tools["get_order"]["required"] == ["id"]


def test_the_functions_are_the_tools_even_those_without_arguments():
    model = ScriptedChatModel(lambda call: "Hello.")
    evaluate_turns(model, read_transcript(RECORD))
    defined = [tool["function"] for tool in model.calls[0].kwargs["tools"]]
    assert [(tool["name"], tool["description"]) for tool in defined] == [
        ("get_order", "Look an order up"),
        ("roll_dice", "Roll two dice"),
    ]
    assert defined[1]["parameters"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ("""{"name": "f", "arguments": {"a": 1}}""", {"a": 1}),
        ("""{"name": "f", "arguments": "{\\"a\\": 1}"}""", {"a": 1}),
        ("""{"name": "f", "arguments": '{"a": "it's late"}'}""", {"a": "it's late"}),
        ("""{"name": "f", "arguments": '{"a": "it\\'s late"}'}""", {"a": "it's late"}),
        ("""{"name": "f", "arguments": '{"a": "}'}"}'}""", {"a": "}'}"}),
        ("""{"name": "f", "arguments": '{"a": "two\nlines"}'}""", {"a": "two\nlines"}),
        ("""{"name": "f"}""", {}),
        ("""{"name": "f", "arguments": null}""", {}),
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
    ("record", "said"),
    [
        ({"chat": "USER: hi\nASSISTANT: <functioncall> nothing"}, "part 1: the function call cannot be read"),
        ({"chat": """USER: hi\nASSISTANT: <functioncall> {"arguments": {}}"""}, "without a name"),
        ({"chat": "hello USER: hi"}, "does not begin with `USER:`"),
        ({"system": 'Use {"name": ', "chat": CHAT}, "SYSTEM: function 1 is no JSON"),
    ],
)
def test_a_broken_record_is_told(record, said):
    [broken] = read_transcripts([record])
    assert said in str(broken.error)


def test_several_calls_belong_to_one_message():
    chat = (
        """USER: both\nASSISTANT: <functioncall> {"name": "f", "arguments": '{"a": 1}'} """
        """<functioncall> {"name": "g", "arguments": {}}"""
        " <|endoftext|>\nFUNCTION RESPONSE: one\nFUNCTION RESPONSE: two\n"
    )
    assert read_transcript({"chat": chat}).events[1:] == (
        Call("f", {"a": 1}, None, None, 1),
        Call("g", {}, None, None, 1),
        Result(2, "f", "one", False, 2),
        Result(3, "g", "two", False, 3),
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text("ab'\"\\ {}:é\n", max_size=8),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text("ab'", max_size=2), inner, max_size=2)
    ),
    max_leaves=5,
)


@given(st.dictionaries(st.text("ab", min_size=1, max_size=2), json_values, max_size=3))
@settings(max_examples=30)
def test_any_arguments_come_back_from_single_quotes(arguments):
    call = call_written(f"""{{"name": "f", "arguments": '{json.dumps(arguments)}'}}""")
    assert call.arguments == arguments
