"""Grounded arguments: is every value of a call found in what the user or a tool said before it?

Words are compared without case and punctuation, numbers by value ("1,200.50", "$1200.5"). Of a date ("2024-05-20")
the day has to be said: year and month are often left out, or said in words of whatever language. What is not found may
still be right (derived, translated, a number in words): a call is only marked as possibly invented.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any
from unicodedata import normalize

# In Python's own `re`, possessive repeats of a group differ between patch releases of 3.11 (gh-106052).
import regex  # type: ignore[import-untyped]

from arq_graph.milestones.transcript import Call, Event, Message, Result, Transcript

_DIGITS = regex.compile(r"\d+")
_DATE = regex.compile(r"\d{4}-\d{2}-(\d{2})")
# A number, unless it is part of a word: "HAT136" holds no number.
_TOKEN = regex.compile(r"(?<![^\W_])\d++(?![^\W_])(?:,\d{3}(?![^\W_]))*+(?:\.\d++(?![^\W_]))?+|[^\W_]+")
_SEPARATORS = regex.compile(r"[\W_]+")

# A code such as "A-17 B" is also looked for without separators, if it is too long to arise by chance.
MIN_SQUEEZED_LENGTH = 6


class Grounding:
    """The words, numbers and days that the user and the tools of one conversation have given so far."""

    def __init__(self) -> None:
        # Texts are split into words when a value is looked up, which most conversations never do.
        self._pending_texts: list[str] = []
        self._words = " "
        self._squeezed = ""
        self._tokens: set[str] = set()
        self._days: set[str] = set()

    def add_event(self, event: Event) -> None:
        """Add an event of a conversation; only user messages and tool results ground a value."""
        if isinstance(event, Result) or (isinstance(event, Message) and event.speaker == "user"):
            self.add_text(event.text)

    def add_text(self, text: str) -> None:
        """Add a text that the agent was given: a customer's message, a tool's result, a variable's value."""
        self._pending_texts.append(text)

    def find_invented_arguments(self, call: Call) -> tuple[str, ...]:
        """Return the arguments of a call, as paths like `passengers[0].dob`, whose value nobody gave before it.

        True, false, null and empty texts are decisions, not facts, and are never marked.
        """
        return tuple(path for path, value in _iterate_leaves(call.arguments) if not self._is_grounded(value))

    def _is_grounded(self, value: str | float) -> bool:
        self._index_pending_texts()
        if not isinstance(value, str):
            return _normalize_number(str(value)) in self._tokens
        text = _fold(value)
        tokens = _tokenize(text)
        if not tokens or f" {' '.join(tokens)} " in self._words:
            return True
        if date := _DATE.fullmatch(text):
            return date[1].lstrip("0") in self._days
        squeezed = _SEPARATORS.sub("", text)
        is_code = len(squeezed) >= MIN_SQUEEZED_LENGTH and any(map(str.isdigit, squeezed))
        return is_code and squeezed in self._squeezed

    def _index_pending_texts(self) -> None:
        for text in map(_fold, self._pending_texts):
            tokens = _tokenize(text)
            self._words += " ".join(tokens) + " "
            # A mark between two utterances keeps the end of one from running into the next.
            self._squeezed += "|" + _SEPARATORS.sub("", text)
            self._tokens.update(tokens)
            self._days.update(digits.lstrip("0") for digits in _DIGITS.findall(text))
        self._pending_texts.clear()


def find_invented_arguments(transcript: Transcript) -> dict[int, tuple[str, ...]]:
    """Return the possibly invented arguments of each call that has some, by event number.

    See `Grounding.find_invented_arguments`. Cost linear in the characters of the conversation, times the values of
    its calls.
    """
    grounding = Grounding()
    invented_arguments: dict[int, tuple[str, ...]] = {}
    for number, event in transcript.enumerate_events():
        grounding.add_event(event)
        if not isinstance(event, Call) or event.by != "agent":
            continue
        if paths := grounding.find_invented_arguments(event):
            invented_arguments[number] = paths
    return invented_arguments


def _iterate_leaves(arguments: Any) -> Iterator[tuple[str, str | float]]:
    """Yield each text and number in a call's arguments with its path, in their order."""
    # No recursion: arguments may be nested deeper than Python's stack.
    stack: list[tuple[str, Any]] = [("", arguments)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, Mapping):
            prefix = f"{path}." if path else ""
            children = [(f"{prefix}{key}", child) for key, child in value.items()]
            stack.extend(reversed(children))
        elif isinstance(value, list | tuple):
            children = [(f"{path}[{index}]", child) for index, child in enumerate(value)]
            stack.extend(reversed(children))
        elif not isinstance(value, bool) and isinstance(value, str | int | float):
            yield path, value


def _fold(text: str) -> str:
    return normalize("NFKC", text).casefold()


def _tokenize(text: str) -> list[str]:
    return [_normalize_number(token) if token[0].isdigit() else token for token in _TOKEN.findall(text)]


@lru_cache(maxsize=4096)
def _normalize_number(text: str) -> str:
    try:
        return f"{Decimal(text.lstrip('-').replace(',', '')).normalize():f}"
    except InvalidOperation:
        return text
