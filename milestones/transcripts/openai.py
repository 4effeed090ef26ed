"""OpenAI chat messages, as the chat completions API takes and gives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.transcripts.messages import Recorded, listed

_TYPES = {
    "assistant": "ai",
    "user": "human",
    "tool": "tool",
    "function": "tool",
    "system": "system",
    "developer": "system",
}


def is_message(value: Any) -> bool:
    """Whether this looks like an OpenAI chat message."""
    return isinstance(value, Mapping) and isinstance(value.get("role"), str)


def fits(record: Any) -> bool:
    """Whether a record is a list of chat messages, or an object that has one under `messages`."""
    messages = listed(record)
    return messages is not None and len(messages) > 0 and is_message(messages[0])


def read(record: Any) -> Recorded:
    """The messages of a record, and what else it says.

    Tool calls may stand in `tool_calls` or in the older `function_call`, their arguments as JSON text or as an
    object; results in messages of the role `tool` or the older `function`.
    """
    messages = listed(record)
    if messages is None:
        raise InputError("no list of messages, and no object with one under `messages`")
    return Recorded(as_langchain(messages), record if isinstance(record, Mapping) else {}, ("messages",))


def as_langchain(messages: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Chat messages as LangChain messages."""
    for index, message in enumerate(messages):
        if not is_message(message):
            raise InputError(f"message {index} is no chat message: it has no `role`")
        role, content = message["role"], message.get("content")
        if role not in _TYPES:
            raise InputError(f"message {index} has the role {role!r}; known are {', '.join(_TYPES)}")
        read = {"type": _TYPES[role], "content": content}
        if role == "assistant":
            read["content"] = content or message.get("refusal")
            if message.get("tool_calls") or message.get("function_call"):
                read["tool_calls"] = calls_of(message, index)
        elif _TYPES[role] == "tool":
            read["tool_call_id"] = message.get("tool_call_id")
            read["name"] = message.get("name")
        yield read


def calls_of(message: Mapping[str, Any], index: int) -> list[dict[str, Any]]:
    """The tool calls of a message in LangChain's form."""
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list | tuple):
        raise InputError(f"message {index}: `tool_calls` is no list")
    if function := message.get("function_call"):
        calls = [*calls, {"function": function}]
    read = []
    for call in calls:
        # Some recorders keep name and arguments in the call itself.
        function = call.get("function", call) if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            raise InputError(f"message {index}: a tool call is no object with a `function`")
        read.append({"name": function.get("name"), "args": function.get("arguments"), "id": call.get("id")})
    return read
