"""LangChain messages, the form into which every format is brought, and what happened in them.

They may be objects (anything with `type` and `content`), or written as `model_dump()` and LangGraph's API give them, as
`messages_to_dict()` does, or as `dumpd()` does. The `args` of a call may also be the text that a model wrote.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.transcript import Call, Event, Message, Result, Speaker, Transcript
from arq_graph.milestones.values import as_text

Step = int | str | None

_TEXT_BLOCKS = ("text", "input_text", "output_text", "refusal")
_TYPES = {
    "human": "user",
    "user": "user",
    "ai": "agent",
    "assistant": "agent",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_FIELDS = [
    "type",
    "content",
    "tool_calls",
    "invalid_tool_calls",
    "tool_call_id",
    "status",
    "name",
    "role",
]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a reader takes out of one record: LangChain messages, and the record's other fields but those named.

    A message may name its own place in the record as `step`. Of the fields, `id`, `task_id`, `use_case` and `tools` are
    known; whatever else the record brings is kept beside them.
    """

    messages: Iterable[Any]
    held: Mapping[str, Any] = field(default_factory=dict)
    but: tuple[str, ...] = ()


def is_message(value: Any) -> bool:
    """Whether this looks like a LangChain message, or like one written down."""
    return _kind(_fields(value)) is not None


def listed(record: Any) -> Sequence[Any] | None:
    """The list that a record is, or has under `messages`; None where there is none."""
    found = record.get("messages") if isinstance(record, Mapping) else record
    return found if isinstance(found, list | tuple) else None


def fits(record: Any) -> bool:
    """Whether a record is a list of LangChain messages, or an object that has one under `messages`."""
    messages = listed(record)
    return messages is not None and len(messages) > 0 and is_message(messages[0])


def read(record: Any) -> Recorded:
    """The messages of a record, and what else it says."""
    messages = listed(record)
    if messages is None:
        raise InputError("no list of messages, and no object with one under `messages`")
    return Recorded(messages, record if isinstance(record, Mapping) else {}, ("messages",))


def read_messages(messages: Iterable[Any], *, id: str = "") -> Transcript:
    """The conversation that LangChain messages hold."""
    events, instructions = events_of(messages)
    return Transcript(tuple(events), id=id, instructions=instructions)


def events_of(messages: Iterable[Any]) -> tuple[list[Event], str]:
    """What happened in LangChain messages, and what the agent was instructed before."""
    recording = Recording()
    for index, message in enumerate(messages):
        fields = _fields(message)
        kind = _kind(fields)
        if kind is None:
            raise InputError(f"message {index} is no LangChain message: it has no known `type`")
        step, content = fields.get("step", index), fields.get("content")
        if kind == "agent":
            _agent(recording, fields, step)
        elif kind == "user":
            recording.say("user", text_of(content, step), step)
        elif kind == "system":
            recording.instruct(text_of(content, step), step)
        else:
            failed = fields.get("status") == "error"
            answered = (fields.get("tool_call_id"), fields.get("name"))
            recording.answer(*answered, result_text(content), step, failed=failed)
    return recording.events, "\n\n".join(recording.instructions)


def _agent(recording: Recording, fields: Mapping[str, Any], step: Any) -> None:
    text = text_of(fields.get("content"), step)
    calls = [*(fields.get("tool_calls") or ()), *(fields.get("invalid_tool_calls") or ())]
    if text or not calls:
        recording.say("agent", text, step)
    for call in calls:
        if not isinstance(call, Mapping):
            raise InputError(f"message {step}: a tool call is no object")
        recording.call(call.get("name"), call.get("args"), call.get("id"), step)


