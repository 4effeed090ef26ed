"""Chat messages, the form into which every format is brought, and the events in them.

They may be LangChain's objects (anything with `type` and `content`), or their serialized form from `model_dump()`,
`messages_to_dict()`, `dumpd()` or LangGraph's API; or OpenAI's, as the chat completions API takes and returns them.
The arguments of a call may be an object or the text that a model wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.transcript import Call, Event, Message, Result
from arq_graph.milestones.values import as_text

_SPEAKERS: dict[str, Any] = {
    "human": "user",
    "user": "user",
    "ai": "agent",
    "assistant": "agent",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_CALL_KEYS = ("tool_calls", "invalid_tool_calls", "function_call")
_TEXT_BLOCKS = ("text", "input_text", "output_text", "refusal")


def is_message(value: Any) -> bool:
    """Return whether this is a chat message, as an object or serialized."""
    return _get_speaker(_get_fields(value)) is not None


def get_message_list(record: Any) -> Sequence[Any] | None:
    """Return the list that a record is, or has under `messages`; None if there is none."""
    if isinstance(record, Mapping):
        record = record.get("messages")
    return record if isinstance(record, list | tuple) else None


def can_read(record: Any) -> bool:
    """Return whether a record is a list of chat messages, or an object that has one under `messages`."""
    messages = get_message_list(record)
    return messages is not None and len(messages) > 0 and is_message(messages[0])


def read(record: Any) -> dict[str, Any]:
    """Return the record itself; a list alone becomes its `messages`."""
    if isinstance(record, Mapping):
        return dict(record)
    return {"messages": record}


def parse_messages(messages: Iterable[Any]) -> tuple[list[Event], str]:
    """Return the events in chat messages, and the agent's instructions: the system messages before the first event.

    Raises:
        InputError: An item isn't a chat message, or is broken.
    """
    events: list[Event] = []
    instructions: list[str] = []
    unanswered_calls: dict[int, Call] = {}
    for index, message in enumerate(messages):
        fields = _get_fields(message)
        speaker = _get_speaker(fields)
        step = fields.get("step", index)
        if speaker is None:
            known_names = ", ".join(_SPEAKERS)
            raise InputError(
                f"message {index} is not a chat message: its `type` or `role` is none of {known_names}"
            )
        if speaker == "tool":
            events.append(_parse_result(fields, unanswered_calls, step))
            continue
        text = _get_text(fields.get("content") or fields.get("refusal"), step)
        calls = []
        if speaker == "agent":
            calls = list(_parse_calls(fields, step))
        if speaker == "system" and not events:
            instructions.append(text)
        elif text or not calls:
            events.append(Message(speaker, text, step))
        for call in calls:
            events.append(call)
            unanswered_calls[len(events)] = call
    return events, "\n\n".join(filter(None, instructions))


def _get_fields(message: Any) -> Mapping[str, Any]:
    if not isinstance(message, Mapping):
        fields: Mapping[str, Any] = getattr(message, "__dict__", {})
        return fields
    if isinstance(message.get("kwargs"), Mapping) and message.get("lc") is not None:
        class_path = message.get("id") or [""]
        return {"type": class_path[-1], **message["kwargs"]}
    if isinstance(message.get("data"), Mapping):
        return {**message["data"], "type": message.get("type")}
    return message


def _get_speaker(fields: Mapping[str, Any]) -> Any:
    names = [fields.get("role")]
    if "content" in fields:
        names.insert(0, fields.get("type"))
    for name in names:
        if isinstance(name, str):
            speaker = _SPEAKERS.get(name.removesuffix("Chunk").removesuffix("Message").lower())
            if speaker is not None:
                return speaker
    return None


def _parse_result(fields: Mapping[str, Any], unanswered_calls: dict[int, Call], step: Any) -> Result:
    """Return the result in a tool's message, and take the call that it answers out of the unanswered ones."""
    number = _find_answered_call(fields, unanswered_calls)
    tool = fields.get("name")
    if number is not None:
        tool = unanswered_calls.pop(number).tool
    return Result(
        call=number,
        tool=tool if isinstance(tool, str) else "",
        text=_get_result_text(fields.get("content")),
        failed=fields.get("status") == "error",
        step=step,
    )


def _find_answered_call(fields: Mapping[str, Any], unanswered_calls: dict[int, Call]) -> int | None:
    """Return the newest unanswered call with the result's id; without an id, the first one of its tool."""
    id, tool = fields.get("tool_call_id"), fields.get("name")
    if id is not None:
        for number in reversed(unanswered_calls):
            if unanswered_calls[number].id == str(id):
                return number
        return None
    for number, call in unanswered_calls.items():
        if not tool or call.tool == tool:
            return number
    return None


def _parse_calls(fields: Mapping[str, Any], step: Any) -> Iterator[Call]:
    for key in _CALL_KEYS:
        calls = fields.get(key) or []
        if not isinstance(calls, list | tuple):
            calls = [calls]
        for call in calls:
            yield _parse_call(call, step)


def _parse_call(call: Any, step: Any) -> Call:
    # OpenAI has name and arguments in `function`, LangChain and some recorders in the call itself.
    function = call
    if isinstance(call, Mapping):
        function = call.get("function", call)
    if not isinstance(function, Mapping):
        raise InputError(f"message {step}: a tool call is not an object")
    tool = function.get("name")
    arguments = function.get("args", function.get("arguments"))
    if not isinstance(tool, str) or not tool:
        raise InputError(f"message {step}: a tool call without a name")
    if arguments is None:
        raise InputError(f"message {step}: the call of {tool!r} has no arguments; an empty object is {{}}")
    id = None if call.get("id") is None else str(call["id"])
    parsed = arguments
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            # Several providers write nothing at all for a tool without arguments.
            parsed = json.loads(arguments) if arguments.strip() else {}
    if isinstance(parsed, Mapping):
        return Call(tool, parsed, id, step=step)
    return Call(tool, {}, id, malformed=str(arguments), step=step)


def _get_text(content: Any, step: Any) -> str:
    """Return the text of a message's content: a text, nothing, or a list of content blocks."""
    if isinstance(content, str):
        return content
    if not content:
        return ""
    if isinstance(content, list | tuple):
        return "\n".join(filter(None, map(_get_block_text, content)))
    raise InputError(
        f"message {step}: the content is {type(content).__name__}, not text and not a list of blocks"
    )


def _get_result_text(content: Any) -> str:
    """Return the content of a tool's message as text; what isn't text, as JSON."""
    if content is None:
        return ""
    if isinstance(content, list | tuple) and content and all(map(_is_block, content)):
        return "\n".join(filter(None, map(_get_block_text, content)))
    try:
        return as_text(content)
    except (ValueError, RecursionError):
        raise InputError("what a tool returned is nested too deep, or contains itself") from None


def _is_block(block: Any) -> bool:
    return isinstance(block, str) or (isinstance(block, Mapping) and isinstance(block.get("type"), str))


def _get_block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    if not isinstance(block, Mapping) or block.get("type") not in _TEXT_BLOCKS:
        return ""
    text = block.get("text", block.get("refusal"))
    return text if isinstance(text, str) else ""
