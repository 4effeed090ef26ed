"""Regular expressions from a file, searched within a bounded time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

# Python's own `re` can't be interrupted: a pattern that backtracks for ever would hang the whole run.
# `regex` takes the same syntax and a time-out.
import regex  # type: ignore[import-untyped]
from pydantic import BeforeValidator, InstanceOf, PlainSerializer, WithJsonSchema

SECONDS_PER_SEARCH = 1.0


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression in Python's syntax; a search that takes more than a second raises `TimeoutError`."""

    text: str
    _compiled: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not (isinstance(self.text, str) and self.text):
            raise ValueError(f"must be text, a regular expression, but is {self.text!r:.60}")
        try:
            object.__setattr__(self, "_compiled", regex.compile(self.text))
        except regex.error as error:
            raise ValueError(f"the pattern {self.text!r} is not a regular expression: {error}") from None

    def search(self, text: str) -> bool:
        """Return whether the pattern occurs somewhere in the text."""
        return self._matches(self._compiled.search, text)

    def fullmatch(self, text: str) -> bool:
        """Return whether the pattern matches the whole text."""
        return self._matches(self._compiled.fullmatch, text)

    def _matches(self, match: Callable[..., Any], text: str) -> bool:
        try:
            return match(text, timeout=SECONDS_PER_SEARCH) is not None
        except TimeoutError:
            raise TimeoutError(
                f"the pattern {self.text!r} was still searching after {SECONDS_PER_SEARCH:g} s; write one that "
                "backtracks less (no repeat inside a repeat)"
            ) from None


def _as_pattern(value: Any) -> Pattern:
    return value if isinstance(value, Pattern) else Pattern(value)


PatternText = Annotated[
    InstanceOf[Pattern],
    BeforeValidator(_as_pattern),
    PlainSerializer(lambda pattern: pattern.text),
    WithJsonSchema({"type": "string", "format": "regex"}),
]
"""A pattern that a file gives as text."""
