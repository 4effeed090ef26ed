"""Records of the Glaive function-calling v2 dataset: the texts `system` and `chat`.

SYSTEM: You are … with access to the following functions. Use them if required -
{"name": "get_order", "description": …, "parameters": {…}}

USER: Where is A-1?
ASSISTANT: <functioncall> {"name": "get_order", "arguments": '{"id": "A-1"}'} <|endoftext|>
FUNCTION RESPONSE: {"status": "late"}
ASSISTANT: It is late. <|endoftext|>

The functions are JSON objects one after the other, not a list. The arguments of a call are mostly JSON inside
single quotes, so that the call as a whole is not JSON; a call without arguments has no such text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count
from typing import Any

from arq_graph.errors import InputError

_PART = re.compile(r"(?:^[ \t]*|<\|endoftext\|>\s*)(USER|ASSISTANT|FUNCTION RESPONSE):", re.MULTILINE)
_TYPES = {"USER": "human", "ASSISTANT": "ai", "FUNCTION RESPONSE": "tool"}
_END_MARK = "<|endoftext|>"
_CALL_MARK = "<functioncall>"
_QUOTED_CALL = re.compile(
    r'\{\s*"name"\s*:\s*"(?P<name>[^"]*)"(?:\s*,\s*"arguments"\s*:\s*\'(?P<arguments>.*)\'\s*\})?', re.DOTALL
)

# Real texts have raw line breaks inside strings.
_DECODER = json.JSONDecoder(strict=False)


def can_read(record: Any) -> bool:
    """Return whether this is a record of the dataset."""
    return isinstance(record, Mapping) and isinstance(record.get("chat"), str)


def read(record: Any) -> dict[str, Any]:
    """Return the chat as messages, the functions that `system` defines as `tools`, and the record's other keys."""
    system = str(record.get("system") or "").strip().removeprefix("SYSTEM:")
    instructions, tools = _parse_system(system)
    messages = [{"type": "system", "content": instructions}]
    messages.extend(_parse_chat(record["chat"]))
    fields = dict(record) | {"messages": messages, "tools": tools}
    del fields["chat"]
    fields.pop("system", None)
    return fields


def _parse_system(text: str) -> tuple[str, list[Any]]:
    """Return the instructions of a SYSTEM text, and the functions that follow them."""
    instructions, brace, rest = text.strip().partition("{")
    rest = brace + rest
    tools: list[Any] = []
    while rest.startswith("{"):
        try:
            tool, end = _DECODER.raw_decode(rest)
        except (ValueError, RecursionError) as error:
            raise InputError(f"SYSTEM: function {len(tools) + 1} is not JSON: {error}") from None
        tools.append(tool)
        rest = rest[end:].lstrip(", \n\r\t")
    return f"{instructions.rstrip()}\n{rest}".strip(), tools


def _parse_chat(chat: str) -> Iterator[dict[str, Any]]:
    before, *parts = _PART.split(chat)
    if before.strip() or not parts:
        raise InputError("the chat does not begin with `USER:` or `ASSISTANT:`")
    roles, texts = parts[::2], parts[1::2]
    return map(_parse_part, roles, texts, count())


def _parse_part(role: str, text: str, index: int) -> dict[str, Any]:
    before_calls, *call_texts = text.replace(_END_MARK, "").split(_CALL_MARK)
    lines = [before_calls.strip()]
    calls = []
    for call_text in call_texts:
        name, arguments, rest = _parse_call(call_text.lstrip(), index)
        calls.append({"name": name, "args": arguments})
        lines.append(rest.strip())
    content = "\n".join(filter(None, lines))
    return {"type": _TYPES[role], "content": content, "tool_calls": calls, "step": index}


def _parse_call(text: str, index: int) -> tuple[Any, Any, str]:
    """Return the name and the arguments of a call, and the text after it."""
    try:
        call, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        call = None
    if isinstance(call, Mapping):
        arguments = call.get("arguments")
        return call.get("name"), {} if arguments is None else arguments, text[end:]
    quoted = _QUOTED_CALL.match(text)
    if quoted is None:
        raise InputError(f"part {index}: the function call cannot be parsed: {text.strip()[:80]!r}")
    if quoted["arguments"] is None:
        # The rest as arguments makes it a malformed call.
        return quoted["name"], text[quoted.end() :], ""
    return quoted["name"], _parse_quoted_arguments(quoted["arguments"]), text[quoted.end() :]


def _parse_quoted_arguments(text: str) -> Any:
    """Parse the text between the single quotes, in which an apostrophe may or may not be escaped."""
    for candidate in (text, text.replace("\\'", "'")):
        with suppress(ValueError, RecursionError):
            arguments = _DECODER.decode(candidate)
            if isinstance(arguments, Mapping):
                return arguments
    return text
