"""What tools' results and variables show: whether a statement is true of them, and which numbers they hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from arq_graph.models.offline.findings import Finding
from arq_graph.models.offline.lexicon import listed
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.sections import Line
from arq_graph.models.offline.shapes import all_numbers
from arq_graph.models.offline.speaking import share
from arq_graph.models.offline.words import Word, best_match, likeness, stem, weight, words

ABOUT_FROM = 0.45
"""From this share of its words on, a result is about a thing."""

_UNFOUND = stem("unfound")
_ABSENCE = frozenset((_UNFOUND, stem("unavailable")))
_EXISTENCE = _ABSENCE | frozenset(
    map(stem, listed("available found exist exists free left remaining find open"))
)
_FAILURE = frozenset(map(stem, listed("error decline reject fail")))
_AGE = Word(stem("age"), "age", negated=False)
_AGED = re.compile(
    r"\b(?:is|am|i'm|aged?|turn(?:ing|s)?|'s) (\d{1,3})(?=$|[.,!?]| and\b| years?\b| yo\b| y/o)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Statement:
    """Something said of a thing, to be held against a result: "(the order) is delayed".

    Args:
        subject: The words of the thing.
        predicate: The words of what is said of it.
    """

    subject: tuple[Word, ...]
    predicate: tuple[Word, ...]

    def shown_by(self, finding: Finding, need: tuple[Word, ...]) -> float | None:
        """How far a result shows it, 0 to 1; None where the result is about something else.

        Args:
            finding: The result.
            need: The words of the need that the tool was called for.
        """
        about = finding.subject + need
        if self.subject and share(self.subject, about) < ABOUT_FROM:
            return None
        existing = tuple(word for word in self.predicate if word.stem in _EXISTENCE)
        rest = tuple(word for word in self.predicate if word not in existing)
        if existing:
            if not self.subject and rest and share(rest, about) < ABOUT_FROM:
                return None
            return _existence_shown(finding, existing)
        # A thing may have a problem, or be broken, though the call did not fail: what the result tells counts first.
        failing = [
            word for word in self.predicate if any(likeness(word.stem, bad) >= 0.9 for bad in _FAILURE)
        ]
        if failing and finding.tells(failing[0]) is None:
            return 0.95 if finding.failed != failing[0].negated else 0.1
        return self._predicate_shown(finding, rest)

    def _predicate_shown(self, finding: Finding, sought: tuple[Word, ...]) -> float:
        told = [finding.tells(word) for word in sought]
        if all(verdict is None for verdict in told):
            # "has not been delivered" holds where nothing says that it was.
            is_denial = bool(sought) and bool(self.subject) and all(word.negated for word in sought)
            return 0.8 if is_denial else 0.1
        if not any(told):
            return 0.1
        total = sum(weight(word.stem) for word in sought) or 1.0
        met = 0.0
        for word, verdict in zip(sought, told, strict=True):
            if verdict is not False:
                met += weight(word.stem) * (1.0 if verdict else best_match(word, finding.subject)[0])
        return min(1.0, met / total)


def _existence_shown(finding: Finding, sought: Sequence[Word]) -> float:
    """Whether a result shows that there is something, or that there is nothing."""
    denied = any(word.stem in _ABSENCE for word in sought) != any(word.negated for word in sought)
    told = next((verdict for word in sought if (verdict := finding.tells(word)) is not None), None)
    if told is not None and not denied:
        return 0.95 if told and not finding.is_empty else 0.1
    # What is not known at all is not "sold out".
    unheard_of = isinstance(finding.line.result, str) and all(word.stem != _UNFOUND for word in sought)
    absent = (finding.is_empty and not unheard_of) or (told is not None and told == denied)
    return 0.95 if absent == denied and not finding.failed else 0.1


def known_of_customer(scene: Scene, sought: tuple[Word, ...]) -> Iterator[tuple[float, Line]]:
    """The results and variables that say a thing of the customer, each with how far it does."""
    variables = [
        Line(str(entry.get("id")), "tool", _as_text(entry.get("value")), tool=str(entry.get("name")))
        for entry in scene.variables
    ]
    total = sum(weight(word.stem) for word in sought) or 1.0
    for line in (*scene.known_results, *variables):
        finding = Finding(line)
        if _names_what_is_true(finding, sought):
            yield 1.0, line
            continue
        told = [finding.tells(word) for word in sought]
        if not any(told) or False in told:
            continue
        met = [
            weight(word.stem)
            for word, verdict in zip(sought, told, strict=True)
            if verdict or best_match(word, finding.subject)[0] > 0
        ]
        yield sum(met) / total, line


def _names_what_is_true(finding: Finding, sought: tuple[Word, ...]) -> bool:
    """Whether its name is what is sought, and its value is true: the variable `is_member` with the value true."""
    if not isinstance(finding.line.result, bool) or not sought:
        return False
    names = words(finding.line.tool.replace("_", " "))
    met = all(any(likeness(word.stem, name.stem) >= 0.9 for name in names) for word in sought)
    return met and finding.line.result != any(word.negated for word in sought)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def numbers_about(scene: Scene, about: tuple[Word, ...]) -> list[tuple[float, Line]]:
    """The numbers that results, variables and the customer give for a thing, the nearest in meaning first."""
    found: list[tuple[float, float, Line]] = []
    for line in scene.known_results:
        finding = Finding(line)
        for leaf in finding.leaves:
            if isinstance(leaf.value, int | float) and not isinstance(leaf.value, bool):
                close = share(about, leaf.names + finding.subject) + share(leaf.names, about)
                found.append((close, float(leaf.value), line))
    for variable in scene.variables:
        value, name = variable.get("value"), str(variable.get("name"))
        if isinstance(value, int | float) and not isinstance(value, bool):
            close = share(about, words(name.replace("_", " "))) * 2
            found.append((close, float(value), Line(str(variable.get("id")), "tool", "")))
    for line in scene.inquiry:
        if best_match(_AGE, about)[0] and (aged := _AGED.search(line.text)):
            found.append((2.0, float(aged[1]), line))
        for number, start, end in all_numbers(line.text):
            near = words(line.text[max(0, start - 40) : end + 25])
            found.append((sum(best_match(word, near)[0] for word in about), number, line))
    ranked = sorted((entry for entry in found if entry[0] >= 0.5), key=lambda entry: -entry[0])
    return [(number, line) for _, number, line in ranked]
