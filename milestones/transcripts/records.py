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

# A bracket, or a whole string so that brackets in it are passed over; the last string may lack its end.
_MARK = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?)|[\[\]{},]', re.DOTALL)
_BLANK = re.compile(r"\s*")


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
    """The records of a file: the elements of a JSON list, JSON values one after the other, or lines.

    A record that is no JSON is given with what is wrong with it, and does not stop the rest. A file that ends
    in the middle of a record gives that record as broken, after all those before it.

    Args:
        path: A UTF-8 file.
        chunk: How many characters are read at once.
        largest: A record of more characters is broken, and so is what follows it.

    Raises:
        InputError: The file cannot be opened, is not UTF-8, or holds nothing.
    """
    try:
        with path.open(encoding="utf-8-sig") as stream:
            first = stream.read(chunk)
            while first and not first.strip():
                first = stream.read(chunk)
            if not first.strip():
                raise InputError(f"{path} is empty: it holds no conversation")
            lined = path.suffix.lower() in (".jsonl", ".ndjson") or _begins_with_line(first)
            yield from (_lines if lined else _values)(_Source(stream, first, chunk, largest))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start} of a part): save it as UTF-8") from None


@dataclass
class _Source:
    """What was read of a file and is not done with."""

    stream: TextIO
    text: str
    chunk: int
    largest: int
    at: int = 0

    def is_too_large(self) -> bool:
        return len(self.text) - self.at > self.largest

    def too_large(self) -> str:
        return f"longer than {self.largest:,} characters; one record must hold one conversation"

    def more(self) -> bool:
        # Doubling keeps the work linear for a record much larger than a chunk.
        added = self.stream.read(max(self.chunk, len(self.text)))
        self.text += added
        return bool(added)

    def cut(self) -> None:
        self.text, self.at = self.text[self.at :], 0

    def skip_blank(self) -> None:
        while True:
            blank = _BLANK.match(self.text, self.at)
            self.at = blank.end() if blank else self.at
            if self.at < len(self.text):
                return
            self.cut()
            if not self.more():
                return


def _begins_with_line(first: str) -> bool:
    line, newline, rest = first.lstrip().partition("\n")
    return bool(newline) and line.startswith("{") and rest.lstrip().startswith("{") and _load(line)[1] is None


def _load(text: str) -> tuple[Any, str | None]:
    try:
        return json.loads(text), None
    except json.JSONDecodeError as error:
        return None, f"no JSON: {error.msg} at character {error.pos}"
    except RecursionError:
        return None, "nested too deeply to be a conversation"
    except ValueError as error:
        # A whole number of thousands of digits.
        return None, f"no JSON that can be read: {error}"


def _lines(source: _Source) -> Iterator[Raw]:
    index = 0
    while source.text:
        # Many lines at once: cutting the buffer for each line would copy it for each.
        whole = source.text.rfind("\n") + 1
        if not whole:
            if source.is_too_large():
                yield Raw(index, None, source.too_large())
                return
            if source.more():
                continue
            whole = len(source.text)
        block, source.text = source.text[:whole], source.text[whole:]
        for line in block.split("\n"):
            if line.strip():
                yield Raw(index, *_load(line))
                index += 1
        source.more()


def _values(source: _Source) -> Iterator[Raw]:
    """The top-level values; those of a top-level list one by one."""
    index = 0
    lists = 0
    group: int | None = None
    while True:
        source.skip_blank()
        character = source.text[source.at : source.at + 1]
        if not character:
            if group is not None:
                yield Raw(index, None, "the list is cut off: the file ends before it does", group)
            return
        if character == "[" and group is None:
            group = lists
            lists += 1
            source.at += 1
        elif character == "]" and group is not None:
            group = None
            source.at += 1
        elif character == "," and group is not None:
            source.at += 1
        elif character != "{" and group is None:
            begins = source.text[source.at : source.at + 40]
            yield Raw(index, None, f"no JSON: neither a list nor an object begins with {begins!r}")
            return
        else:
            value, error = _element(source)
            yield Raw(index, value, error, group)
            index += 1
            if error and source.at >= len(source.text):
                return


def _element(source: _Source) -> tuple[Any, str | None]:
    """The value that begins here, and what is wrong with it; the source is left behind it."""
    depth = 0
    if source.at > source.chunk:
        source.cut()
    at = start = source.at
    while True:
        for mark in _MARK.finditer(source.text, at):
            character = source.text[mark.start()]
            # A string that touches the end of what was read may go on in what comes.
            if character == '"' and mark.end() == len(source.text):
                break
            if character in "[{":
                depth += 1
            elif character in "]}":
                depth -= 1
            at = mark.end()
            if depth > 0 or character in '"[{':
                continue
            # A value that is no list and no object ends before the comma or bracket that follows it.
            closes = depth == 0 and character != ","
            source.at = max(mark.end() if closes else mark.start(), start + 1)
            return _load(source.text[start : source.at])
        if source.is_too_large():
            source.at = len(source.text)
            return None, source.too_large()
        if not source.more():
            source.at = len(source.text)
            value, error = _load(source.text[start:])
            return value, error and f"cut off, the file ends in the middle of it ({error})"
