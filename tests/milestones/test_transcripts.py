"""Reading transcripts: formats, files, and records that are broken."""

import json

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    ToolMessage,
    convert_to_messages,
    messages_to_dict,
)

from arq_graph.errors import InputError
from arq_graph.milestones import (
    BrokenRecord,
    Call,
    Message,
    Result,
    Transcript,
    read_transcript,
    read_transcripts,
)

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
LANGCHAIN = convert_to_messages(OPENAI)
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
def test_chat_messages_are_read_in_every_serialized_form(messages):
    transcript = read_transcript(messages, id="talk")
    assert transcript.events == EVENTS
    assert (transcript.id, transcript.instructions) == ("talk", "You are a clerk.")
    assert read_transcript({"messages": messages}).events == EVENTS
    [transcript] = read_transcripts(messages)
    assert transcript.events == EVENTS


def test_langchain_marks_failed_results_and_malformed_calls():
    broken = AIMessage(
        "", invalid_tool_calls=[{"name": "get", "args": '{"id": ', "id": "c1", "error": "cut off"}]
    )
    failed = ToolMessage("no", tool_call_id="c1", status="error", name="get")
    late = [ChatMessage("Stop.", role="developer")]
    transcript = read_transcript([broken, failed, AIMessageChunk(""), ChatMessage("ok", role="user"), *late])
    assert transcript.events == (
        Call("get", {}, "c1", '{"id": ', 0),
        Result(1, "get", "no", True, 1),
        Message("agent", "", 2),
        Message("user", "ok", 3),
        Message("system", "Stop.", 4),
    )


def test_a_record_may_have_id_task_use_case_tools_and_more():
    function = {"name": "get", "parameters": {"type": "object", "required": ["id"]}}
    tools = [{"type": "function", "function": function}]
    transcript = read_transcript(
        {"id": 7, "task_id": 3, "use_case": "orders", "messages": OPENAI, "tools": tools, "reward": 1}
    )
    assert (transcript.id, transcript.task, transcript.use_case) == ("7", "3", "orders")
    assert transcript.tools == {"get": {"type": "object", "required": ["id"]}}
    assert transcript.extra["reward"] == 1
    assert read_transcript({"thread_id": 9, "messages": OPENAI}).id == "9"


def test_a_result_answers_the_newest_open_call_of_its_id_or_the_first_of_its_tool():
    called = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {}}}]}
    result = {"role": "tool", "tool_call_id": "1", "content": "ok"}
    old_calls = [{"role": "assistant", "function_call": {"name": name, "arguments": ""}} for name in "ab"]
    old_results = [{"role": "function", "name": name, "content": {"found": [1]}} for name in "ba"]
    messages = [called, called, result, result, result, *old_calls, *old_results]
    events = read_transcript(messages).events
    results = [(event.call, event.tool) for event in events if isinstance(event, Result)]
    assert results == [(2, "f"), (1, "f"), (None, ""), (7, "b"), (6, "a")]
    assert events[-1].text == '{"found": [1]}'


def make_calls(calls):
    return [{"role": "assistant", "tool_calls": calls}]


@pytest.mark.parametrize("arguments", ['{"id": ', "[1]", "null"])
def test_arguments_that_are_not_a_json_object_make_a_malformed_call(arguments):
    call = {"id": "c", "function": {"name": "get", "arguments": arguments}}
    assert read_transcript(make_calls([call])).events == (Call("get", {}, "c", arguments, 0),)


PRE_ACT = {
    "Conversation": {
        "Step 1_H": "Human: 17: the red one",
        "Int_Step 1.1": "Tool: get_order, Tool_Inputs: {'id': 17, 'fast': True, 'note': None},"
        " Observation: {'status': 'sent'}",
        "Int_Step 1.2": "Tool: note, Tool_Inputs: {'text': \"see, Observation: none\", 'tags': ('a', 'b')},"
        " Observation: ok, Observation: twice",
        "Int_Step 1.3": "Tool: close, Tool_Inputs: {}",
        "Step 1_A": "AI: It is on its way.",
    },
    "id": "t1",
}


