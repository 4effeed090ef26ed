"""Finding the value of an argument: the latest one that the customer, a tool's result or a variable gave."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.choices import choice_in, flag_in
from arq_graph.models.offline.dates import Span, dates_in, spaced, times_in
from arq_graph.models.offline.lexicon import listed
from arq_graph.models.offline.naming import (
    answered,
    people_in,
    places_in,
    quoted_in,
    things_in,
)
from arq_graph.models.offline.records import Found, as_listed, in_result, in_variables, today_in
from arq_graph.models.offline.roles import NAMED
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.sections import Line
from arq_graph.models.offline.shapes import (
    Candidate,
    denied,
    emails_in,
    identifiers_in,
    money_in,
    numbers_in,
    phones_in,
    plain_number,
    urls_in,
)
from arq_graph.models.offline.texts import text_in
from arq_graph.models.offline.wanted import Wanted
from arq_graph.models.offline.withheld import MASK, is_no_value
from arq_graph.models.offline.words import likeness, overlap, stem

_FIRST = listed("start from begin checkin arrival pickup origin departure first since")
_LAST = listed("end to until checkout return dropoff last till due")
_LABELLED = re.compile(
    r"\b(?P<label>[^\W\d_]{3,})\s*(?P<joint>is|are|=|:|was|should be|would be|to"
    r"|against)\s+",
    re.IGNORECASE,
)
_VALUE = re.compile(r"(?:[^,.;:!?\n]|(?<=\d)[.:](?=\d)){1,120}")
_CORRECTION = re.compile(
    r"\b(?:actually|sorry,? (?:i mean)?|i mean|i meant|make (?:it|that)|no,|wait,|correction|rather|instead)\b",
    re.IGNORECASE,
)
_QUANTITIES = frozenset(stem(word) for word in ("quantity", "count", "copies", "units", "pieces", "many"))
_LEAST = listed("min minimum least lowest")
_MOST = listed("max maximum most highest limit budget")


Taken = Mapping[str, Sequence[tuple[int, int]]]
"""The places in each message, by its id, that serve another argument already."""


def _masked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """A text with marks that belong to no word where something is taken."""
    for start, end in spans:
        text = text[:start] + MASK * (end - start) + text[end:]
    return text


def find(
    wanted: Wanted, scene: Scene, others: Sequence[Wanted] = (), taken: Taken | None = None
) -> tuple[Found, ...]:
    """The values of an argument that the newest source gives; more than one where it gives several.

    Args:
        wanted: The argument.
        scene: The conversation.
        others: The other arguments of the tool: a value that is plainly theirs is not taken.
        taken: What serves another argument already.
    """
    if wanted.kind == "text":
        return _words_of_need(wanted, scene, others) or in_variables(wanted, scene)
    for line in reversed(scene.lines[: scene.last_index + 1] + scene.fresh_results):
        if line.speaker == "customer":
            found = in_message(wanted, line, scene, others, (taken or {}).get(line.id, ()))
        elif line.speaker == "tool" and not line.error:
            found = in_result(wanted, line.result, line, scene)
        else:
            continue
        if found:
            return found
    return in_variables(wanted, scene)


def _words_of_need(wanted: Wanted, scene: Scene, others: Sequence[Wanted]) -> tuple[Found, ...]:
    """A text is the customer's answer to the question for it, or else how the need was first put."""
    asked_for = [line for line in scene.inquiry if is_asked_for(wanted, scene.question_before(line))]
    for line in (*asked_for, *reversed(scene.inquiry)):
        if found := in_message(wanted, line, scene, others):
            return found
    return ()


def in_message(
    wanted: Wanted,
    line: Line,
    scene: Scene,
    others: Sequence[Wanted] = (),
    taken: Iterable[tuple[int, int]] = (),
) -> tuple[Found, ...]:
    """The values that one customer message gives, in what of it is not taken."""
    text = _masked(line.text[:5_000], taken)
    answering = is_asked_for(wanted, scene.question_before(line)) and not dialogue.asks(text)
    if wanted.kind == "list":
        return _list(wanted, line, scene, others)
    candidates = [
        found
        for found in candidates_in(text, wanted, others, answering, today_in(scene))
        if found.value != ""
    ]
    candidates = _corrected(text, candidates) if wanted.kind != "boolean" else candidates
    if wanted.kind in NAMED:
        named = [each for each in candidates if not is_no_value(str(each.value), wanted, others)]
        candidates = [as_listed(each, text, wanted, scene) for each in named]
    values: dict[Any, Found] = {}
    for candidate in candidates:
        value = _typed(candidate.value, wanted)
        if value is not None:
            values.setdefault(
                value,
                Found(
                    value,
                    line.id,
                    text[candidate.start : candidate.end].strip()[:80],
                    (candidate.start, candidate.end),
                    candidate.weight + (1.0 if answering else 0.0),
                ),
            )
    return tuple(values.values())


