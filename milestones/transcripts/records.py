"""The records of a JSON or JSON Lines file, one at a time: of JSON Lines, memory holds one record and not the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from arq_graph.errors import InputError

MOST_CHARACTERS = 256 << 20
"""Of one line, or of a whole file that is not JSON Lines."""

_DECODER = json.JSONDecoder()
_GAP = re.compile(r"[\s,]*")


@dataclass(frozen=True, slots=True)
class Raw:
    """One record as it was read: its place, what it holds or why it cannot be read, and the number of its list."""

    index: int
    value: Any
    error: str | None = None
    group: int | None = None


def read_records(path: Path) -> Iterator[Raw]:
    """The records of a UTF-8 file: lines, the elements of a JSON list, or JSON values one after the other.

    A broken line does not stop the rest. Where a list or a value is broken, what comes before it is given, then
    what is wrong with it; nobody can tell where the next one begins.
    """
    try:
        with path.open(encoding="utf-8-sig") as stream:
            lines = _lines(stream)
            first = next(lines, None)
            if first is None:
                raise InputError(f"{path} is empty: it holds no conversation")
            if path.suffix.lower() in (".jsonl", ".ndjson") or isinstance(_load(first)[0], dict):
                yield Raw(0, *_load(first))
                yield from (Raw(index, *_load(line)) for index, line in enumerate(lines, start=1))
            else:
                yield from _values(first + stream.read(MOST_CHARACTERS))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start} of a part): save it as UTF-8") from None


def _lines(stream: TextIO) -> Iterator[str]:
    """The lines that hold something; what comes behind the most characters of a line is read as another."""
    while line := stream.readline(MOST_CHARACTERS):
        if line.strip():
            yield line


def _load(text: str) -> tuple[Any, str | None]:
    try:
        return json.loads(text), None
    except (ValueError, RecursionError) as error:
        return None, _why(error)


def _why(error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply to be a conversation"
    # Otherwise a whole number of thousands of digits.
    said = f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else str(error)
    return f"no JSON: {said}"


def _values(text: str) -> Iterator[Raw]:
    """The top-level values; those of a top-level list one by one."""
    index = lists = at = 0
    group: int | None = None
    while True:
        gap = _GAP.match(text, at)
        at = gap.end() if gap else at
        if at < len(text) and text[at] in "[]" and (text[at] == "[") == (group is None):
            group, lists = (lists, lists + 1) if group is None else (None, lists)
            at += 1
            continue
        if at == len(text) and group is None:
            return
        value, error, end = None, None, at
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as broken:
            error = _why(broken)
        if at == len(text):
            error = "the list is cut off: the file ends before it does"
        elif error is None and group is None and not isinstance(value, dict):
            error = f"no JSON: neither a list nor an object begins with {text[at : at + 40]!r}"
        yield Raw(index, None if error else value, error, group)
        if error:
            return
        index, at = index + 1, end