def _fields(message: Any) -> Mapping[str, Any]:
    if isinstance(message, dict) and "kwargs" not in message and "data" not in message:
        return message  # the usual case, and there are many
    if isinstance(message, Mapping):
        if isinstance(message.get("kwargs"), Mapping) and message.get("lc") is not None:
            path = message.get("id") or [""]
            return {"type": str(path[-1]).removesuffix("Message").lower(), **message["kwargs"]}
        if isinstance(message.get("data"), Mapping):
            return {**message["data"], "type": message.get("type")}
        return message
    if hasattr(type(message), "model_fields"):  # asking a Pydantic model for what it lacks is slow
        return {name: vars(message).get(name) for name in _FIELDS}
    return {name: getattr(message, name, None) for name in _FIELDS}


def _kind(fields: Mapping[str, Any]) -> str | None:
    name = fields.get("type")
    if not isinstance(name, str) or "content" not in fields:
        return None
    if name in _TYPES:
        return _TYPES[name]
    if name in ("chat", "ChatMessageChunk"):
        return _TYPES.get(str(fields.get("role")).lower())
    return _TYPES.get(name.removesuffix("MessageChunk").lower())


class Recording:
    """The events of one conversation, in the order in which they are told."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.instructions: list[str] = []
        # Calls without a result, by event number; and in which order they may be answered, by id and by tool.
        self._open: dict[int, Call] = {}
        self._by_id: dict[str, list[int]] = {}
        self._by_tool: dict[str, deque[int]] = {}

    def instruct(self, text: str, step: Step) -> None:
        """The system prompt; one that comes later, in the middle of the conversation, is an event."""
        if self.events:
            self.events.append(Message("system", text, step))
        elif text:
            self.instructions.append(text)

    def say(self, speaker: Speaker, text: str, step: Step) -> None:
        """Something is said."""
        self.events.append(Message(speaker, text, step))

    def call(self, tool: Any, arguments: Any, id: Any, step: Step) -> None:
        """A tool is called."""
        if not isinstance(tool, str) or not tool:
            raise InputError(f"message {step}: a tool call without a name")
        if arguments is None:
            raise InputError(
                f"message {step}: the call of {tool!r} has no arguments; an empty object is {{}}"
            )
        read: Any = arguments
        if isinstance(arguments, str):
            try:
                # Several providers write nothing at all for a tool without arguments.
                read = json.loads(arguments) if arguments.strip() else {}
            except (ValueError, RecursionError):
                read = None
        known = str(id) if id is not None else None
        if isinstance(read, Mapping):
            call = Call(tool, read, known, None, step)
        else:
            call = Call(tool, {}, known, str(arguments), step)
        self.events.append(call)
        number = len(self.events)
        self._open[number] = call
        if known is not None:
            self._by_id.setdefault(known, []).append(number)
        for name in ("", tool):
            self._by_tool.setdefault(name, deque()).append(number)

    def answer(self, id: Any, tool: Any, text: str, step: Step, *, failed: bool = False) -> None:
        """A tool gives something back."""
        name = tool if isinstance(tool, str) else ""
        waiting: Any = self._by_tool.get(name) if id is None else self._by_id.get(str(id))
        number = self._next(waiting, newest=id is not None)
        if number is None:
            self.events.append(Result(None, name, text, failed, step))
        else:
            self.events.append(Result(number, self._open.pop(number).tool, text, failed, step))

    def _next(self, waiting: Any, *, newest: bool) -> int | None:
        """The newest or the first of these calls that is open; what was answered is dropped on the way."""
        while waiting:
            number: int = waiting.pop() if newest else waiting.popleft()
            if number in self._open:
                return number
        return None


def text_of(content: Any, step: Step) -> str:
    """The text of a message's content: a text, nothing, or a list of content blocks."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list | tuple):
        return "\n".join(text for text in map(_block_text, content) if text)
    raise InputError(
        f"message {step}: the content is {type(content).__name__}, not text and not a list of blocks"
    )


def result_text(content: Any) -> str:
    """What a tool gave back, as text; what is no text, as JSON."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list | tuple) and content and all(_is_block(block) for block in content):
        return "\n".join(text for text in map(_block_text, content) if text)
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