def candidates_in(
    text: str, wanted: Wanted, others: Sequence[Wanted], answering: bool, today: date | None
) -> list[Candidate]:
    """What in a text may be the value, by its kind."""
    kind = wanted.kind
    if kind == "boolean":
        return flag_in(text, wanted, answering)
    if kind == "choice":
        return choice_in(text, wanted)
    if kind == "email":
        return emails_in(text)
    if kind == "phone":
        return phones_in(text)
    if kind == "url":
        return urls_in(text)
    if kind in ("date", "time", "moment"):
        return _by_role(wanted, text, others, today)
    if kind == "identifier":
        rivals = frozenset(name for other in others for name in other.objects) - wanted.objects
        return identifiers_in(text, wanted, rivals, answering)
    if kind in ("money", "number"):
        return _amounts(text, wanted, others, answering)
    if kind == "person":
        return people_in(text, wanted, answering, others)
    if kind == "place":
        return _labelled(text, wanted, others) or places_in(text, wanted, answering, others)
    if kind == "text":
        return text_in(text, wanted, answering, others)
    return _labelled(text, wanted, others) or things_in(text, wanted, answering, others)


def is_asked_for(wanted: Wanted, question: str) -> bool:
    """Whether a question of the agent is for this argument."""
    if not question:
        return False
    mine = max(overlap(wanted.label, question), overlap(wanted.description, question) * 0.9)
    return mine >= 0.5


def _by_role(wanted: Wanted, text: str, others: Sequence[Wanted], today: date | None) -> list[Candidate]:
    """Dates and times; where two are given, the first is the beginning and the second the end."""
    text = spaced(text)
    days, clocks = dates_in(text, today), times_in(text)
    if wanted.kind == "time":
        spans = clocks
    elif wanted.kind == "moment":
        spans = [_moment(days, clocks)] if days else []
    else:
        spans = days
    spans = [span for span in spans if not denied(text, span.start)]
    tokens = frozenset(re.sub(r"check[ _-]?(in|out)", r"check\1", " ".join(wanted.tokens)).split())
    siblings = [other for other in others if other.kind == wanted.kind and other.name != wanted.name]
    if tokens & _LAST and (siblings or len(spans) > 1):
        ends = [
            s
            for s in spans
            if re.search(
                r"(?:until|till|to|through|-|–|out|back|return\w*|end\w*)\s+(?:on )?$",
                text[: s.start],
                re.IGNORECASE,
            )
        ]
        spans = ends[-1:] or (spans[1:2] if len(spans) > 1 else [])
    elif tokens & _FIRST and siblings:
        spans = spans[:1]
    elif len(spans) > 1:
        spans = spans[-1:] if _CORRECTION.search(text) else spans
    return [Candidate(span.value, span.start, span.end) for span in spans]


def _moment(days: Sequence[Span], clocks: Sequence[Span]) -> Span:
    day = days[0]
    if not clocks:
        return day
    joint = "T" if re.fullmatch(r"\d{4}-\d{2}-\d{2}", day.value) else " "
    return Span(f"{day.value}{joint}{clocks[0].value}", day.start, day.end, f"{day.said} {clocks[0].said}")


def _amounts(text: str, wanted: Wanted, others: Sequence[Wanted], answering: bool) -> list[Candidate]:
    tokens = frozenset(wanted.tokens)
    if wanted.kind == "money" and (
        amounts := [found for found in money_in(text) if not denied(text, found.start)]
    ):
        if tokens & _LEAST:
            return [
                a
                for a in amounts
                if re.search(
                    r"(?:at least|over|above|more than|from|between|minimum(?: of)?)\s*$",
                    text[: a.start],
                    re.IGNORECASE,
                )
            ]
        if tokens & _MOST:
            return amounts[-1:]
        return amounts
    rivals = [
        other
        for other in others
        if other.kind in ("number", "money", "identifier") and other.name != wanted.name
    ]
    return numbers_in(
        text,
        wanted,
        alone=wanted.required and not rivals,
        answering=answering,
        counted=_countable(wanted, others),
    )


