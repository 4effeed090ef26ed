"""Find the JSON object of an answer in a model's text, once the text is complete or while it is being written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.ai import add_ai_message_chunks
from pydantic import ValidationError
from pydantic_core import from_json

from arq_graph.reasoning.replies import get_arguments

T = TypeVar("T")
Read = Callable[[str], T]
"""Reads a value from JSON, or raises Pydantic's ValidationError."""
OnPartial = Callable[[Mapping[str, Any]], None]
"""Is called with an answer's JSON as far as it is written."""

_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_OBJECT_START = re.compile(r'\{(?=\s*["}])')
# Local models write line breaks inside strings as they are, which JSON forbids.
_DECODER = json.JSONDecoder(strict=False)
# To report an error, Python counts the lines before it: without a bound the time would be quadratic.
_MAX_SCANNED = 2_000
_MAX_VALIDATED = 50
_MAX_ERRORS_REPORTED = 20
# Where a text is cut off, a decoder reports its error at most this far from the end: in the middle of a surrogate pair.
_MAX_CUT = 12


def parse_answer(read: Read[T], text: str, name: str) -> tuple[T | None, list[str]]:
    """Read an answer from the whole text, or else from the last object in it that validates.

    A code fence, chatter or thinking around the object is ignored. Never fails for any text.

    Returns:
        The answer and []; or None and a line for each error of the last object, with the path of its query. There are
        no errors if the text doesn't hold an object at all.
    """
    try:
        return read(text.strip()), []
    except ValidationError:
        scanned = islice(_scan_objects(text, 0), _MAX_SCANNED)
        objects = [item.valid_json for item in scanned if item.valid_json is not None]
    errors: list[str] = []
    for candidate in reversed(objects[-_MAX_VALIDATED:]):
        try:
            return read(candidate), []
        except ValidationError as error:
            errors = errors or list(_format_errors(error, name))
    return None, errors


class PartialAnswer:
    """Reports the last JSON object of an answer while it is written, and {} where another one begins."""

    def __init__(self, on_partial: OnPartial) -> None:
        self._on_partial = on_partial

    def restart(self) -> None:
        """Begin a new answer; the one before is dropped."""
        self._chunks: list[Any] = []
        self._text = ""
        self._position = 0
        self._object_start = 0
        self._on_partial({})

    def add(self, chunk: AIMessage) -> None:
        """Add a chunk of the message; an answer stands in its text or in the arguments of a forced tool call."""
        self._chunks.append(chunk)
        added_text = "".join([chunk.text, *get_arguments(chunk)])
        self._text += added_text
        if added_text and (partial_object := self._read_last_object()):
            self._on_partial(partial_object)

    def join_chunks(self) -> AIMessage:
        """Return all chunks as one message."""
        first, *others = self._chunks
        return add_ai_message_chunks(first, *others) if isinstance(first, AIMessageChunk) else first

    def _read_last_object(self) -> dict[str, Any]:
        last_object: dict[str, Any] = {}
        for item in _scan_objects(self._text, self._position):
            if item.start != self._object_start:
                self._object_start = item.start
                self._on_partial({})
            if item.valid_json is not None:
                last_object = _read_begun(item.valid_json)
            elif item.is_unfinished(self._text):
                return _read_begun(self._text[item.start :])
            self._position = item.end
        return last_object


class _ScannedObject(NamedTuple):
    """A place in a text where an object begins: the object as valid JSON, or why it can't be decoded."""

    start: int
    end: int
    valid_json: str | None
    error: json.JSONDecodeError | None

    def is_unfinished(self, text: str) -> bool:
        """Return whether more text could complete the object."""
        error = self.error
        return error is not None and (
            error.msg.startswith("Unterminated") or error.pos + _MAX_CUT >= len(text)
        )


def _scan_objects(text: str, position: int) -> Iterator[_ScannedObject]:
    """Yield each object of a text from a position on.

    After an object that can't be decoded the search continues at the error: what stands before it is the inside of the
    broken object, a part of which must not be taken for the answer.
    """
    while match := _OBJECT_START.search(text, position):
        start = match.start()
        try:
            value, position = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            position = max(error.pos, match.end())
            yield _ScannedObject(start, position, None, error)
        except (RecursionError, ValueError):
            return  # nested too deeply, or with too long a number, for Python: not an answer
        else:
            yield _ScannedObject(start, position, json.dumps(value), None)


def _read_begun(text: str) -> dict[str, Any]:
    """Return the object that a text begins with, without a last key or value that is cut, except for strings."""
    read: Read[dict[str, Any]] = partial(from_json, allow_partial="trailing-strings")
    with suppress(ValueError, TypeError):
        return read(text)
    with suppress(ValueError, TypeError):  # half a surrogate pair cannot be read
        return read(_JSON_STRING.sub(lambda string: string[0].replace("\n", "\\n"), text))
    return {}


def _format_errors(error: ValidationError, name: str) -> Iterator[str]:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    for detail in details[:_MAX_ERRORS_REPORTED]:
        path = ".".join(map(str, (name, *detail["loc"])))
        yield " ".join(f"{path}: {detail['msg']}".split())
    if len(details) > _MAX_ERRORS_REPORTED:
        yield f"{name}: and {len(details) - _MAX_ERRORS_REPORTED} more errors"
