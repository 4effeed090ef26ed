"""Finding the value of an argument: the latest one that the customer, a tool's result or a variable gave."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.choices import choice_in, flag_in
from arq_graph.models.offline.dates import Span, date_named, dates_in, times_in
from arq_graph.models.offline.naming import bare_answer, people_in, places_in, quoted_in, text_in, things_in
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
from arq_graph.models.offline.wanted import Wanted
from arq_graph.models.offline.words import in_words, overlap, stem

_FIRST = frozenset("start from begin checkin arrival pickup origin departure first since".split())
_LAST = frozenset("end to until checkout return dropoff last till due".split())
_CORRECTION = re.compile(
    r"\b(?:actually|sorry,? (?:i mean)?|i mean|i meant|make (?:it|that)|no,|wait,|correction|rather|instead)\b",
    re.I,
)
_LEAST = frozenset("min minimum least lowest".split())
_MOST = frozenset("max maximum most highest limit budget".split())


@dataclass(frozen=True)
class Found:
    """A value, and where it stands.

    Args:
        value: The value, in the argument's type.
        source: Id of the message, result or variable.
        quote: The words it was taken from.
    """

    value: Any
    source: str
    quote: str


def find(wanted: Wanted, scene: Scene, others: Sequence[Wanted] = ()) -> tuple[Found, ...]:
    """The values of an argument that the newest source gives; more than one where it gives several.

    Args:
        wanted: The argument.
        scene: The conversation.
        others: The other arguments of the tool: a value that is plainly theirs is not taken.
    """
    if wanted.kind == "object":
        return _object(wanted, scene)
    for line in reversed(scene.lines[: scene.last_index + 1] + scene.fresh_results):
        if line.speaker == "customer":
            found = in_message(wanted, line, scene, others)
        elif line.speaker == "tool" and not line.error:
            found = in_result(wanted, line.result, line, scene)
        else:
            continue
        if found:
            return found
    return _in_variables(wanted, scene)


def in_message(wanted: Wanted, line: Line, scene: Scene, others: Sequence[Wanted] = ()) -> tuple[Found, ...]:
    """The values that one customer message gives."""
    text = line.text[:5_000]
    answering = _is_asked_for(wanted, scene.question_before(line), others) and not dialogue.asks(text)
    if wanted.kind == "list":
        return _list(wanted, line, scene, others)
    candidates = [
        found for found in candidates_in(text, wanted, others, answering, _today(scene)) if found.value != ""
    ]
    candidates = _corrected(text, candidates) if wanted.kind != "boolean" else candidates
    values: dict[Any, Found] = {}
    for candidate in candidates:
        value = _typed(candidate.value, wanted)
        if value is not None:
            values.setdefault(
                value, Found(value, line.id, text[candidate.start : candidate.end].strip()[:80])
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
        return people_in(text, wanted, answering)
    if kind == "place":
        return _labelled(text, wanted) or places_in(text, wanted, answering)
    if kind == "text":
        return text_in(text, wanted, answering)
    return _labelled(text, wanted) or things_in(text, wanted, answering)


def _is_asked_for(wanted: Wanted, question: str, others: Sequence[Wanted]) -> bool:
    """Whether a question of the agent is for this argument (and, if for several, for none of the others more)."""
    if not question:
        return False
    mine = max(overlap(wanted.label, question), overlap(wanted.description, question) * 0.9)
    return mine >= 0.5


def _by_role(wanted: Wanted, text: str, others: Sequence[Wanted], today: date | None) -> list[Candidate]:
    """Dates and times; where two are given, the first is the beginning and the second the end."""
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
                r"(?:until|till|to|through|-|–|out|back|return\w*|end\w*)\s+(?:on )?$", text[: s.start], re.I
            )
        ]
        spans = ends[-1:] or (spans[1:2] if len(spans) > 1 else [])
    elif tokens & _FIRST and siblings:
        spans = spans[:1]
    elif len(spans) > 1:
        spans = spans[-1:] if _CORRECTION.search(text) else spans
    return [
        Candidate(span.value if wanted.in_iso or wanted.kind != "date" else span.value, span.start, span.end)
        for span in spans
    ]


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
                    re.I,
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
    return numbers_in(text, wanted, alone=not rivals, answering=answering)


def _labelled(text: str, wanted: Wanted) -> list[Candidate]:
    """What follows the argument's own name: "the title is Dune", "city: Oslo"."""
    label = r"[\s_-]+".join(map(re.escape, wanted.tokens))
    match = re.search(
        rf"\b{label}\s*(?:is|are|=|:|was|should be|would be)\s+(?P<value>[^,.;!?\n]{{1,120}})", text, re.I
    )
    if match is None:
        return []
    value = re.split(r"\s(?:and|but|for|please)\s", match["value"])[0].strip(" \"'“”")
    return [Candidate(value, *match.span("value"))] if value else []


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
        number = value if isinstance(value, int | float) else plain_number(str(value))
        return number
    return str(value) if wanted.type == "string" else value


def _list(wanted: Wanted, line: Line, scene: Scene, others: Sequence[Wanted]) -> tuple[Found, ...]:
    if wanted.items is None:
        return ()
    text = line.text[:5_000]
    if wanted.items.kind in ("thing", "text"):
        answering = _is_asked_for(wanted, scene.question_before(line), others)
        values = _enumeration(text, wanted, answering)
    elif wanted.items.kind == "object":
        return ()
    else:
        values = [found.value for found in in_message(wanted.items, line, scene, others)]
    return (Found(values, line.id, text[:80]),) if values else ()