def test_pre_act_steps_are_read_in_order():
    transcript = read_transcript(PRE_ACT)
    first, second, third = "Int_Step 1.1", "Int_Step 1.2", "Int_Step 1.3"
    note_arguments = {"text": "see, Observation: none", "tags": ("a", "b")}
    assert (transcript.id, transcript.extra) == ("t1", {"id": "t1"})
    assert transcript.events == (
        Message("user", "17: the red one", "Step 1_H"),
        Call("get_order", {"id": 17, "fast": True, "note": None}, first, None, first),
        Result(2, "get_order", "{'status': 'sent'}", False, first),
        Call("note", note_arguments, second, None, second),
        Result(4, "note", "ok, Observation: twice", False, second),
        Call("close", {}, third, None, third),
        Message("agent", "It is on its way.", "Step 1_A"),
    )
    assert read_transcript(PRE_ACT["Conversation"]).events == transcript.events


def test_tau_bench_results_have_task_gold_actions_and_reward():
    actions = [{"name": "get", "kwargs": {"id": 1}}]
    transcript = read_transcript(
        {"task_id": 4, "trial": 2, "reward": 0.0, "info": {"task": {"actions": actions}}, "traj": OPENAI}
    )
    assert transcript.events == EVENTS
    assert (transcript.id, transcript.task) == ("task 4, trial 2", "4")
    assert (transcript.extra["actions"], transcript.extra["reward"]) == (actions, 0.0)


SYSTEM = """SYSTEM: You are a clerk with access to the following functions. Use them if required -
{"name": "get_order", "description": "Look an order up",
    "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}}

{"name": "roll_dice", "parameters": {}}
"""
CHAT = """USER: Where is A-1?


ASSISTANT: Let me see. <functioncall> {"name": "get_order", "arguments": '{"id": "A-1"}'} \
<functioncall> {"name": "roll_dice", "arguments": {}} So. <|endoftext|>


FUNCTION RESPONSE: {"status": "late"}
FUNCTION RESPONSE: 12
ASSISTANT: It is late. <|endoftext|>
"""


def test_glaive_texts_are_read_with_their_functions():
    transcript = read_transcript({"system": SYSTEM, "chat": CHAT, "id": 7})
    assert transcript.events == (
        Message("user", "Where is A-1?", 0),
        Message("agent", "Let me see.\nSo.", 1),
        Call("get_order", {"id": "A-1"}, None, None, 1),
        Call("roll_dice", {}, None, None, 1),
        Result(3, "get_order", '{"status": "late"}', False, 2),
        Result(4, "roll_dice", "12", False, 3),
        Message("agent", "It is late.", 4),
    )
    assert transcript.id == "7"
    assert transcript.instructions.startswith("You are a clerk")
    assert transcript.instructions.endswith("if required -")
    assert transcript.tools["get_order"]["required"] == ["id"]
    # A function without arguments is a tool as well.
    assert [tool["name"] for tool in transcript.extra["tools"]] == ["get_order", "roll_dice"]


