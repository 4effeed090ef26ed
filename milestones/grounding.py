"""Grounded arguments: is every value of a call found in what the user or a tool said before it?

Words are compared without case and punctuation, numbers by value ("1,200.50", "$1200.5"). Of a date ("2024-05-20")
the day has to be said: year and month are often left out, or said in words of whatever language. What is not found may
still be right (derived, translated, a number in words): a call is marked as possibly invented, no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any
from unicodedata import normalize

# In Python's own `re`, possessive repeats of a group match wrongly before 3.11.5.
import regex  # type: ignore[import-untyped]

from arq_graph.milestones.transcript import Call, Event, Message, Result, Transcript

_DIGITS = regex.compile(r"\d+")
_DATE = regex.compile(r"\d{4}-\d{2}-(\d{2})")
# A number, unless it is part of a word: "HAT136" holds no number.
_TOKEN = regex.compile(r"(?<![^\W_])\d++(?![^\W_])(?:,\d{3}(?![^\W_]))*+(?:\.\d++(?![^\W_]))?+|[^\W_]+")
_SEPARATORS = regex.compile(r"[\W_]+")

# Where a spelling is compared without any separator, it must be long enough not to arise by chance.
SHORTEST_SQUEEZED = 6


class Grounding:
    """What the user and the tools of one conversation said so far."""

    def __init__(self) -> None:
        self._unread: list[str] = []  # most values need nothing that was said
        self._words = " "
        self._squeezed = ""
        self._numbers: set[str] = set()
        self._days: set[str] = set()

    def add_event(self, event: Event) -> None:
        """Take in an event of a conversation; only what the agent was told by it grounds a value."""
        if isinstance(event, Result) or (isinstance(event, Message) and event.speaker == "user"):
            self.add_text(event.text)

    def add_text(self, text: str) -> None:
        """Take in a text that the agent was told: a customer's message, a tool's result, a variable's value."""
        self._unread.append(text)

    def find_invented_arguments(self, call: Call) -> tuple[str, ...]:
        """The arguments of a call, as paths like `passengers[0].dob`, whose value nobody said before it.

        True, false, null and empty texts are decisions, not facts, and are never marked.
        """
        return tuple(path for path, value in _leaves(call.arguments) if not self._is_known(value))

    def _read(self) -> None:
        for plain in map(_plain, self._unread):
            tokens = _tokens(plain)
            self._words += " ".join(tokens) + " "
            # A mark between two utterances keeps the end of one from running into the next.
            self._squeezed += "|" + _SEPARATORS.sub("", plain)
            self._numbers.update(token for token in tokens if token[0].isdigit())
            self._days.update(each.lstrip("0") for each in _DIGITS.findall(plain))
        self._unread.clear()

    def _is_known(self, value: str | float) -> bool:
        self._read()
        if not isinstance(value, str):
            return _number(str(value)) in self._numbers
        text = _plain(value)
        tokens = _tokens(text)
        if not tokens or f" {' '.join(tokens)} " in self._words:
            return True
        if date := _DATE.fullmatch(text):
            return date[1].lstrip("0") in self._days
        squeezed = _SEPARATORS.sub("", text)
        is_code = len(squeezed) >= SHORTEST_SQUEEZED and any(map(str.isdigit, squeezed))
        return is_code and squeezed in self._squeezed


def find_invented_arguments(transcript: Transcript) -> dict[int, tuple[str, ...]]:
    """Return the possibly invented arguments of each call that has some, by event number.

    Cost linear in the characters of the conversation, times the values of its calls.
    """
    grounding = Grounding()
    found: dict[int, tuple[str, ...]] = {}
    for number, event in transcript.enumerate_events():
        if isinstance(event, Call) and (invented := grounding.find_invented_arguments(event)):
            found[number] = invented
        grounding.add_event(event)
    return found


def _leaves(arguments: Any) -> Iterator[tuple[str, str | float]]:
    # No recursion: arguments may be nested deeper than Python's stack.
    ahead: list[tuple[str, Any]] = [("", arguments)]
    while ahead:
        path, value = ahead.pop()
        if isinstance(value, Mapping):
            inner = [(f"{path}.{key}" if path else str(key), each) for key, each in value.items()]
            ahead.extend(reversed(inner))
        elif isinstance(value, list | tuple):
            ahead.extend((f"{path}[{index}]", value[index]) for index in reversed(range(len(value))))
        elif not isinstance(value, bool) and isinstance(value, str | int | float):
            yield path, value


def _plain(text: str) -> str:
    return normalize("NFKC", text).casefold()


def _tokens(text: str) -> list[str]:
    return [_number(token) if token[0].isdigit() else token for token in _TOKEN.findall(text)]


@lru_cache(maxsize=4096)
def _number(text: str) -> str:
    try:
        return f"{Decimal(text.lstrip('-').replace(',', '')).normalize():f}"
    except InvalidOperation:
        return text
