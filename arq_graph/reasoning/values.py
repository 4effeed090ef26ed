"""The values in a text (ids, numbers, dates), by structure alone: words with a digit, and addresses with an @."""

from __future__ import annotations

import re
from collections.abc import Sequence

from arq_graph.reasoning.history import Line

_VALUE = re.compile(r"[\d@]")
_BETWEEN_WORDS = re.compile(r"[\s–—]+")  # dashes of a range, such as 9:00–13:00; ids have hyphens
_AROUND = ".,;:!?\"'“”„‘’()[]{}<>…*_`"
_LENGTHS = range(3, 61)  # shorter ones are counts, which say nothing by themselves; longer ones are data
_OVERHEAD = 8  # characters of a line's id and of punctuation


def find_values(text: str) -> list[str]:
    """Return the values in a text, each once: words of 3 to 60 characters."""
    values: dict[str, None] = {}
    for word in _BETWEEN_WORDS.split(text):
        value = word.strip(_AROUND)
        if len(value) in _LENGTHS and _VALUE.search(value):
            values[value] = None
    return list(values)


def collect_values(lines: Sequence[Line], max_characters: int) -> dict[str, list[str]]:
    """Return the values that the customer and the agent have mentioned, by the line that first has each.

    If they are too many, the agent's are left out first, and of those of one speaker the latest.
    """
    values_by_line: dict[str, list[str]] = {}
    known: set[str] = set()
    characters = 0
    for speaker in ("customer", "agent"):
        for line in lines:
            if line.speaker != speaker:
                continue
            for value in find_values(line.message.text):
                if value.casefold() in known:
                    continue
                known.add(value.casefold())
                characters += len(value) + _OVERHEAD
                if characters > max_characters:
                    return values_by_line
                values_by_line.setdefault(line.id, []).append(value)
    return values_by_line
