"""Sharing out what a message says among the arguments of one call: what serves one of them serves no other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from arq_graph.models.offline.records import Found
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.values import Taken, find, in_message, is_asked_for
from arq_graph.models.offline.wanted import Wanted

_SHARED = ("boolean", "text", "list", "object")
"""Kinds that may be read from words that serve another argument as well."""
_SHAPED = ("email", "phone", "url", "date", "time", "moment", "choice", "identifier", "money", "number")
_PART = re.compile(r"\b(?!and\b)\w(?:(?!,|\band\b).)*")


def find_each(wanted: Sequence[Wanted], scene: Scene) -> list[tuple[Found, ...]]:
    """The values of the arguments of one call: what a message says once serves one of them.

    The surest argument chooses first; one that found the same words looks for others.
    """
    others = [[other for other in wanted if other is not each] for each in wanted]
    found = [_find(each, scene, rest) for each, rest in zip(wanted, others, strict=True)]
    settled = _in_order(wanted, scene, others)
    found = [settled.get(index, values) for index, values in enumerate(found)]
    taken: dict[str, list[tuple[int, int]]] = {}
    left = [index for index, each in enumerate(wanted) if each.kind not in _SHARED]
    while left:
        surest = max(
            left, key=lambda index: (index in settled, _sureness(wanted[index], found[index]), -index)
        )
        left.remove(surest)
        for value in (*found[surest], *_said_too(wanted[surest], found[surest], scene, others[surest])):
            if value.span:
                taken.setdefault(value.source, []).append(value.span)
        for index in left:
            if index not in settled and any(_is_taken(value, taken) for value in found[index]):
                found[index] = _find(wanted[index], scene, others[index], taken)
    return found


def _find(
    wanted: Wanted, scene: Scene, others: Sequence[Wanted], taken: Taken | None = None
) -> tuple[Found, ...]:
    return _object(wanted, scene) if wanted.kind == "object" else find(wanted, scene, others, taken)


def _said_too(wanted: Wanted, found: Sequence[Found], scene: Scene, others: Sequence[Wanted]) -> list[Found]:
    """Where the open need says a value that a result has given since: those words serve no other argument either."""
    values = [value.value for value in found if value.span is None]
    said = (
        [each for line in scene.inquiry for each in in_message(wanted, line, scene, others)] if values else []
    )
    return [each for each in said if each.value in values]


def _in_order(
    wanted: Sequence[Wanted], scene: Scene, others: Sequence[Sequence[Wanted]]
) -> dict[int, tuple[Found, ...]]:
    """The parts of an answer that lists as many as it was asked for: "the drill, Ben and Cara"."""
    for line in scene.inquiry:
        question = scene.question_before(line)
        asked = [index for index, each in enumerate(wanted) if each.required and is_asked_for(each, question)]
        parts = [match.span() for match in _PART.finditer(line.text[:500])]
        if len(asked) > 1 and len(parts) == len(asked):
            rest = [((0, start), (end, len(line.text))) for start, end in parts]
            found = {
                index: in_message(wanted[index], line, scene, others[index], taken)
                for index, taken in zip(asked, rest, strict=True)
            }
            if all(found.values()):
                return found
    return {}


def _sureness(wanted: Wanted, found: Sequence[Found]) -> tuple[float, bool]:
    shaped = 2.0 if wanted.kind in _SHAPED else 0.0
    return shaped + max((value.weight for value in found), default=0.0), wanted.required


def _is_taken(value: Found, taken: Taken) -> bool:
    if value.span is None:
        return False
    start, end = value.span
    return any(first < end and start < last for first, last in taken.get(value.source, ()))


def _object(wanted: Wanted, scene: Scene) -> tuple[Found, ...]:
    """An object is given once all its required members are."""
    members: dict[str, Any] = {}
    sources: list[Found] = []
    for member, found in zip(wanted.fields, find_each(wanted.fields, scene), strict=True):
        if found:
            sources.append(found[0])
        elif member.required:
            return ()
        members[member.name] = found[0].value if found else None
    if not sources:
        return ()
    return (Found(members, sources[-1].source, "; ".join(found.quote for found in sources)),)
