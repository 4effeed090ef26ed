"""Transcripts from the Glaive function-calling v2 dataset: the texts `system` and `chat`.

SYSTEM: You are … with access to the following functions. Use them if required -
{"name": "get_order", "description": …, "parameters": {…}}

USER: Where is A-1?
ASSISTANT: <functioncall> {"name": "get_order", "arguments": '{"id": "A-1"}'} <|endoftext|>
FUNCTION RESPONSE: {"status": "late"}
ASSISTANT: It is late. <|endoftext|>

The functions are JSON objects one after the other, not a list. The arguments of a call are mostly JSON inside
single quotes, so that the call as a whole is no JSON; a call without any has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from arq_graph.errors import InputError

_PART = re.compile(r"(?:^[ \t]*|<\|endoftext\|>\s*)(USER|ASSISTANT|FUNCTION RESPONSE):", re.MULTILINE)
_TYPES = {"USER": "human", "ASSISTANT": "ai", "FUNCTION RESPONSE": "tool"}
_END = "<|endoftext|>"
_CALL = "<functioncall>"
_QUOTED = re.compile(
    r'\{\s*"name"\s*:\s*"(?P<name>[^"]*)"(?:\s*,\s*"arguments"\s*:\s*\'(?P<arguments>.*)\'\s*\})?', re.DOTALL
)

# Real texts have raw line breaks inside strings.
_DECODER = json.JSONDecoder(strict=False)


def fits(record: Any) -> bool:
    """Whether this is a record of the dataset."""
    return isinstance(record, Mapping) and isinstance(record.get("chat"), str)


def read(record: Any) -> dict[str, Any]:
    """What was said and called in a conversation, and the functions that its `system` defines as `tools`."""
    instructions, tools = _defined(str(record.get("system") or "").strip().removeprefix("SYSTEM:"))
    messages: list[dict[str, Any]] = [{"type": "system", "content": instructions}]
    before, *parts = _PART.split(record["chat"])
    if before.strip() or not parts:
        raise InputError("the chat does not begin with `USER:` or `ASSISTANT:`")
    for index, (role, text) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
        said, *written = text.replace(_END, "").split(_CALL)
        words, calls = [said.strip()], []
        for call in written:
            name, arguments, rest = _call(call.lstrip(), index)
            calls.append({"name": name, "args": {} if arguments is None else arguments})
            words.append(rest.strip())
        content = "\n".join(filter(None, words))
        messages.append({"type": _TYPES[role], "content": content, "tool_calls": calls, "step": index})
    held = {key: value for key, value in record.items() if key not in ("system", "chat")}
    return {**held, "messages": messages, "tools": tools}


def _defined(text: str) -> tuple[str, list[Any]]:
    """The instructions of a SYSTEM text, and the functions that follow them."""
    words, begins, rest = text.strip().partition("{")
    tools: list[Any] = []
    rest = begins + rest
    while rest.startswith("{"):
        try:
            tool, end = _DECODER.raw_decode(rest)
        except (ValueError, RecursionError) as error:
            raise InputError(f"SYSTEM: function {len(tools) + 1} is no JSON: {error}") from None
        tools.append(tool)
        rest = rest[end:].lstrip(", \n\r\t")
    return f"{words.rstrip()}\n{rest}".strip(), tools


def _call(text: str, index: int) -> tuple[Any, Any, str]:
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, Mapping):
        return value.get("name"), value.get("arguments"), text[end:]
    quoted = _QUOTED.match(text)
    if quoted is None:
        raise InputError(f"part {index}: the function call cannot be read: {text.strip()[:80]!r}")
    if quoted["arguments"] is None:
        return quoted["name"], text[quoted.end() :], ""  # beyond reading: a malformed call
    return quoted["name"], _arguments(quoted["arguments"]), text[quoted.end() :]


def _arguments(text: str) -> Any:
    """What stands between the single quotes, where an apostrophe may or may not be escaped."""
    for written in (text, text.replace("\\'", "'")):
        with suppress(ValueError, RecursionError):
            if isinstance(value := _DECODER.decode(written), Mapping):
                return value
    return text
