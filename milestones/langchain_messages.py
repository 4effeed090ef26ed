"""Transcripts from LangChain messages: objects, or any of the ways in which they are written down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.openai_chat import record_calls
from arq_graph.milestones.recording import Recording, result_text, text_of
from arq_graph.milestones.transcript import Transcript

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

_FIELDS = (
    "content",
    "tool_calls",
    "invalid_tool_calls",
    "additional_kwargs",
    "tool_call_id",
    "status",
    "name",
    "role",
)


def is_message(value: Any) -> bool:
    """Whether this looks like a LangChain message, or like one written down."""
    return _kind(_fields(value)) is not None


def record_messages(messages: Iterable[Any]) -> Recording:
    """What happened in a list of LangChain messages.

    They are taken as objects (anything with `type` and `content`), as `model_dump()` and LangGraph's API give
    them, as `messages_to_dict()` does, and as `dumpd()` does.

    Raises:
        InputError: A message is none, or a tool call has no name or no arguments; its index is named.
    """
    recording = Recording()
    for index, message in enumerate(messages):
        fields = _fields(message)
        kind = _kind(fields)
        if kind is None:
            raise InputError(f"message {index} is no LangChain message: it has no known `type`")
        content = fields.get("content")
        if kind == "agent":
            _agent(recording, fields, index)
        elif kind == "user":
            recording.say("user", text_of(content, index), index)
        elif kind == "tool":
            recording.answer(
                fields.get("tool_call_id"),
                fields.get("name"),
                result_text(content),
                index,
                failed=fields.get("status") == "error",
            )
        else:
            recording.instruct(text_of(content, index), index)
    return recording


def read_thread(checkpointer: Any, thread_id: str, *, messages_key: str = "messages") -> Transcript:
    """The conversation of a LangGraph thread, as its checkpointer holds it.

    Args:
        checkpointer: Any LangGraph checkpointer.
        thread_id: The thread.
        messages_key: The channel that holds the messages.

    Raises:
        InputError: The checkpointer knows no such thread, or the thread has no messages there.
    """
    found = checkpointer.get_tuple({"configurable": {"thread_id": thread_id}})
    if found is None:
        raise InputError(
            f"the checkpointer holds no thread {thread_id!r}; is the id right, and the database?"
        )
    channels = found.checkpoint["channel_values"]
    if messages_key not in channels:
        names = ", ".join(sorted(map(repr, channels))) or "none"
        raise InputError(
            f"thread {thread_id!r} has no channel {messages_key!r}; its channels are {names}: name the one that "
            "holds the messages"
        )
    return read_messages(channels[messages_key], id=thread_id)


def read_messages(messages: Iterable[Any], *, id: str = "") -> Transcript:
    """The conversation that LangChain messages hold.

    Args:
        messages: The messages, as `record_messages` takes them.
        id: The conversation's id.

    Raises:
        InputError: There is none, or one of them is no message; its index is named.
    """
    recording = record_messages(messages)
    return Transcript(tuple(recording.events), id=id, instructions="\n\n".join(recording.instructions))


def _agent(recording: Recording, fields: Mapping[str, Any], index: int) -> None:
    text = text_of(fields.get("content"), index)
    calls = fields.get("tool_calls") or ()
    broken = fields.get("invalid_tool_calls") or ()
    # Messages of older versions keep the provider's own form only.
    raw = (fields.get("additional_kwargs") or {}).get("tool_calls") if not calls and not broken else None
    if text or not (calls or broken or raw):
        recording.say("agent", text, index)
    for call in (*calls, *broken):
        if not isinstance(call, Mapping):
            raise InputError(f"message {index}: a tool call is no object")
        recording.call(call.get("name"), call.get("args"), call.get("id"), index)
    if raw:
        record_calls(recording, raw, index)


def _fields(message: Any) -> Mapping[str, Any]:
    if isinstance(message, Mapping):
        if isinstance(message.get("kwargs"), Mapping) and message.get("lc") is not None:
            path = message.get("id") or [""]
            return {"type": str(path[-1]).removesuffix("Message").lower(), **message["kwargs"]}
        if isinstance(message.get("data"), Mapping):
            return {**message["data"], "type": message.get("type")}
        return message
    if hasattr(type(message), "model_fields"):  # asking a Pydantic model for what it lacks is slow
        return {name: vars(message).get(name) for name in ("type", *_FIELDS)}
    return {name: getattr(message, name, None) for name in ("type", *_FIELDS)}


def _kind(fields: Mapping[str, Any]) -> str | None:
    name = fields.get("type")
    if not isinstance(name, str) or "content" not in fields:
        return None
    if name in ("chat", "ChatMessageChunk"):
        return _TYPES.get(str(fields.get("role")).lower())
    return _TYPES.get(name.removesuffix("MessageChunk").lower())
