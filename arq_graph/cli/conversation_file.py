"""The customer's side of a conversation, read from a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from arq_graph.errors import InputError
from arq_graph.reasoning.sections import clean

_OTHERS = {"agent", "ai", "assistant", "system", "developer", "tool", "function"}


def read_customer_turns(path: Path) -> list[str]:
    """What the customer says, turn by turn.

    A text file has one turn a line, empty lines aside. JSON is a list, JSON Lines one entry a line; an entry is a
    text, or an object with `text` or `content`. Entries whose `role` is another than the customer's are left out,
    so that a recorded conversation can be held again.

    Args:
        path: The file; `-` is standard input. `.json` and `.jsonl` say what is in it, otherwise it is found out.

    Raises:
        InputError: It cannot be read, is not UTF-8, holds an entry that is none, or nothing at all.
    """
    name = "standard input" if str(path) == "-" else str(path)
    text = _text(path, name)
    if path.suffix == ".json":
        turns = _of_list(text, name)
    elif path.suffix in (".jsonl", ".ndjson") or _is_json_lines(text):
        turns = _of_lines(text, name)
    elif _is_json_list(text):
        turns = _of_list(text, name)
    else:
        turns = [line.strip() for line in text.split("\n") if line.strip()]
    if not turns:
        raise InputError(f"{name} holds nothing that a customer says; write one message a line")
    return [clean(turn) for turn in turns]


def _text(path: Path, name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise InputError(f"the conversation {name} cannot be read: {error.strerror}") from error
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(f"{name}:{line}: is not UTF-8 text ({error.reason}); save it as UTF-8") from error


def _parsed(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise InputError(f"{place}: is nested too deeply to be a conversation") from error
    except ValueError as error:
        raise InputError(f"{place}: is not JSON: {error}") from error


def _is_json_list(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except (ValueError, RecursionError):
        return False


def _is_json_lines(text: str) -> bool:
    """Whether the first line is a JSON object; then the others are held to it."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _of_list(text: str, name: str) -> list[str]:
    entries = _parsed(text, name)
    if not isinstance(entries, list):
        raise InputError(f"{name}: must be a list of messages, not {_kind(entries)}")
    turns = [_turn(entry, f"{name}: entry {number}") for number, entry in enumerate(entries, start=1)]
    return [turn for turn in turns if turn is not None]


def _of_lines(text: str, name: str) -> list[str]:
    turns = [
        _turn(_parsed(line, f"{name}:{number}"), f"{name}:{number}")
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]
    return [turn for turn in turns if turn is not None]


def _turn(entry: Any, place: str) -> str | None:
    if isinstance(entry, str):
        return entry
    if not isinstance(entry, Mapping):
        raise InputError(
            f"{place}: must be a text, or an object with `text` or `content`, not {_kind(entry)}"
        )
    if str(entry.get("role", "")).lower() in _OTHERS:
        return None
    said = entry["text"] if "text" in entry else entry.get("content")
    if not isinstance(said, str):
        raise InputError(f"{place}: needs `text` or `content` with what the customer says, as a text")
    return said


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return {dict: "an object", list: "a list", str: "a text", bool: "true or false"}.get(
        type(value), "a number"
    )
