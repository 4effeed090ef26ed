"""Grounded arguments: is every value of a call found in what the user or a tool said before it?

Words are compared without case and punctuation, numbers by value ("1,200.50", "$1200.5"). Of a date ("2024-05-20")
the day has to be said: year and month are often left out, or said in words of whatever language. Of a range
("9:00–13:00"), each end. What is not found may still be right (derived, translated, a number in words): a call is only
marked as possibly invented.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any
from unicodedata import normalize

# In Python's own `re`, possessive repeats of a group differ between patch releases of 3.11 (gh-106052).
import regex  # type: ignore[import-untyped]

from arq_graph.milestones.transcript import Call, Event, Message, Result, Transcript
from arq_graph.reasoning.sections import CASED, RANGE_DASHES

_DIGITS = re.compile(r"\d+")
_DATE = re.compile(r"\d{4}-\d{2}-(\d{2})")
_DASH = regex.compile(RANGE_DASHES)
# A number, unless it is part of a word ("HAT136" holds no number), or a word; C stands for a digit or letter.
_NUMBER_OR_WORD = r"(?<!C)\d++(?!C)(?:,\d{3}(?!C))*+(?:\.\d++(?!C))?+|C+".replace("C", CASED)
_TOKEN = regex.compile(rf"{_NUMBER_OR_WORD}|(?:(?!{CASED})[^\W_])+")
_SEPARATORS = regex.compile(r"[\W_]+")
# For ASCII texts, Python's own module, which is several times faster with a pattern that begins with a plain set.
# It finds words, and what begins with a digit together with all that commas and points may join to a number.
_ASCII_CHUNK = re.compile(r"[a-z0-9](?:(?<=[0-9])[a-z0-9]*(?:[.,][0-9][a-z0-9]*)*|[a-z0-9]*)")
_ASCII_SEPARATORS = re.compile(_SEPARATORS.pattern, re.ASCII)

# A code such as "A-17 B" is also looked for without separators, if it is too long to arise by chance.
MIN_SQUEEZED_LENGTH = 6
_MAX_EXPONENT = 400  # floats end before
# Plain types come first, because a look at an abstract class takes longer.
_SCALARS = (str, int, float)
_LISTS = (list, tuple)
_MAPPINGS = (dict, Mapping)
# Between these, a value has the same words and numbers as alone.
_BOUNDARIES = frozenset(" \n\"':;()[]{}<>")


class Grounding:
    """The words, numbers and days that the user and the tools of one conversation have given so far."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._joined_texts = "\n"
        # How many texts each of these holds: a text is added when a value is first looked up there.
        self._indexed_counts = {"words": 0, "squeezed": 0, "days": 0}
        self._words = " "
        self._squeezed = ""
        self._days: set[str] = set()
        # What was given once stays given.
        self._grounded_values: set[str | float] = set()

    def add_event(self, event: Event) -> None:
        """Add an event of a conversation; only user messages and tool results ground a value."""
        if isinstance(event, Result) or (isinstance(event, Message) and event.speaker == "user"):
            self.add_text(event.text)

    def add_text(self, text: str) -> None:
        """Add a text that the agent was given: a customer's message, a tool's result, a variable's value."""
        folded = _fold(text)
        self._texts.append(folded)
        self._joined_texts += folded + "\n"

    def find_invented_arguments(self, call: Call) -> tuple[str, ...]:
        """Return the arguments of a call, as paths like `passengers[0].dob`, whose value nobody gave before it.

        True, false, null and empty texts are decisions, not facts, and are never marked.
        """
        invented: list[str] = []
        # No recursion: arguments may be nested deeper than Python's stack. The last value comes first.
        stack: list[tuple[str, Any]] = [("", call.arguments)]
        while stack:
            path, value = stack.pop()
            if isinstance(value, _SCALARS):
                if not isinstance(value, bool) and not self._is_grounded(value):
                    invented.append(path)
            elif isinstance(value, _LISTS):
                stack += [(f"{path}[{index}]", child) for index, child in enumerate(value)]
            elif isinstance(value, _MAPPINGS):
                prefix = f"{path}." if path else ""
                stack += [(f"{prefix}{key}", child) for key, child in value.items()]
        return tuple(reversed(invented))

    def _is_grounded(self, value: str | float) -> bool:
        if value in self._grounded_values:
            return True
        if not isinstance(value, str):
            is_grounded = self._has_number(_normalize_number(str(value)))
        elif value.isascii():
            is_grounded = self._has_text(value.lower())
        else:
            is_grounded = all(map(self._has_text, map(_fold, _DASH.split(value))))
        if is_grounded:
            self._grounded_values.add(value)
        return is_grounded

    def _has_number(self, number: str) -> bool:
        start = self._joined_texts.find(number, 1, -1)
        return self._stands_alone(number, start) or self._has_words(number)

    def _has_text(self, text: str) -> bool:
        start = self._joined_texts.find(text, 1, -1)
        if self._stands_alone(text, start):
            return True
        if date := _DATE.fullmatch(text):
            return self._has_day(date[1].lstrip("0"))
        is_missing_word = start < 0 and text.isascii() and text.isalnum() and text[0].isalpha()
        if not is_missing_word:
            words = _extract_words(text)
            if not words or self._has_words(words):
                return True
        if len(text) < MIN_SQUEEZED_LENGTH:
            return False
        squeezed = _squeeze(text)
        is_code = len(squeezed) >= MIN_SQUEEZED_LENGTH and any(map(str.isdigit, squeezed))
        return is_code and self._has_squeezed(squeezed)

    def _stands_alone(self, text: str, start: int) -> bool:
        """Return whether a text that occurs there, -1 for nowhere, is between spaces, quotes or brackets."""
        if start < 0:
            return False
        neighbours = self._joined_texts[start - 1], self._joined_texts[start + len(text)]
        return _BOUNDARIES.issuperset(neighbours)

    def _has_words(self, words: str) -> bool:
        """Return whether a text holds these words and numbers, one after the other."""
        if new_texts := self._take_new_texts("words"):
            self._words += _extract_words("\n".join(new_texts)) + " "
        return f" {words} " in self._words

    def _has_day(self, day: str) -> bool:
        for text in self._take_new_texts("days"):
            self._days.update(digits.lstrip("0") for digits in _DIGITS.findall(text))
        return day in self._days

    def _has_squeezed(self, squeezed: str) -> bool:
        for text in self._take_new_texts("squeezed"):
            # A mark between two utterances keeps the end of one from running into the next.
            self._squeezed += "|" + _squeeze(text)
        return squeezed in self._squeezed

    def _take_new_texts(self, index: str) -> list[str]:
        new_texts = self._texts[self._indexed_counts[index] :]
        self._indexed_counts[index] = len(self._texts)
        return new_texts


