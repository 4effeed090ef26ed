"""Chat messages, the form into which every format is brought, and what happened in them.

They may be LangChain's objects (anything with `type` and `content`), or what `model_dump()`, `messages_to_dict()`,
`dumpd()` or LangGraph's API write of them; or OpenAI's, as the chat completions API takes and gives them. The arguments
of a call may be an object or the text that a model wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
_TEXT_BLOCKS = ("text", "input_text", "output_text", "refusal")


def is_message(value: Any) -> bool:
    """Whether this is a chat message, or one written down."""
    return _speaker(_fields(value)) is not None


def listed(record: Any) -> Sequence[Any] | None:
    """The list that a record is, or has under `messages`; None where there is none."""
    found = record.get("messages") if isinstance(record, Mapping) else record
    return found if isinstance(found, list | tuple) else None


def fits(record: Any) -> bool:
    """Whether a record is a list of chat messages, or an object that has one under `messages`."""
    messages = listed(record)
    return messages is not None and len(messages) > 0 and is_message(messages[0])


def read(record: Any) -> dict[str, Any]:
    """The record itself; a list alone becomes its `messages`."""
    return dict(record) if isinstance(record, Mapping) else {"messages": record}


def parse_messages(messages: Iterable[Any]) -> tuple[list[Event], str]:
    """What happened in chat messages, and what the agent was instructed before."""
    events: list[Event] = []
    instructions: list[str] = []
    waiting: dict[int, Call] = {}
    for index, message in enumerate(messages):
        fields = _fields(message)
        speaker, step = _speaker(fields), fields.get("step", index)
        if speaker is None:
            known = ", ".join(_SPEAKERS)
            raise InputError(f"message {index} is no chat message: its `type` or `role` is none of {known}")
        if speaker == "tool":
            number = _answered(fields, waiting)
            tool = waiting.pop(number).tool if number else fields.get("name")
            failed = fields.get("status") == "error"
            text = result_text(fields.get("content"))
            events.append(Result(number, tool if isinstance(tool, str) else "", text, failed, step))
            continue
        text = text_of(fields.get("content") or fields.get("refusal"), step)
        calls = list(_calls(fields, step)) if speaker == "agent" else []
        if speaker == "system" and not events:
            instructions.append(text)
        elif text or not calls:
            events.append(Message(speaker, text, step))
        for call in calls:
            events.append(call)
            waiting[len(events)] = call
    return events, "\n\n".join(filter(None, instructions))


def _fields(message: Any) -> Mapping[str, Any]:
    if isinstance(message, Mapping):
        if isinstance(message.get("kwargs"), Mapping) and message.get("lc") is not None:
            path = message.get("id") or [""]
            return {"type": path[-1], **message["kwargs"]}
        if isinstance(message.get("data"), Mapping):
            return {**message["data"], "type": message.get("type")}
        return message
    fields: Mapping[str, Any] = getattr(message, "__dict__", {})
    return fields


def _speaker(fields: Mapping[str, Any]) -> Any:
    for name in (fields.get("type") if "content" in fields else None, fields.get("role")):
        if isinstance(name, str):
            known = _SPEAKERS.get(name.removesuffix("Chunk").removesuffix("Message").lower())
            if known is not None:
                return known
    return None


def _answered(fields: Mapping[str, Any], waiting: dict[int, Call]) -> int | None:
    """The call that a result answers: the newest open one of its id, or the first open one of its tool."""
    id, tool = fields.get("tool_call_id"), fields.get("name")
    if id is not None:
        return next((number for number in reversed(waiting) if waiting[number].id == str(id)), None)
    return next((number for number, call in waiting.items() if not tool or call.tool == tool), None)


def _calls(fields: Mapping[str, Any], step: Any) -> Iterator[Call]:
    for given in (fields.get("tool_calls"), fields.get("invalid_tool_calls"), fields.get("function_call")):
        for call in given if isinstance(given, list | tuple) else [given] if given else []:
            # OpenAI keeps name and arguments in `function`, LangChain and some recorders in the call itself.
            function = call.get("function", call) if isinstance(call, Mapping) else None
            if not isinstance(function, Mapping):
                raise InputError(f"message {step}: a tool call is no object")
            tool, arguments = function.get("name"), function.get("args", function.get("arguments"))
            if not isinstance(tool, str) or not tool:
                raise InputError(f"message {step}: a tool call without a name")
            if arguments is None:
                raise InputError(
                    f"message {step}: the call of {tool!r} has no arguments; an empty object is {{}}"
                )
            id = None if call.get("id") is None else str(call["id"])
            read = _arguments(arguments)
            malformed = None if isinstance(read, Mapping) else str(arguments)
            yield Call(tool, {} if malformed is not None else read, id, malformed, step)


def _arguments(written: Any) -> Any:
    if not isinstance(written, str):
        return written
    try:
        # Several providers write nothing at all for a tool without arguments.
        return json.loads(written) if written.strip() else {}
    except (ValueError, RecursionError):
        return None


def text_of(content: Any, step: Any) -> str:
    """The text of a message's content: a text, nothing, or a list of content blocks."""
    if isinstance(content, str):
        return content
    if not content:
        return ""
    if isinstance(content, list | tuple):
        return "\n".join(filter(None, map(_block_text, content)))
    raise InputError(
        f"message {step}: the content is {type(content).__name__}, not text and not a list of blocks"
    )


def result_text(content: Any) -> str:
    """What a tool gave back, as text; what is no text, as JSON."""
    if content is None:
        return ""
    if isinstance(content, list | tuple) and content and all(map(_is_block, content)):
        return text_of(content, None)
    try:
        return as_text(content)
    except (ValueError, RecursionError):
        raise InputError("what a tool gave back is nested too deep, or holds itself") from None


def _is_block(block: Any) -> bool:
    return isinstance(block, str) or (isinstance(block, Mapping) and isinstance(block.get("type"), str))


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    if not isinstance(block, Mapping) or block.get("type") not in _TEXT_BLOCKS:
        return ""
    text = block.get("text", block.get("refusal"))
    return text if isinstance(text, str) else ""
