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
_MARK = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{},]', re.DOTALL)
_BLANK = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Raw:
    """One record as it was read.

    Args:
        index: Its position in the file, from 0.
        value: What it holds; None where it cannot be read.
        error: Why it cannot be read; None where it can.
        alone: It is an element of the file's one list of records, or of JSON Lines: not the whole file.
    """

    index: int
    value: Any
    error: str | None = None
    in_list: bool = False


def read_records(path: Path) -> Iterator[Raw]:
    """The records of a file: the elements of a JSON list, JSON values one after the other, or lines.

    A record that is no JSON is given with what is wrong with it, and does not stop the rest. A file that ends
    in the middle of a record gives that record as broken, after all those before it.

    Args:
        path: A UTF-8 file.

    Raises:
        InputError: The file cannot be opened, is not UTF-8, or holds nothing.
    """
    try:
        with path.open(encoding="utf-8-sig") as stream:
            first = stream.read(CHUNK)
            while first and not first.strip():
                first = stream.read(CHUNK)
            if not first.strip():
                raise InputError(f"{path} is empty: it holds no conversation")
            lined = path.suffix.lower() in (".jsonl", ".ndjson") or _begins_with_line(first)
            yield from (_lines if lined else _values)(_Source(stream, first))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start} of a part): save it as UTF-8") from None


@dataclass
class _Source:
    stream: TextIO
    text: str

    def more(self) -> bool:
        # Doubling keeps the work linear for a record much larger than a chunk.
        added = self.stream.read(max(CHUNK, len(self.text)))
        self.text += added
        return bool(added)


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
        end = source.text.find("\n")
        if end < 0:
            if len(source.text) > LARGEST_RECORD:
                yield Raw(index, None, _too_large(), True)
                return
            if source.more():
                continue
            end = len(source.text)
        # Cut many lines at once: cutting the buffer for each would copy it for each.
        whole = source.text.rfind("\n") + 1 or end
        block, source.text = source.text[:whole], source.text[whole:]
        for line in block.split("\n"):
            if line.strip():
                yield Raw(index, *_load(line), True)
                index += 1
        if not source.text:
            source.more()


def _values(source: _Source) -> Iterator[Raw]:
    """The top-level values; those of a top-level list one by one."""
    index = 0
    at = _skip(source, 0)
    while at < len(source.text):
        if source.text[at] == "[":
            at += 1
            while True:
                at = _skip(source, at)
                if at >= len(source.text):
                    yield Raw(index, None, "the list of records is cut off: its end is missing", True)
                    return
                if source.text[at] in ",]":
                    at += 1
                    if source.text[at - 1] == "]":
                        break
                    continue
                at, raw = _element(source, at, index, True)
                yield raw
                index += 1
                if raw.error and at >= len(source.text):
                    return
                source.text, at = source.text[at:], 0
        else:
            at, raw = _element(source, at, index, False)
            yield raw
            index += 1
        at = _skip(source, at)


def _element(source: _Source, start: int, index: int, in_list: bool) -> tuple[int, Raw]:
    """The value that begins at `start`, and where it ends."""
    depth = 0
    at = start
    while True:
        for mark in _MARK.finditer(source.text, at):
            character = mark[0][0]
            if character == '"':
                # A string that touches the end of what was read may go on in what comes.
                if mark.end() == len(source.text):
                    break
            elif character in "[{":
                depth += 1
            elif character in "]}":
                depth -= 1
                if depth <= 0:
                    end = mark.end() if depth == 0 else mark.start()
                    return end, Raw(index, *_load(source.text[start:end]), in_list)
            elif not depth:
                return mark.start(), Raw(index, *_load(source.text[start : mark.start()]), in_list)
            at = mark.end()
        if len(source.text) - start > LARGEST_RECORD:
            source.text = source.text[:start]
            return start, Raw(index, None, _too_large(), in_list)
        if not source.more():
            value, error = _load(source.text[start:])
            error = error and f"cut off, the file ends in the middle of it ({error})"
            return len(source.text), Raw(index, value, error, in_list)


def _skip(source: _Source, at: int) -> int:
    while True:
        blank = _BLANK.match(source.text, at)
        at = blank.end() if blank else at
        if at < len(source.text) or not source.more():
            return at


def _too_large() -> str:
    return f"longer than {LARGEST_RECORD >> 20} MB; split the file into one record per conversation"
