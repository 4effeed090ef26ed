from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_to_dict,
)

from arq_graph.errors import InputError
from arq_graph.milestones import Call, Message, Result, Transcript, read_transcript, read_transcripts

OPENAI = [
    {"role": "system", "content": "You are a clerk."},
    {"role": "user", "content": "Where are my orders?"},
    {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"id": 1}'}},
            {"id": "c2", "type": "function", "function": {"name": "get", "arguments": '{"id": 2}'}},
        ],
    },
    {"role": "tool", "tool_call_id": "c2", "content": "two"},
    {"role": "tool", "tool_call_id": "c1", "content": "one"},
    {
        "role": "assistant",
        "content": [{"type": "text", "text": "Here"}, {"type": "text", "text": "they are."}],
    },
]
LANGCHAIN = [
    SystemMessage("You are a clerk."),
    HumanMessage("Where are my orders?"),
    AIMessage(
        "Let me look.",
        tool_calls=[
            {"name": "get", "args": {"id": 1}, "id": "c1"},
            {"name": "get", "args": {"id": 2}, "id": "c2"},
        ],
    ),
    ToolMessage("two", tool_call_id="c2"),
    ToolMessage("one", tool_call_id="c1"),
    AIMessage([{"type": "text", "text": "Here"}, {"type": "text", "text": "they are."}]),
]
EVENTS = (
    Message("user", "Where are my orders?", 1),
    Message("agent", "Let me look.", 2),
    Call("get", {"id": 1}, "c1", None, 2),
    Call("get", {"id": 2}, "c2", None, 2),
    Result(4, "get", "two", False, 3),
    Result(3, "get", "one", False, 4),
    Message("agent", "Here\nthey are.", 5),
)


@pytest.mark.parametrize(
    "messages",
    [
        OPENAI,
        LANGCHAIN,
        json.loads(json.dumps([message.model_dump() for message in LANGCHAIN])),
        messages_to_dict(LANGCHAIN),
        [dumpd(message) for message in LANGCHAIN],
    ],
    ids=["OpenAI", "objects", "model_dump", "messages_to_dict", "dumpd"],
)
def test_chat_messages_are_read_however_they_are_written(messages):
    transcript = read_transcript(messages, id="talk")
    assert transcript.events == EVENTS
    assert (transcript.id, transcript.instructions) == ("talk", "You are a clerk.")
    assert read_transcript({"messages": messages}).events == EVENTS
    [only] = read_transcripts(messages)
    assert only.events == EVENTS


def test_langchain_marks_failed_results_and_malformed_calls():
    broken = AIMessage(
        "", invalid_tool_calls=[{"name": "get", "args": '{"id": ', "id": "c1", "error": "cut off"}]
    )
    failed = ToolMessage("no", tool_call_id="c1", status="error", name="get")
    transcript = read_transcript([broken, failed, AIMessageChunk("Sorry"), ChatMessage("ok", role="user")])
    assert transcript.events == (
        Call("get", {}, "c1", '{"id": ', 0),
        Result(1, "get", "no", True, 1),
        Message("agent", "Sorry", 2),
        Message("user", "ok", 3),
    )


def test_a_record_may_bring_id_task_use_case_tools_and_more():
    function = {"name": "get", "parameters": {"type": "object", "required": ["id"]}}
    tools = [{"type": "function", "function": function}]
    transcript = read_transcript(
        {"id": 7, "task_id": 3, "use_case": "orders", "messages": OPENAI, "tools": tools, "reward": 1}
    )
    assert (transcript.id, transcript.task, transcript.use_case) == ("7", "3", "orders")
    assert transcript.tools == {"get": {"type": "object", "required": ["id"]}}
    assert transcript.extra["reward"] == 1


def test_results_without_ids_answer_the_first_open_call_of_their_tool():
    transcript = read_transcript(
        [
            {"role": "assistant", "function_call": {"name": "a", "arguments": "{}"}},
            {"role": "assistant", "function_call": {"name": "b", "arguments": ""}},
            {"role": "function", "name": "b", "content": {"found": [1]}},
            {"role": "function", "name": "a", "content": None},
            {"role": "tool", "tool_call_id": "unknown", "content": "lost"},
        ]
    )
    assert transcript.events[2:] == (
        Result(2, "b", '{"found": [1]}', False, 2),
        Result(1, "a", "", False, 3),
        Result(None, "", "lost", False, 4),
    )


def test_a_result_with_an_id_that_is_used_again_answers_the_newest_open_call():
    called = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {}}}]}
    result = {"role": "tool", "tool_call_id": "a", "content": "ok"}
    events = read_transcript([called, called, result, result, result]).events
    assert [each.call for each in events if isinstance(each, Result)] == [2, 1, None]


@pytest.mark.parametrize("arguments", ['{"id": ', "[1]", "null"])
def test_what_a_model_wrote_that_is_no_object_is_a_malformed_call(arguments):
    call = {"id": "c", "function": {"name": "get", "arguments": arguments}}
    transcript = read_transcript([{"role": "assistant", "tool_calls": [call]}])
    assert transcript.events == (Call("get", {}, "c", arguments, 0),)