def find_invented_arguments(transcript: Transcript) -> dict[int, tuple[str, ...]]:
    """Return the possibly invented arguments of each call that has some, by event number.

    See `Grounding.find_invented_arguments`. Cost linear in the characters of the conversation, times the values of
    its calls.
    """
    grounding = Grounding()
    invented_arguments: dict[int, tuple[str, ...]] = {}
    for number, event in transcript.enumerate_events():
        if not isinstance(event, Call):
            grounding.add_event(event)
        elif event.by == "agent" and (paths := grounding.find_invented_arguments(event)):
            invented_arguments[number] = paths
    return invented_arguments


def _fold(text: str) -> str:
    return normalize("NFKC", text).casefold()


def _extract_words(text: str) -> str:
    """Return the words and numbers of a folded text, with a space between them."""
    pattern = _ASCII_CHUNK if text.isascii() else _TOKEN
    return " ".join(map(_normalize_chunk, pattern.findall(text)))


def _squeeze(text: str) -> str:
    """Return a text without anything between its letters and digits."""
    pattern = _ASCII_SEPARATORS if text.isascii() else _SEPARATORS
    return str(pattern.sub("", text))


@lru_cache(maxsize=4096)
def _normalize_chunk(chunk: str) -> str:
    """Return a word as it is, and each number in what begins with a digit in its normal form."""
    if not chunk[0].isdigit():
        return chunk
    return " ".join(map(_normalize_number, _TOKEN.findall(chunk)))


def _normalize_number(text: str) -> str:
    try:
        number = Decimal(text.lstrip("-").replace(",", ""))
    except InvalidOperation:
        return text
    # An id such as 12e345678 isn't a number to be written out.
    return text if abs(number.adjusted()) > _MAX_EXPONENT else f"{number.normalize():f}"
