"""The records of a JSON or JSON Lines file, one at a time: memory holds the largest record, not the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from arq_graph.errors import InputError

CHUNK = 1 << 20
LARGEST_RECORD = 256 << 20

_DECODER = json.JSONDecoder()
_GAP = re.compile(r"[\s,]*")


@dataclass(frozen=True, slots=True)
class Raw:
    """One record as it was read.

    Args:
        index: Its position in the file, from 0.
        value: What it holds; None where it cannot be read.
        error: Why it cannot be read; None where it can.
        group: The number of the top-level list that it is an element of, from 0; None if of none.
    """

    index: int
    value: Any
    error: str | None = None
    group: int | None = None


def read_records(path: Path, *, chunk: int = CHUNK, largest: int = LARGEST_RECORD) -> Iterator[Raw]:
    """The records of a file: lines, the elements of a JSON list, or JSON values one after the other.

    A broken line does not stop the rest. Where a list or a value is broken, what comes before it is given, then
    what is wrong with it; nobody can tell where the next one begins.

    Args:
        path: A UTF-8 file.
        chunk: How many characters are read at once.
        largest: A record of more characters is broken, and so is what follows it.

    Raises:
        InputError: The file cannot be opened, is not UTF-8, or holds nothing.
    """
    try:
        with path.open(encoding="utf-8-sig") as stream:
            text = stream.read(chunk).lstrip()
            while not text and (more := stream.read(chunk)):
                text = more.lstrip()
            if not text:
                raise InputError(f"{path} is empty: it holds no conversation")
            lined = path.suffix.lower() in (".jsonl", ".ndjson") or _begins_with_line(text)
            yield from (_lines if lined else _values)(stream, text, chunk, largest)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start} of a part): save it as UTF-8") from None


def _begins_with_line(text: str) -> bool:
    line, newline, rest = text.partition("\n")
    return bool(newline) and line.startswith("{") and rest.lstrip().startswith("{") and not _load(line)[1]


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


def _too_large(largest: int) -> str:
    return f"longer than {largest:,} characters; one record must hold one conversation"


def _lines(stream: TextIO, text: str, chunk: int, largest: int) -> Iterator[Raw]:
    index = 0
    while text:
        added = stream.read(max(chunk, len(text)))  # doubling keeps the work linear for a line beyond a chunk
        # Many lines at once: cutting the text for each line would copy it for each.
        whole = text.rfind("\n") + 1 if added else len(text)
        if not whole and len(text) > largest:
            yield Raw(index, None, _too_large(largest))
            return
        block, text = text[:whole], text[whole:] + added
        for line in filter(str.strip, block.split("\n")):
            yield Raw(index, *_load(line))
            index += 1


def _values(stream: TextIO, text: str, chunk: int, largest: int) -> Iterator[Raw]:
    """The top-level values; those of a top-level list one by one."""
    index = lists = at = 0
    group: int | None = None
    is_whole = False
    while True:
        gap = _GAP.match(text, at)
        at = gap.end() if gap else at
        if at < len(text) and text[at] in "[]" and (text[at] == "[") == (group is None):
            group, lists = (lists, lists + 1) if group is None else (None, lists)
            at += 1
            continue
        value, error = None, None
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as broken:
            error, end = _why(broken), len(text)
        # What touches the end of what was read may go on in what comes.
        if end == len(text) and not is_whole and len(text) - at <= largest:
            added = stream.read(max(chunk, len(text) - at))
            text, at, is_whole = text[at:] + added, 0, not added
            continue
        if at == len(text) and group is None:
            return
        if end == len(text) and not is_whole:
            error = _too_large(largest)
        elif at == len(text):
            error = "the list is cut off: the file ends before it does"
        elif error is None and group is None and not isinstance(value, dict):
            error = f"no JSON: neither a list nor an object begins with {text[at : at + 40]!r}"
        yield Raw(index, None if error else value, error, group)
        if error:
            return
        index, at = index + 1, end
        if at > chunk:
            text, at = text[at:], 0
