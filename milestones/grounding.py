"""Grounded arguments: is every value of a call found in what the user or a tool said before it?

Words are compared without case and punctuation, numbers by value ("1,200.50", "$1200.5"). Of a date ("2024-05-20")
the day has to be said: year and month are often left out, or said in words of whatever language. Of a range
("9:00–13:00"), each end. What is not found may still be right (derived, translated, a number in words): a call is only
marked as possibly invented.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any
from unicodedata import normalize

# In Python's own `re`, possessive repeats of a group differ between patch releases of 3.11 (gh-106052).
import regex  # type: ignore[import-untyped]

from arq_graph.milestones.transcript import Call, Event, Message, Result, Transcript
from arq_graph.reasoning.sections import CASED, RANGE_DASHES

_DIGITS = regex.compile(r"\d+")
_DATE = regex.compile(r"\d{4}-\d{2}-(\d{2})")
_DASH = regex.compile(RANGE_DASHES)
# A number, unless it is part of a word ("HAT136" holds no number), or a word; C stands for a digit or letter.
_NUMBER_OR_WORD = r"(?<!C)\d++(?!C)(?:,\d{3}(?!C))*+(?:\.\d++(?!C))?+|C+"
_TOKEN = regex.compile(rf"{_NUMBER_OR_WORD.replace('C', CASED)}|(?:(?!{CASED})[^\W_])+")
_SEPARATORS = regex.compile(r"[\W_]+")
# The same for ASCII texts, in which no group has to be possessive, by a module that is several times faster.
_PLAIN_NUMBER_OR_WORD = _NUMBER_OR_WORD.replace("++", "+").replace("*+", "*").replace("?+", "?")
_ASCII_TOKEN = re.compile(_PLAIN_NUMBER_OR_WORD.replace("C", r"[^\W_]"), re.ASCII)
_ASCII_SEPARATORS = re.compile(_SEPARATORS.pattern, re.ASCII)

# A code such as "A-17 B" is also looked for without separators, if it is too long to arise by chance.
MIN_SQUEEZED_LENGTH = 6


class Grounding:
    """The words, numbers and days that the user and the tools of one conversation have given so far."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        # How many texts each of these holds: a text is added when a value is first looked up there.
        self._indexed_counts = {"words": 0, "squeezed": 0, "days": 0}
        self._words = " "
        self._squeezed = ""
        self._days: set[str] = set()
        # What was given once stays given.
        self._grounded_texts: set[str] = set()

    def add_event(self, event: Event) -> None:
        """Add an event of a conversation; only user messages and tool results ground a value."""
        if isinstance(event, Result) or (isinstance(event, Message) and event.speaker == "user"):
            self.add_text(event.text)

    def add_text(self, text: str) -> None:
        """Add a text that the agent was given: a customer's message, a tool's result, a variable's value."""
        self._texts.append(text)

    def find_invented_arguments(self, call: Call) -> tuple[str, ...]:
        """Return the arguments of a call, as paths like `passengers[0].dob`, whose value nobody gave before it.

        True, false, null and empty texts are decisions, not facts, and are never marked.
        """
        return tuple(path for path, value in _iterate_leaves(call.arguments) if not self._is_grounded(value))

    def _is_grounded(self, value: str | float) -> bool:
        if not isinstance(value, str):
            return self._has_words([_normalize_number(str(value))])
        if value not in self._grounded_texts and all(map(self._is_text_grounded, _DASH.split(value))):
            self._grounded_texts.add(value)
        return value in self._grounded_texts

    def _is_text_grounded(self, value: str) -> bool:
        text = _fold(value)
        tokens = _tokenize(text)
        if not tokens or self._has_words(tokens):
            return True
        if date := _DATE.fullmatch(text):
            return self._has_day(date[1].lstrip("0"))
        squeezed = _squeeze(text)
        is_code = len(squeezed) >= MIN_SQUEEZED_LENGTH and any(map(str.isdigit, squeezed))
        return is_code and self._has_squeezed(squeezed)

    def _has_words(self, tokens: list[str]) -> bool:
        """Return whether a text holds these words and numbers, one after the other."""
        for text in self._take_new_texts("words"):
            self._words += " ".join(_tokenize(text)) + " "
        return f" {' '.join(tokens)} " in self._words

    def _has_day(self, day: str) -> bool:
        for text in self._take_new_texts("days"):
            self._days.update(digits.lstrip("0") for digits in _DIGITS.findall(text))
        return day in self._days

    def _has_squeezed(self, squeezed: str) -> bool:
        for text in self._take_new_texts("squeezed"):
            # A mark between two utterances keeps the end of one from running into the next.
            self._squeezed += "|" + _squeeze(text)
        return squeezed in self._squeezed

    def _take_new_texts(self, index: str) -> Iterator[str]:
        new_texts = self._texts[self._indexed_counts[index] :]
        self._indexed_counts[index] = len(self._texts)
        return map(_fold, new_texts)


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
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, Mapping):
            prefix = f"{path}." if path else ""
            children = [(f"{prefix}{key}", child) for key, child in value.items()]
            stack.extend(reversed(children))
        elif isinstance(value, list | tuple):
            children = [(f"{path}[{index}]", child) for index, child in enumerate(value)]
            stack.extend(reversed(children))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield path, value


def _fold(text: str) -> str:
    return normalize("NFKC", text).casefold()


def _tokenize(text: str) -> list[str]:
    pattern = _ASCII_TOKEN if text.isascii() else _TOKEN
    return [_normalize_number(token) if token[0].isdigit() else token for token in pattern.findall(text)]


def _squeeze(text: str) -> str:
    """Return a text without anything between its letters and digits."""
    pattern = _ASCII_SEPARATORS if text.isascii() else _SEPARATORS
    return str(pattern.sub("", text))


@lru_cache(maxsize=4096)
def _normalize_number(text: str) -> str:
    try:
        return f"{Decimal(text.lstrip('-').replace(',', '')).normalize():f}"
    except InvalidOperation:
        return text