@pytest.mark.parametrize(
    ("text", "arguments", "malformed"),
    [
        ("""{"name": "f", "arguments": {"a": 1}}""", {"a": 1}, None),
        ("""{"name": "f", "arguments": "{\\"a\\": 1}"}""", {"a": 1}, None),
        ("""{"name": "f", "arguments": '{"a": "it's late"}'}""", {"a": "it's late"}, None),
        ("""{"name": "f", "arguments": '{"a": "it\\'s late"}'}""", {"a": "it's late"}, None),
        ("""{"name": "f", "arguments": '{"a": "}'}"}'}""", {"a": "}'}"}, None),
        ("""{"name": "f", "arguments": '{"a": "two\nlines"}'}""", {"a": "two\nlines"}, None),
        ("""{"name": "f"}""", {}, None),
        ("""{"name": "f", "arguments": '{"a": }'}""", {}, '{"a": }'),
        ("""{"name": "f", "arguments": '{"a": "no end""", {}, """, "arguments": '{"a": "no end """),
    ],
)
def test_glaive_arguments_are_parsed_however_they_are_quoted(text, arguments, malformed):
    transcript = read_transcript({"chat": f"USER: hello\nASSISTANT: <functioncall> {text} <|endoftext|>"})
    assert transcript.events[1:] == (Call("f", arguments, None, malformed, 1),)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ([], "empty"),
        (make_calls([{"id": "c", "function": {"name": "get"}}]), "message 0.*no arguments"),
        (make_calls([{"function": {"arguments": "{}"}}]), "message 0.*without a name"),
        (make_calls(["get"]), "message 0.*not an object"),
        ([*OPENAI, {"role": "clerk", "content": "x"}], "message 6 is not a chat message"),
        ([{"role": "user", "content": 5}], "message 0: the content is int"),
        ("hello", "unknown format: str"),
        ({"dialog": []}, "unknown format: an object with the keys 'dialog'"),
        ({"traj": "x"}, "`traj` is not a list"),
        ({"messages": OPENAI, "tools": [{}]}, "its `tools`"),
        ({"Conversation": {"Step 1": "Human: hi"}}, "'Step 1' isn't known"),
        ({"Conversation": {"Step 1_H": ["hi"]}}, "Step 1_H is not text"),
        ({"Conversation": {"Int_Step 1.1": "I wonder"}}, "Int_Step 1.1 is not of the form"),
        ({"Int_Step 1.1": "Tool: a, Tool_Inputs: {'x': datetime(2024)}"}, "Int_Step 1.1: the tool's"),
        (
            {"chat": "USER: hi\nASSISTANT: <functioncall> nothing"},
            "part 1: the function call cannot be parsed",
        ),
        ({"chat": """USER: hi\nASSISTANT: <functioncall> {"arguments": {}}"""}, "without a name"),
        ({"chat": "hello USER: hi"}, "does not begin with `USER:`"),
        ({"system": 'Use {"name": ', "chat": CHAT}, "SYSTEM: function 1 is not JSON"),
    ],
)
def test_a_broken_record_is_reported_and_does_not_stop_the_rest(record, message):
    with pytest.raises(InputError, match=message):
        read_transcript(record)
    good, broken, also_good = read_transcripts([{"messages": OPENAI}, record, OPENAI])
    assert isinstance(good, Transcript)
    assert isinstance(also_good, Transcript)
    assert str(broken.error).startswith("record 1: ")


TALK = [{"role": "user", "content": 'hello, {world} [1, "2"] \\'}, {"role": "assistant", "content": "hi"}]
A, B = (json.dumps({"id": id, "messages": TALK}) for id in "ab")
DEEP = "[" * 100_000 + "]" * 100_000


def read_file(file, text, encoding="utf-8"):
    """Write and read a file, and return the ids of its conversations, and messages for its broken records."""
    file.write_text(text, encoding=encoding)
    records = list(read_transcripts(file))
    return [str(record.error) if isinstance(record, BrokenRecord) else record.id for record in records]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (f"[{A}, {B}]", ["a", "b"]),
        (json.dumps([json.loads(A), json.loads(B)], indent=2), ["a", "b"]),
        (f"{A}\n\n{B}\n", ["a", "b"]),
        (A, ["a"]),
        (f"\ufeff\n  [{A}]", ["a"]),
        (json.dumps(TALK, indent=2), ["0"]),
        (json.dumps([TALK, TALK]), ["0", "1"]),
        (f"{json.dumps(TALK)}\n{json.dumps(TALK)}", ["0", "1"]),
        ("[]", []),
    ],
)
def test_a_file_is_a_list_lines_or_one_conversation(tmp_path, text, ids):
    assert read_file(tmp_path / "talks.json", text) == ids


@pytest.mark.parametrize("broken", ['{"messages": [', DEEP], ids=["cut off", "too deep"])
@pytest.mark.parametrize("name", ["talks.jsonl", "talks.json"])
def test_a_broken_line_does_not_stop_the_rest(tmp_path, name, broken):
    first, error, last = read_file(tmp_path / name, f"{A}\n{broken}\n{B}")
    assert (first, last) == ("a", "b")
    assert error.startswith(f"{tmp_path / name}: record 1: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"[{A}, {B}"[:-9], "record 0: not JSON"),
        (json.dumps([*TALK, "bye"]), "message 2 is not a chat message"),
        ("id,text\n1,hello\n", "record 0: no"),
    ],
)
def test_half_a_file_or_another_kind_of_file_gives_no_transcript(tmp_path, text, message):
    [error] = read_file(tmp_path / "talks.json", text)
    assert message in error


def test_a_file_that_cannot_be_read_at_all_is_refused(tmp_path):
    file = tmp_path / "talks.json"
    with pytest.raises(InputError, match="empty: it holds no"):
        read_file(file, " \n ")
    with pytest.raises(InputError, match="not UTF-8 text"):
        read_file(file, "[ÿ]", "utf-16")
    with pytest.raises(InputError, match="No such file"):
        list(read_transcripts(tmp_path / "none.json"))
