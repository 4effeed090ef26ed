"""Regular expressions of others: compiled within bounded memory, and searched within a bounded time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Annotated, Any

# Python's own `re` can't be interrupted: a pattern that backtracks for ever would hang the whole run.
# `regex` takes the same syntax and a time-out.
import regex  # type: ignore[import-untyped]
from pydantic import BeforeValidator, InstanceOf, PlainSerializer, WithJsonSchema

SECONDS_PER_SEARCH = 1.0
MAX_LENGTH = 10_000
MAX_REPEATS = 10_000
"""How many characters or groups a pattern may stand for if its repeats are written out, as `regex` does in memory."""

_TOKEN = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<open>\()|(?P<close>\))"
    r"|\{(?P<count>\d+)(?:,\d*)?\}|.",
    re.DOTALL,
)
# In these, what a count repeats can't be found so simply: comments, verbose patterns, sets inside sets.
_UNUSUAL = re.compile(r"\(\?(?:#|[a-zA-Z0-9-]*[xV])")


@lru_cache(maxsize=256)
def compile_pattern(text: str) -> Any:
    """Compile a pattern of `regex`; its searches take a `timeout`.

    Raises:
        ValueError: It isn't a pattern, or compiling it could take gigabytes.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(
            f"the pattern {text!r:.60}… is longer than {MAX_LENGTH:,} characters; write a shorter one"
        )
    if _count_repeats(text) > MAX_REPEATS:
        raise ValueError(
            f"the pattern {text!r:.200} repeats something more than {MAX_REPEATS:,} times; use `+` or `*`, or a "
            "smaller number"
        )
    try:
        return regex.compile(text)
    except (regex.error, RecursionError) as error:
        raise ValueError(f"the pattern {text!r:.200} is not a regular expression: {error}") from None


def _count_repeats(text: str) -> int:
    """Return how many characters and groups a pattern stands for if its repeats are written out."""
    if _UNUSUAL.search(text):
        return prod(max(int(count), 1) for count in re.findall(r"\{\s*(\d{1,20})", text))
    totals = [0]  # of the open groups, from the outermost
    last = 0
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "count":
            repeats = max(int(token["count"][:20]), 1)
            totals[-1] += last * (repeats - 1)
            last *= repeats
        elif kind == "open":
            totals.append(0)
        elif kind == "close" and len(totals) > 1:
            last = totals.pop() + 1
            totals[-1] += last
        else:
            last = 1
            totals[-1] += 1
    return sum(totals)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression in Python's syntax; a search that takes more than a second raises `TimeoutError`."""

    text: str
    _compiled: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not (isinstance(self.text, str) and self.text):
            raise ValueError(f"must be text, a regular expression, but is {self.text!r:.60}")
        object.__setattr__(self, "_compiled", compile_pattern(self.text))

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
                f"the pattern {self.text!r:.200} was still searching after {SECONDS_PER_SEARCH:g} s; write one that "
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
