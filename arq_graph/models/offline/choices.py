"""Values that are chosen: one of a list, or yes and no."""

from __future__ import annotations

import re

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.lexicon import listed
from arq_graph.models.offline.shapes import Candidate, denied
from arq_graph.models.offline.wanted import Wanted
from arq_graph.models.offline.words import in_words, likeness, stem, words

_FILLERS = frozenset(
    stem(word)
    for word in listed("is has with want wants needs include included includes enable enabled add use flag")
)


def choice_in(text: str, wanted: Wanted) -> list[Candidate]:
    """The values of the list that a text names, longest first where one is part of another."""
    found: list[Candidate] = []
    for option in sorted(wanted.choices, key=lambda option: -len(str(option))):
        if isinstance(option, bool) or not isinstance(option, str | int | float):
            continue
        for start, end in _mentions(text, str(option)):
            inside = any(other.start <= start and end <= other.end for other in found)
            # "My email is …" names the customer's address, not the service called "email".
            told = re.search(r"\bmy\s+$", text[:start], re.IGNORECASE) and re.match(
                r"(?: \w+)?(?: is|:)\s", text[end:]
            )
            ruled_out = denied(text, start) or re.search(r"\b(?:no|without)\s+$", text[:start], re.IGNORECASE)
            if not inside and not told and not ruled_out:
                found.append(Candidate(option, start, end))
    if not found:
        found = [candidate for candidate in _by_meaning(text, wanted) if not denied(text, candidate.start)]
    return sorted(found, key=lambda candidate: candidate.start)


def _mentions(text: str, option: str) -> list[tuple[int, int]]:
    spoken = in_words(option) or option
    if len(option) <= 2 and option.isalpha():
        # A letter such as the size "S" counts in capitals only, or "a" would be everywhere.
        return [
            match.span() for match in re.finditer(rf"(?<![\w'’]){re.escape(option.upper())}(?![\w'’])", text)
        ]
    pattern = r"[\s_-]*".join(map(re.escape, spoken.split()))
    plural = "" if option[-1:].isdigit() else r"(?:s|es)?"
    return [match.span() for match in re.finditer(rf"(?<!\w){pattern}{plural}(?!\w)", text, re.IGNORECASE)]


def _by_meaning(text: str, wanted: Wanted) -> list[Candidate]:
    """Options whose every word is met by a synonym or another form ("express" for "expressed delivery")."""
    found = []
    for option in wanted.choices:
        if not isinstance(option, str):
            continue
        sought = [word for word in words(in_words(option)) if len(word.stem) > 2]
        met = [
            next((w for w in words(text) if not w.negated and likeness(part.stem, w.stem) >= 0.9), None)
            for part in sought
        ]
        if sought and all(met):
            start = text.lower().find(met[0].surface) if met[0] else 0
            found.append(Candidate(option, max(start, 0), max(start, 0) + 1))
    return found if len(found) == 1 else []


def flag_in(text: str, wanted: Wanted, answering: bool) -> list[Candidate]:
    """Yes or no: what the argument names is asked for, or ruled out; or a question for it is answered."""
    if answering and dialogue.says_no(text):
        return [Candidate(False, 0, len(text))]
    if answering and dialogue.says_yes(text):
        return [Candidate(True, 0, len(text))]
    sought = [word for word in words(wanted.label) if word.stem not in _FILLERS]
    if not sought:
        return []
    said = words(text)
    met = [next((other for other in said if likeness(word.stem, other.stem) >= 0.9), None) for word in sought]
    if not all(met):
        return []
    negated = any(word is not None and word.negated for word in met)
    first = met[0].surface if met[0] else ""
    start = max(text.lower().find(first), 0)
    return [Candidate(not negated, start, start + len(first))]
