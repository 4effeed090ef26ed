"""Regular expressions out of a file, searched within a bounded time and compiled within a bounded size."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, Any

# Python's own `re` cannot be interrupted: a pattern that backtracks for ever would hang the whole run.
# `regex` takes the same syntax and a time-out.
import regex  # type: ignore[import-untyped]
from pydantic import BeforeValidator, InstanceOf, PlainSerializer, WithJsonSchema

SECONDS_PER_SEARCH = 1.0
LARGEST_PATTERN = 100_000

_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(\d+)[^}]*\}|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression, in Python's syntax; one that still searches after a second raises `TimeoutError`."""

    text: str
    _compiled: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.text:
            raise ValueError("is empty; a pattern says what is looked for")
        if _written_out(self.text) > LARGEST_PATTERN:
            raise ValueError(f"the repeats of the pattern {self.text!r} are too large; use smaller counts")
        try:
            object.__setattr__(self, "_compiled", regex.compile(self.text))
        except regex.error as error:
            raise ValueError(f"the pattern {self.text!r} is not a regular expression: {error}") from None

    def is_in(self, text: str) -> bool:
        """Whether the pattern occurs somewhere in the text."""
        return self._compiled.search(text, timeout=SECONDS_PER_SEARCH) is not None

    def is_all_of(self, text: str) -> bool:
        """Whether the pattern matches the whole text."""
        return self._compiled.fullmatch(text, timeout=SECONDS_PER_SEARCH) is not None


def _read(written: Any) -> Any:
    return Pattern(written) if isinstance(written, str) else written


PatternText = Annotated[
    InstanceOf[Pattern],
    BeforeValidator(_read),
    PlainSerializer(lambda pattern: pattern.text),
    WithJsonSchema({"type": "string", "format": "regex", "minLength": 1}),
]
"""A pattern that a file gives as text."""


def _written_out(pattern: str) -> int:
    # The compiler writes `(a{1000}){1000}` out: a million pieces, and gigabytes with one level more.
    sizes = [0]
    last = [0]
    for piece in _PIECE.finditer(pattern):
        if piece[0] == "(":
            sizes.append(0)
            last.append(0)
        elif piece[1] is not None:
            sizes[-1] += last[-1] * (int(piece[1][:9]) - 1)
            last[-1] *= int(piece[1][:9])
        else:
            size = 1
            if piece[0] == ")" and len(sizes) > 1:
                size = sizes.pop()
                last.pop()
            sizes[-1] += size
            last[-1] = size
    return sum(sizes)
