"""Regular expressions out of a file, searched within a bounded time and compiled within a bounded size."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import prod
from typing import Annotated, Any

# Python's own `re` cannot be interrupted: a pattern that backtracks for ever would hang the whole run.
# `regex` takes the same syntax and a time-out.
import regex  # type: ignore[import-untyped]
from pydantic import BeforeValidator, InstanceOf, PlainSerializer, WithJsonSchema

SECONDS_PER_SEARCH = 1.0
LARGEST_PATTERN = 100_000
_REPEAT = re.compile(r"(\)?)\s*\{\s*0*([1-9]\d*)")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression, in Python's syntax; one that still searches after a second raises `TimeoutError`."""

    text: str
    _compiled: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.text:
            raise ValueError("is empty; a pattern says what is looked for")
        if _size(self.text) > LARGEST_PATTERN:
            raise ValueError(f"the repeats of the pattern {self.text!r} are too large; use smaller counts")
        try:
            object.__setattr__(self, "_compiled", regex.compile(self.text))
        except regex.error as error:
            raise ValueError(f"the pattern {self.text!r} is not a regular expression: {error}") from None

    def is_in(self, text: str) -> bool:
        """Whether the pattern occurs somewhere in the text."""
        return self._is_found(self._compiled.search, text)

    def is_all_of(self, text: str) -> bool:
        """Whether the pattern matches the whole text."""
        return self._is_found(self._compiled.fullmatch, text)

    def _is_found(self, search: Any, text: str) -> bool:
        try:
            return search(text, timeout=SECONDS_PER_SEARCH) is not None
        except TimeoutError:
            raise TimeoutError(
                f"the pattern {self.text!r} was still searching after {SECONDS_PER_SEARCH:g} s; write one that "
                "backtracks less (no repeat inside a repeat)"
            ) from None


PatternText = Annotated[
    InstanceOf[Pattern],
    BeforeValidator(lambda written: Pattern(written) if isinstance(written, str) else written),
    PlainSerializer(lambda pattern: pattern.text),
    WithJsonSchema({"type": "string", "format": "regex"}),
]
"""A pattern that a file gives as text."""


def _size(pattern: str) -> int:
    """How many pieces it has at most: the compiler writes `(a{1000}){1000}` out, and fills the memory with one more."""
    repeats = [(of_group, int(count[:9])) for of_group, count in _REPEAT.findall(pattern)]
    pieces = len(pattern) + sum(count for of_group, count in repeats if not of_group)
    return pieces * prod(count for of_group, count in repeats if of_group)
