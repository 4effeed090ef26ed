"""Reading a blueprint's answer out of a model's text, whatever stands around it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import ValidationError

T = TypeVar("T")
Read = Callable[[str], T]
"""Reads a value from JSON, or raises Pydantic's ValidationError."""

_OBJECT_START = re.compile(r'\{(?=\s*["}])')
_DECODER = json.JSONDecoder(strict=False)
_CONTROL = re.compile(r"[\x00-\x1f]")
# After each failure Python counts the lines before it: without a bound the time would be quadratic.
_MAX_FAILURES = 2_000
_MAX_VALIDATED = 50
_MAX_ERRORS_TOLD = 20
_MAX_ERROR_LENGTH = 300


@dataclass(frozen=True)
class Parsed(Generic[T]):
    """The last JSON object of a text that validates, or else one line per error, each with the path of its query."""

    value: T | None
    errors: tuple[str, ...]
    has_object: bool
    """Whether the text holds a JSON object at all."""


def parse_answer(read: Read[T], text: str, name: str) -> Parsed[T]:
    """Read an answer from a text: from the whole of it, or else from the last object that validates.

    A code fence, chatter or thinking around the object is ignored. Never raises for any text.
    """
    value, errors = _validated(read, text.strip(), name)
    if value is not None:
        return Parsed(value, (), has_object=True)
    objects = _objects(text)
    if not objects:
        return Parsed(None, (f"{name}: the answer holds no complete JSON object", *errors), has_object=False)
    _, errors = _validated(read, objects[-1], name)
    for found in objects[: -_MAX_VALIDATED - 1 : -1]:
        value, _ = _validated(read, found, name)
        if value is not None:
            return Parsed(value, (), has_object=True)
    return Parsed(None, errors, has_object=True)


def _validated(read: Read[T], text: str, name: str) -> tuple[T | None, tuple[str, ...]]:
    try:
        return read(text), ()
    except ValidationError as error:
        escaped = _with_controls_escaped(text) if error.errors()[0]["type"] == "json_invalid" else None
        if escaped is not None:
            return _validated(read, escaped, name)
        return None, tuple(_lines(error, name))


def _with_controls_escaped(text: str) -> str | None:
    """The same JSON with line breaks and the like inside strings escaped; None if that is not what is wrong.

    Local models write them as they are, which JSON forbids.
    """
    if not _CONTROL.search(text):
        return None
    try:
        return json.dumps(_DECODER.decode(text))
    except (ValueError, RecursionError):
        return None


def _lines(error: ValidationError, name: str) -> Iterator[str]:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    for detail in details[:_MAX_ERRORS_TOLD]:
        path = ".".join([name, *(str(part) for part in detail["loc"])])
        yield " ".join(f"{path}: {detail['msg']}".split())[:_MAX_ERROR_LENGTH]
    if len(details) > _MAX_ERRORS_TOLD:
        yield f"{name}: and {len(details) - _MAX_ERRORS_TOLD} more errors"


def _objects(text: str) -> list[str]:
    """The top-level JSON objects of a text, from left to right.

    Where decoding fails, the search goes on from the place of the error: what stands between is the
    inside of a broken object, and a part of it must not be taken for the answer.
    """
    found: list[str] = []
    position = failures = 0
    while failures < _MAX_FAILURES and (start := _OBJECT_START.search(text, position)):
        try:
            _, position = _DECODER.raw_decode(text, start.start())
        except json.JSONDecodeError as error:
            if error.msg.startswith("Unterminated string"):
                break  # no quote follows, so no object does
            position = max(error.pos, start.end())
            failures += 1
        except (RecursionError, ValueError):
            break  # nested deeper, or with a longer number, than Python reads: no answer looks like that
        else:
            found.append(text[start.start() : position])
    return found
