"""What may hold a call and isn't known is an error with its place, and the rest of the file is scored."""

import json
from contextlib import suppress

import pytest

from arq_graph.errors import InputError
from arq_graph.milestones import Message, read_transcript, read_transcripts, score_transcripts
from tests.milestones.recordings import ANTHROPIC, INSPECT, RECORDINGS, RESPONSES, TAU2, TELEMETRY_OUTPUT
from tests.milestones.reported import make_chain

UNKNOWN = {
    "a block": (
        [
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "hi"}, {"type": "tool_invoke", "tool": "x"}],
            }
        ],
        "message 0, part 1: a content block of the type 'tool_invoke' isn't known and may hold a tool call",
    ),
    "a block without a type": (
        [{"role": "assistant", "content": [{"text": "hi", "toolRequest": {"name": "x", "input": {}}}]}],
        "message 0, part 0: a content block with the keys 'text', 'toolRequest'",
    ),
    "a role": (
        [*ANTHROPIC, {"role": "function_executor", "content": "hi"}],
        "message 4 is not a chat message: its `type` or `role`, 'function_executor', is none of",
    ),
    "the first role": ([{"role": "critic", "content": "hi"}], "message 0 is not a chat message"),
    "a key": (
        [{"role": "assistant", "content": "hi", "actions": [{"name": "get_order", "args": {}}]}],
        "message 0: the key 'actions' isn't known and may hold a tool call",
    ),
    "a key of LangChain's": (
        [{"type": "ai", "content": "hi", "actions": [{"name": "get_order", "args": {}}]}],
        "message 0: the key 'actions'",
    ),
    "a key with results": (
        [{"role": "assistant", "content": "hi", "outcomes": {"first": {"toolCallId": "c", "value": 1}}}],
        "message 0: the key 'outcomes'",
    ),
    "nothing that is known": ([{"role": "user", "utterance": "hi"}], "message 0 says nothing"),
    "an item of the responses API": (
        [*RESPONSES, {"type": "teleport", "id": "t"}],
        "message 5, part 1: a content block of the type 'teleport'",
    ),
    "a response whose beginning is missing": (
        {"previous_response_id": "resp_1", "input": "hi", "output": RESPONSES[-1:]},
        "continues the response 'resp_1'",
    ),
    "several answers": (
        {"gen_ai.output.messages": TELEMETRY_OUTPUT * 2},
        "holds 2 choices",
    ),
    "an attribute that is cut off": (
        {"gen_ai.input.messages": '[{"role": '},
        "is not a list, nor the JSON of one",
    ),
    "a sender": (
        [{"from": "human", "value": "hi"}, {"from": "bing", "value": "hi"}],
        "message 1: `from` is 'bing'",
    ),
    "a call as text": (
        [{"from": "function_call", "value": "get_order(A-1)"}],
        "message 0: the tool call is not JSON",
    ),
    "an attachment": (INSPECT | {"attachments": {}}, "'attachment://h1' isn't among"),
    "audio": (TAU2 | {"messages": [], "ticks": [{}]}, "`ticks` of audio are not read"),
    "a call of the system": (
        [{"role": "system", "tool_calls": [{"id": "1", "name": "get_order", "arguments": {}}]}],
        "a tool call in a system message",
    ),
}


@pytest.mark.parametrize(("record", "message"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_may_hold_a_call_and_is_unknown_is_named_and_the_rest_is_scored(tmp_path, record, message):
    file = tmp_path / "talks.jsonl"
    file.write_text("\n".join(map(json.dumps, [{"messages": ANTHROPIC}, record, TAU2])), encoding="utf-8")
    report = score_transcripts(make_chain("get_order"), read_transcripts(file)).report()
    assert [talk.goal_completed for talk in report.conversations] == [True, True]
    [broken] = report.broken
    assert broken.error.startswith(f"{file}: record 1: ")
    assert message in broken.error
    with pytest.raises(InputError):
        read_transcript(record)


def test_keys_that_hold_no_call_are_left_out():
    message = {"role": "user", "content": "hi", "meta": {"lang": "en", "spans": [{"start": 0, "label": "x"}]}}
    assert read_transcript([message]).events == (Message("user", "hi", 0),)


def iterate_paths(value, path=()):
    """Yield the path of every value in a record that is part of a message."""
    if any(isinstance(key, int) for key in path):
        yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from iterate_paths(item, (*path, key))


def rename(record, path, *, value):
    """Return a copy of a record in which a key has another name, or a value is another text."""
    copy = json.loads(json.dumps(record))
    *parents, last = path
    container = copy
    for key in parents:
        container = container[key]
    if value:
        container[last] = "renamed"
    elif isinstance(container, dict):
        items = [("renamed" if key == last else key, item) for key, item in container.items()]
        container.clear()
        container.update(items)
    return copy


def list_called_tools(record):
    return [call.tool for _, call in read_transcript(record).enumerate_calls()]


@pytest.mark.parametrize("name", [name for name in RECORDINGS if "LangChain" not in name])
def test_no_unknown_key_type_or_role_makes_a_call_disappear(name):
    record = RECORDINGS[name]
    for path in iterate_paths(record):
        for value in (False, True):
            if value and path[-1] not in ("type", "role", "from", "state"):
                continue
            with suppress(InputError):
                tools = list_called_tools(rename(record, path, value=value))
                assert tools == ["get_order"], path
