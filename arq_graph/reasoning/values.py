"""The values in a text (ids, numbers, dates), by structure alone: words with a digit, and addresses with an @."""

from __future__ import annotations

import re
from collections.abc import Sequence

import regex  # type: ignore[import-untyped]

from arq_graph.reasoning.history import Line
from arq_graph.reasoning.sections import CASED, RANGE_DASHES

_VALUE = re.compile(r"[\d@]")
_CASELESS_LETTER = r"[\p{Lo}\p{Lm}]\p{M}*"
_BETWEEN_VALUES = regex.compile(rf"(?:['’]|{RANGE_DASHES}|{_CASELESS_LETTER})+")
_AROUND = '.,;:!?"“”„‘()[]{}<>…*_`。、，：；！？（）「」'
_SIGNS_AROUND = regex.compile(r"^\W+|\W+$")
# All hyphens are the same; a tool's JSON has backslashes before quotes.
_PLAIN = str.maketrans("\u2010\u2011", "--", "\\")
_LENGTHS = range(3, 61)  # shorter ones are counts, which say nothing by themselves; longer ones are data
_OVERHEAD = 8  # characters of a line's id and of punctuation


def find_values(text: str) -> list[str]:
    """Return the values in a text, each once: words of 3 to 60 characters.

    The two ends of a range are two values, and an apostrophe ends a value, as in "ORD-77's".
    """
    values: dict[str, None] = {}
    for part in text.split():
        if not _VALUE.search(part):  # first a cheap test, since few parts hold a value
            continue
        for word in _BETWEEN_VALUES.split(part):
            value = strip_marks(word)
            if len(value) in _LENGTHS and _VALUE.search(value):
                values[value] = None
    return list(values)


def has_value(text: str, value: str) -> bool:
    """Return whether a text has a value, whatever case it is in and signs are around it; "ORD-77" has no "ORD-7"."""
    bare_value = regex.escape(_SIGNS_AROUND.sub("", value.translate(_PLAIN)))
    pattern = rf"(?<!{CASED}){bare_value}(?!{CASED})"
    return regex.search(pattern, text.translate(_PLAIN), regex.IGNORECASE) is not None


def strip_marks(words: str) -> str:
    """Return words without the quotation marks, brackets and stops around them."""
    return words.strip(_AROUND)


def collect_values(lines: Sequence[Line], max_characters: int) -> dict[str, list[str]]:
    """Return the values that the customer, a colleague and the agent have mentioned, by the line that first has each.

    If they are too many, the agent's are left out first, and of those of one speaker the latest.
    """
    values_by_line: dict[str, list[str]] = {}
    known: set[str] = set()
    characters = 0
    for speaker in ("customer", "colleague", "agent"):
        for line in lines:
            if line.speaker != speaker:
                continue
            for value in find_values(line.text):
                if value.casefold() in known:
                    continue
                known.add(value.casefold())
                characters += len(value) + _OVERHEAD
                if characters > max_characters:
                    return values_by_line
                values_by_line.setdefault(line.id, []).append(value)
    return values_by_line