def _countable(wanted: Wanted, others: Sequence[Wanted]) -> frozenset[str]:
    """For a quantity, what the other arguments name: "two large margherita" counts margheritas."""
    if not wanted.objects & _QUANTITIES:
        return frozenset()
    options = [str(option) for other in others for option in other.choices]
    return frozenset(
        stem(token)
        for text in (*options, *(other.label for other in others))
        for token in text.lower().split()
    )


def _labelled(text: str, wanted: Wanted, others: Sequence[Wanted]) -> list[Candidate]:
    """What follows the argument's own name: "the title is Dune", "city: Oslo", "allergic to nuts"."""
    for match in _LABELLED.finditer(text):
        named = stem(match["label"].lower())
        close = any(likeness(named, name) >= 0.9 for name in wanted.objects)
        if not close or (match["joint"] in ("to", "against") and named in wanted.tokens):
            continue
        told = _VALUE.match(text.rstrip(MASK), match.end())
        value = re.split(r"\s(?:and|but|for|please)\s", told[0])[0].strip(" \"'“”") if told else ""
        if (
            told
            and value
            and MASK not in value
            and not dialogue.asks(value)
            and not is_no_value(value, wanted, others)
        ):
            start = told.start() + told[0].index(value)
            return [Candidate(value, start, start + len(value), 2.5)]
    return []


def _corrected(text: str, candidates: list[Candidate]) -> list[Candidate]:
    """Of several values only those behind "actually", "I mean", "instead": what was said before is taken back."""
    if len(candidates) < 2:
        return candidates
    corrections = [match.start() for match in _CORRECTION.finditer(text)]
    later = [c for c in candidates if any(c.start > at > candidates[0].start for at in corrections)]
    return later or candidates


def _typed(value: Any, wanted: Wanted) -> Any:
    """The value in the argument's type; None where it has no such value."""
    if wanted.options or wanted.type == "boolean":
        return value
    if wanted.type == "integer":
        number = value if isinstance(value, int | float) else plain_number(str(value).lstrip("#"))
        return int(number) if number is not None and float(number).is_integer() else None
    if wanted.type == "number":
        return value if isinstance(value, int | float) else plain_number(str(value))
    return str(value) if wanted.type == "string" else value


def _list(wanted: Wanted, line: Line, scene: Scene, others: Sequence[Wanted]) -> tuple[Found, ...]:
    if wanted.items is None:
        return ()
    text = line.text[:5_000]
    if wanted.items.kind in ("thing", "text"):
        answering = is_asked_for(wanted, scene.question_before(line))
        values = _enumeration(text, wanted, answering, others)
    elif wanted.items.kind == "object":
        return ()
    else:
        values = [found.value for found in in_message(wanted.items, line, scene, others)]
    return (Found(values, line.id, text[:80]),) if values else ()


def _enumeration(text: str, wanted: Wanted, answering: bool, others: Sequence[Wanted]) -> list[str]:
    label = re.escape(wanted.label)
    match = re.search(
        rf"\b(?:{label}|{re.escape(wanted.items.label) if wanted.items else label})\s*(?:are|is|:|of|like"
        r"|such as)\s*([^.!?\n]+)",
        text,
        re.IGNORECASE,
    )
    if match is None and wanted.objects & {
        stem(word) for word in ("toppings", "extras", "ingredients", "sides", "addons", "items")
    }:
        match = re.search(r"\b(?:with|add|and extra)\s+([^.!?\n]+)", text, re.IGNORECASE)
    if match is None:
        is_short = "," not in text and len(text.split()) < 6
        answer = answered(text, answering and is_short, wanted, others)
        return [str(found.value) for found in quoted_in(text) or ([answer] if answer else [])]
    stopped = re.split(r"\b(?:please|for|to|on|at|but)\b", match[1])[0]
    return [
        part.strip(" \"'“”")
        for part in re.split(r",\s*(?:and\s+)?|\s+and\s+|\s*&\s*", stopped)
        if part.strip(" \"'“”")
    ]


def any_given(wanted: Wanted, lines: Iterable[Line], scene: Scene) -> Found | None:
    """The first value that any of these customer messages gives."""
    for line in lines:
        if found := in_message(wanted, line, scene):
            return found[0]
    return None