def _enumeration(text: str, wanted: Wanted, answering: bool) -> list[str]:
    label = re.escape(wanted.label)
    match = re.search(
        rf"\b(?:{label}|{re.escape(wanted.items.label) if wanted.items else label})\s*(?:are|is|:|of|like|such as)\s*([^.!?\n]+)",
        text,
        re.I,
    )
    if match is None and wanted.objects & {
        stem(word) for word in ("toppings", "extras", "ingredients", "sides", "addons", "items")
    }:
        match = re.search(r"\b(?:with|add|and extra)\s+([^.!?\n]+)", text, re.I)
    if match is None:
        return [str(found.value) for found in quoted_in(text)] or (
            [bare_answer(text)] if answering and "," not in text and len(text.split()) < 6 else []
        )
    stopped = re.split(r"\b(?:please|for|to|on|at|but)\b", match[1])[0]
    return [
        part.strip(" \"'“”")
        for part in re.split(r",\s*(?:and\s+)?|\s+and\s+|\s*&\s*", stopped)
        if part.strip(" \"'“”")
    ]


def _object(wanted: Wanted, scene: Scene) -> tuple[Found, ...]:
    """An object is given once all its required members are."""
    members: dict[str, Any] = {}
    sources: list[Found] = []
    for member in wanted.fields:
        found = find(member, scene, wanted.fields)
        if found:
            sources.append(found[0])
        elif member.required:
            return ()
        members[member.name] = found[0].value if found else None
    if not sources:
        return ()
    return (Found(members, sources[-1].source, "; ".join(found.quote for found in sources)),)


def in_result(wanted: Wanted, result: Any, line: Line, scene: Scene) -> tuple[Found, ...]:
    """The value that a tool's result gives under this argument's name; of several records, the one that was spoken of."""
    if isinstance(result, dict | list):
        records = list(_records(result))
        matching = [(record, key) for record in records for key in record if _names(key, wanted, line)]
        values = {
            json.dumps(record[key], default=str): (record, record[key])
            for record, key in matching
            if _fits(record[key], wanted)
        }
        if len(values) > 1:
            values = _spoken_of(values, scene)
        if len(values) == 1:
            value = next(iter(values.values()))[1]
            return (Found(value, line.id, str(value)[:80]),)
    return ()


def _records(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    if depth > 6:
        return
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _records(item, depth + 1)
    elif isinstance(value, list):
        for item in value[:100]:
            yield from _records(item, depth + 1)


def _names(key: str, wanted: Wanted, line: Line) -> bool:
    tokens = in_words(key).split()
    if tokens == list(wanted.tokens):
        return True
    # `id` in the result of get_order is the order's id.
    owner = {stem(word) for word in in_words(line.tool).split()}
    return (
        len(tokens) == 1 and tokens[0] == wanted.tokens[-1] and tokens[0] == "id" and wanted.objects <= owner
    )


def _fits(value: Any, wanted: Wanted) -> bool:
    if wanted.options:
        return value in wanted.options
    types: dict[str, tuple[type, ...]] = {
        "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "array": (list,), "object": (dict,),
    }  # fmt: skip
    right = isinstance(value, types.get(wanted.type, (object,)))
    return right and not (isinstance(value, bool) and wanted.type != "boolean") and value not in ("", None)


def _spoken_of(
    values: dict[str, tuple[dict[str, Any], Any]], scene: Scene
) -> dict[str, tuple[dict[str, Any], Any]]:
    scored = sorted(
        ((overlap(scene.last.text, _text_of(record)), key) for key, (record, _) in values.items()),
        reverse=True,
    )
    if scored[0][0] > 0 and scored[0][0] > scored[1][0]:
        return {scored[0][1]: values[scored[0][1]]}
    return {}


def _text_of(record: dict[str, Any]) -> str:
    return " ".join(str(value) for value in record.values() if isinstance(value, str | int | float))[:1_000]


def _in_variables(wanted: Wanted, scene: Scene) -> tuple[Found, ...]:
    for variable in scene.variables:
        value, name = variable.get("value"), str(variable.get("name") or "")
        source = str(variable.get("id") or "")
        if in_words(name).split() == list(wanted.tokens) and _fits(value, wanted):
            return (Found(value, source, str(value)[:80]),)
        if isinstance(value, dict | list):
            found = in_result(wanted, value, Line(source, "tool", "", tool=name), scene)
            if found:
                return found
    return ()


def _today(scene: Scene) -> date | None:
    for variable in scene.variables:
        if re.search(r"\b(?:today|date|now|current time)\b", in_words(str(variable.get("name"))), re.I):
            return date_named(str(variable.get("value")))
    match = re.search(r"\btoday(?:'s date)? is\b.{0,30}", str(scene.prompt.profile.get("text") or ""), re.I)
    return date_named(match[0]) if match else None


def any_given(wanted: Wanted, lines: Iterable[Line], scene: Scene) -> Found | None:
    """The first value that any of these customer messages gives."""
    for line in lines:
        if found := in_message(wanted, line, scene):
            return found[0]
    return None
