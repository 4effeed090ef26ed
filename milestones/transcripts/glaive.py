"""Transcripts from the text of the Glaive function-calling v2 dataset.

SYSTEM: You are … with access to the following functions. Use them if required -
{"name": "get_order", "description": …, "parameters": {…}}
USER: Where is A-1?
ASSISTANT: <functioncall> {"name": "get_order", "arguments": '{"id": "A-1"}'} <|endoftext|>
FUNCTION RESPONSE: {"status": "late"}
ASSISTANT: It is late. <|endoftext|>

The functions are JSON objects one after the other, not a list. The arguments of a call are mostly JSON inside
single quotes, so that the call as a whole is no JSON; a call without any has none. Where `<functioncall>` stands
behind words and no call follows it, it is words too.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.transcripts.messages import Recorded

_ROLES = "SYSTEM|USER|ASSISTANT|FUNCTION RESPONSE"
_BEGINS = re.compile(rf"\s*(?:{_ROLES}):")
_PART = re.compile(rf"(?:^[ \t]*|<\|endoftext\|>\s*)({_ROLES}):", re.MULTILINE)
_END = "<|endoftext|>"
_CALL = "<functioncall>"

_FUNCTIONS = re.compile(r"(?:^|-)\s*(?=[\[{])", re.MULTILINE)
_BETWEEN = re.compile(r"[\s,]*")
_NAMED = re.compile(r'\{\s*"name"\s*:\s*(?P<name>"(?:[^"\\]|\\.)*")', re.DOTALL)
_QUOTED = re.compile(r"\s*,\s*\"arguments\"\s*:\s*'(?P<arguments>.*)'\s*\}", re.DOTALL)

# Real texts have raw line breaks inside strings.
_DECODER = json.JSONDecoder(strict=False)


def fits(record: Any) -> bool:
    """Whether this is a conversation of the dataset: a record with `chat` (v1: `sample`), or its text."""
    if isinstance(record, Mapping):
        record = record.get("chat", record.get("sample"))
    return isinstance(record, str) and _BEGINS.match(record) is not None


def read(record: Any) -> Recorded:
    """What was said and called in a conversation, and the functions that its SYSTEM text defines as `tools`."""
    messages: list[dict[str, Any]] = []
    tools: list[Any] = []
    system, chat = _texts(record)
    if system:
        messages.append(_instructions(tools, system, 0))
    parts = _PART.split(chat)
    if len(parts) < 3 or parts[0].strip():
        raise InputError("the chat does not begin with `USER:`, `ASSISTANT:` or `SYSTEM:`")
    for index, (role, text) in enumerate(zip(parts[1::2], parts[2::2], strict=True)):
        said = text.replace(_END, "").strip()
        if role == "SYSTEM":
            messages.append(_instructions(tools, said, index))
        elif role == "ASSISTANT":
            messages.append(_assistant(said, index))
        else:
            messages.append({"type": "human" if role == "USER" else "tool", "content": said, "step": index})
    held = record if isinstance(record, Mapping) else {}
    return Recorded(messages, {**held, "tools": tools}, ("system", "chat", "sample"))


def _texts(record: Any) -> tuple[str, str]:
    system: Any = None
    if isinstance(record, Mapping):
        system, record = record.get("system"), record.get("chat", record.get("sample"))
    if not isinstance(record, str) or not isinstance(system, str | None):
        raise InputError(
            "no Glaive conversation: neither a text nor an object with the texts `system` and `chat`"
        )
    return (system or "").strip().removeprefix("SYSTEM:").strip(), record


def _instructions(tools: list[Any], text: str, index: int) -> dict[str, Any]:
    """The words of a SYSTEM text; its functions are added to the tools."""
    words = [text]
    found = _FUNCTIONS.search(text)
    if found:
        at = found.end()
        words = [text[:at].rstrip()]
        while text[at : at + 1] in ("{", "["):
            try:
                value, at = _DECODER.raw_decode(text, at)
            except (ValueError, RecursionError) as error:
                raise InputError(f"SYSTEM: function {len(tools) + 1} is no JSON: {error}") from None
            tools += value if isinstance(value, list) else [value]
            blank = _BETWEEN.match(text, at)
            at = blank.end() if blank else at
        words.append(text[at:].strip())
    return {"type": "system", "content": "\n".join(word for word in words if word), "step": index}


def _assistant(text: str, index: int) -> dict[str, Any]:
    said, *written = text.split(_CALL)
    words = [said]
    calls: list[dict[str, Any]] = []
    for call in written:
        read = _call(call.lstrip())
        if (read is None or not read[0]) and (calls or any(words)):
            words[-1] += _CALL + call
        elif read is None:
            raise InputError(
                f"part {index}: the function call cannot be read, it names no function: {call.strip()[:80]!r}"
            )
        else:
            name, arguments, rest = read
            calls.append({"name": name, "args": {} if arguments is None else arguments})
            words.append(rest)
    spoken = "\n".join(word.strip() for word in words if word.strip())
    return {"type": "ai", "content": spoken, "tool_calls": calls, "step": index}


def _call(text: str) -> tuple[Any, Any, str] | None:
    """The name and the arguments of a call, and the text behind it; None where it is no call."""
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        pass
    else:
        if isinstance(value, Mapping):
            return value.get("name"), value.get("arguments"), text[end:]
    named = _NAMED.match(text)
    quoted = _QUOTED.match(text, named.end()) if named else None
    if named and quoted:
        return _name(named), _arguments(quoted["arguments"]), text[quoted.end() :]
    literal = _literal(text)
    if literal is not None:
        return literal.get("name"), literal.get("arguments"), ""
    if named:
        return _name(named), text[named.end() :], ""  # the arguments are beyond reading: a malformed call
    return None


def _name(named: re.Match[str]) -> str:
    try:
        return str(_DECODER.decode(named["name"]))
    except ValueError:
        return named["name"][1:-1]


def _arguments(text: str) -> Any:
    """What stands between the single quotes, where an apostrophe may or may not be escaped."""
    for written in (text, text.replace("\\'", "'")):
        try:
            value = _DECODER.decode(written)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, Mapping):
            return value
    return text


def _literal(text: str) -> Mapping[str, Any] | None:
    try:
        value = ast.literal_eval(text[: text.rindex("}") + 1])
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None
    return value if isinstance(value, Mapping) else None