def assistant(calls):
    return [{"role": "assistant", "tool_calls": calls}]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ([], "empty"),
        ([{"role": "system", "content": "be nice"}], "empty"),
        (assistant([{"id": "c", "function": {"name": "get"}}]), "message 0.*no arguments"),
        (assistant([{"function": {"arguments": "{}"}}]), "message 0.*without a name"),
        (assistant(["get"]), "message 0.*no object"),
        ([*OPENAI, {"role": "clerk", "content": "x"}], "message 6 is no chat message"),
        ([*LANGCHAIN, "bye"], "message 6 is no chat message"),
        ([{"role": "user", "content": 5}], "message 0: the content is int"),
        ("hello", "no known format: str"),
        ({"dialog": []}, "no known format: an object with the keys 'dialog'"),
        ([["hi"]], "no known format: a list of list"),
        ({"traj": "x"}, "`traj` is no list"),
        ({"messages": OPENAI, "tools": [{}]}, "its `tools`"),
    ],
)
def test_a_broken_record_is_told_and_does_not_stop_the_rest(record, said):
    with pytest.raises(InputError, match=said):
        read_transcript(record)
    good, broken, also_good = read_transcripts([{"messages": OPENAI}, record, OPENAI])
    assert isinstance(good, Transcript)
    assert isinstance(also_good, Transcript)
    assert str(broken.error).startswith("record 1: ")


PRE_ACT = {
    "Conversation": {
        "Step 1_H": "Human: Where is my order?",
        "Step 1_A": "AI: Its number, please?",
        "Step 2_H": "Human: 17: the red one",
        "Int_Step 2.1": "Tool: get_order, Tool_Inputs: {'id': 17, 'fast': True, 'note': None},"
        " Observation: {'status': 'sent'}",
        "Int_Step 2.2": "Tool: note, Tool_Inputs: {'text': \"see, Observation: none\", 'tags': ('a', 'b')},"
        " Observation: ok, Observation: twice",
        "Int_Step 2.3": "Tool: close, Tool_Inputs: {}, Observation: ",
        "Step 2_A": "AI: It is on its way.",
    },
    "id": "t1",
}


def test_the_step_format_of_the_pre_act_authors_is_read_in_order():
    transcript = read_transcript(PRE_ACT)
    first, second, third = "Int_Step 2.1", "Int_Step 2.2", "Int_Step 2.3"
    noted = {"text": "see, Observation: none", "tags": ("a", "b")}
    assert transcript.id == "t1"
    assert transcript.events == (
        Message("user", "Where is my order?", "Step 1_H"),
        Message("agent", "Its number, please?", "Step 1_A"),
        Message("user", "17: the red one", "Step 2_H"),
        Call("get_order", {"id": 17, "fast": True, "note": None}, first, None, first),
        Result(4, "get_order", "{'status': 'sent'}", False, first),
        Call("note", noted, second, None, second),
        Result(6, "note", "ok, Observation: twice", False, second),
        Call("close", {}, third, None, third),
        Result(8, "close", "", False, third),
        Message("agent", "It is on its way.", "Step 2_A"),
    )
    assert read_transcript(PRE_ACT["Conversation"]).events == transcript.events


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ({"Step 1": "Human: hi"}, "'Step 1' is none of"),
        ({"Step 1_H": ["hi"]}, "Step 1_H is no text"),
        ({"Int_Step 1.1": "I wonder"}, "Int_Step 1.1 is not of the form"),
        (
            {"Int_Step 1.1": "Tool: a, Tool_Inputs: {'x': datetime(2024)}, Observation: ok"},
            "Int_Step 1.1: the tool's",
        ),
    ],
)
def test_a_broken_step_is_named(steps, said):
    with pytest.raises(InputError, match=said):
        read_transcript({"Conversation": steps})


def test_tau_bench_results_bring_task_gold_actions_and_reward():
    actions = [{"name": "get", "kwargs": {"id": 1}}]
    transcript = read_transcript(
        {"task_id": 4, "trial": 2, "reward": 0.0, "info": {"task": {"actions": actions}}, "traj": OPENAI}
    )
    assert transcript.events == EVENTS
    assert (transcript.id, transcript.task) == ("task 4, trial 2", "4")
    assert (transcript.extra["actions"], transcript.extra["reward"]) == (actions, 0.0)


KEYS = (
    "role content type tool_calls name arguments function id args traj messages Conversation data kwargs lc"
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS.split()) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system"])},
    optional=dict.fromkeys(["content", "tool_calls", "tool_call_id", "name"], json_values),
)


@settings(max_examples=30)
@given(json_values | st.lists(messages, max_size=4) | st.fixed_dictionaries({"Conversation": json_values}))
def test_any_record_is_a_transcript_or_a_clear_error(record):
    try:
        assert read_transcript(record).events
    except InputError as error:
        assert str(error)


# --- Glaive --------------------------------------------------------------------------------------------------------

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
GLAIVE = {"system": SYSTEM, "chat": CHAT, "id": 7}


def call_written(text: str) -> Call:
    transcript = read_transcript({"chat": f"USER: hello\n\n\nASSISTANT: <functioncall> {text} <|endoftext|>"})
    [(_, call)] = transcript.calls()
    return call


def test_glaive_texts_are_read_with_their_functions():
    transcript = read_transcript(GLAIVE)
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
    # A function without arguments is a tool as well.
    assert [tool["name"] for tool in transcript.extra["tools"]] == ["get_order", "roll_dice"]


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
def test_a_broken_glaive_record_is_told(record, said):
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
