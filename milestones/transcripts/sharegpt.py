"""Conversations in the form of ShareGPT: `from` and `value`, with calls as text.

A call is a message `from` function_call with JSON as its value, as LLaMA-Factory has them, or JSON between
`<tool_call>` and `</tool_call>` in the agent's text, as Hermes has them; `<tool_response>` then marks results.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.transcripts.parts import as_fields

_ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "system": "system",
    "function_call": "assistant",
    "tool_call": "assistant",
    "observation": "tool",
    "tool": "tool",
    "function_response": "tool",
    "tool_response": "tool",
}
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_RESPONSE = re.compile(r"<tool_response>(.*?)(?:</tool_response>|\Z)", re.DOTALL)


def can_read(record: Any) -> bool:
    """Return whether a record is a list of such messages, or has one under `conversations`."""
    messages = _get_messages(record)
    return bool(messages) and isinstance(messages[0], Mapping) and {"from", "value"} <= messages[0].keys()


def read(record: Any) -> dict[str, Any]:
    """Return the messages, the tools that the record describes, and its other keys."""
    fields = dict(record) if isinstance(record, Mapping) else {}
    fields.pop("conversations", None)
    if isinstance(fields.get("tools"), str):
        fields["tools"] = _parse_json(fields["tools"] or "[]", "its `tools`")
    messages: list[dict[str, Any]] = []
    for index, message in enumerate(_get_messages(record)):
        messages.extend(_convert_message(message, index))
    fields["messages"] = messages
    return fields


def _get_messages(record: Any) -> Any:
    messages = record.get("conversations") if isinstance(record, Mapping) else record
    return messages if isinstance(messages, list | tuple) else ()


def _convert_message(message: Any, index: int) -> list[dict[str, Any]]:
    fields = dict(as_fields(message))
    sender, value = fields.pop("from", None), fields.pop("value", None)
    role = _ROLES.get(str(sender))
    if role is None:
        raise InputError(f"message {index}: `from` is {sender!r}, but must be one of {', '.join(_ROLES)}")
    if not isinstance(value, str):
        raise InputError(f"message {index}: `value` is not text")
    fields |= {"role": role, "step": index}
    if role == "tool":
        results = _RESPONSE.findall(value) or [value]
        return [fields | {"content": result.strip()} for result in results]
    if role != "assistant":
        return [fields | {"content": value}]
    texts = _CALL.findall(value)
    if sender in ("function_call", "tool_call"):
        texts = texts or [value]
        value = ""
    calls: list[Any] = []
    for text in texts:
        call = _parse_json(text, f"message {index}: the tool call")
        calls.extend(call if isinstance(call, list) else [call])
    return [fields | {"content": _CALL.sub("", value).strip(), "tool_calls": calls}]


def _parse_json(text: str, place: str) -> Any:
    for parse in (json.loads, ast.literal_eval):  # Hermes has Python's notation, too
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            return parse(text.strip())
    raise InputError(f"{place} is not JSON: {text.strip()[:80]!r}")
