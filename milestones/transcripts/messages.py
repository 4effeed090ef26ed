"""LangChain messages, the form into which every format is brought, and what happened in them.

They may be objects (anything with `type` and `content`), or written as `model_dump()` and LangGraph's API give them, as
`messages_to_dict()` does, or as `dumpd()` does. The `args` of a call may also be the text that a model wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.transcript import Event, Transcript
from arq_graph.milestones.transcripts.recording import Recording, result_text, text_of

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
    "additional_kwargs",
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
    raw = fields.get("additional_kwargs")
    if not calls and isinstance(raw, Mapping) and raw.get("tool_calls"):
        # Messages of older versions keep the provider's own form only.
        from arq_graph.milestones.transcripts.openai import calls_of

        calls = calls_of(raw, step)
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
