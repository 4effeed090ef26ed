"""Values that a tool's result or a variable gives under an argument's name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from arq_graph.models.offline.dates import date_named
from arq_graph.models.offline.findings import Finding
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.sections import Line
from arq_graph.models.offline.shapes import Candidate
from arq_graph.models.offline.wanted import Wanted
from arq_graph.models.offline.words import in_words, overlap, stem


@dataclass(frozen=True)
class Found:
    """A value, and where it stands.

    Args:
        value: The value, in the argument's type.
        source: Id of the message, result or variable.
        quote: The words it was taken from.
        span: Where in a message they stand; None for what no message says.
        weight: How sure it is.
    """

    value: Any
    source: str
    quote: str
    span: tuple[int, int] | None = None
    weight: float = 0.0


def in_result(wanted: Wanted, result: Any, line: Line, scene: Scene) -> tuple[Found, ...]:
    """The value that a result gives under this argument's name; of several records, the one spoken of."""
    if isinstance(result, dict | list):
        records = list(_records(result))
        matching = [(record, key) for record in records for key in record if _names(key, wanted, line)]
        values = {
            json.dumps(record[key], default=str): (record, record[key])
            for record, key in matching
            if _fits(record[key], wanted)
        }
        if len(values) > 1:
            values = _spoken_of(values, wanted, scene)
        if len(values) == 1:
            value = next(iter(values.values()))[1]
            return (Found(value, line.id, str(value)[:80]),)
    return ()


def as_listed(said: Candidate, text: str, wanted: Wanted, scene: Scene) -> Candidate:
    """A name that a message gives, as a result lists it.

    "Book the Ridge walk" names the listed "Ridge walk", and "the river tour" the "River tour at 14:00" where only
    one such is listed.
    """
    best, lowered = said, text.lower()
    listed = {
        leaf.value: _is_name_of(leaf.key, line, wanted)
        for line in scene.known_results
        if not Finding(line).failed
        for leaf in Finding(line).leaves
        if _is_name(leaf.value)
    }
    for name in listed:
        at = lowered.find(name.lower())
        if 0 <= at <= best.start and best.end <= at + len(name) and name[-1].isalnum():
            ends_there = not lowered[at + len(name) : at + len(name) + 1].isalnum()
            begins_there = not lowered[max(0, at - 1) : at].isalnum()
            if ends_there and begins_there:
                best = Candidate(name, at, at + len(name), said.weight)
    if best is not said or wanted.kind != "thing" or not isinstance(said.value, str):
        return best
    part = re.compile(rf"(?<!\w){re.escape(said.value)}(?!\w)", re.IGNORECASE)
    whole = [name for name, is_its_own in listed.items() if is_its_own and part.search(name)]
    return replace(said, value=whole[0]) if len(whole) == 1 else said


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 80


def _is_name_of(key: str, line: Line, wanted: Wanted) -> bool:
    """Whether what stands under a key is called so: by a name, a title, the argument's own name, or in a list."""
    if not key:
        return isinstance(line.result, list)
    return key.lower() in ("name", "title", "label") or stem(in_words(key)) in wanted.objects


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
        "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
        "array": (list,), "object": (dict,),
    }  # fmt: skip
    right = isinstance(value, types.get(wanted.type, (object,)))
    return right and not (isinstance(value, bool) and wanted.type != "boolean") and value not in ("", None)


def _spoken_of(
    values: dict[str, tuple[dict[str, Any], Any]], wanted: Wanted, scene: Scene
) -> dict[str, tuple[dict[str, Any], Any]]:
    # "Book a tour" names no tour, though one is called "River tour".
    need = " ".join(
        word for word in scene.need.split() if stem(word.strip(".,;:!?").lower()) not in wanted.objects
    )
    scored = sorted(
        ((overlap(need, _text_of(record)), key) for key, (record, _) in values.items()),
        reverse=True,
    )
    if scored[0][0] > 0 and scored[0][0] > scored[1][0]:
        return {scored[0][1]: values[scored[0][1]]}
    return {}


def _text_of(record: dict[str, Any]) -> str:
    return " ".join(str(value) for value in record.values() if isinstance(value, str | int | float))[:1_000]


def in_variables(wanted: Wanted, scene: Scene) -> tuple[Found, ...]:
    """The value of the variable of this name, or of the member of one."""
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


def today_in(scene: Scene) -> date | None:
    """The current date, where a variable or the profile tells it."""
    for variable in scene.variables:
        if re.search(
            r"\b(?:today|date|now|current time)\b", in_words(str(variable.get("name"))), re.IGNORECASE
        ):
            return date_named(str(variable.get("value")))
    match = re.search(
        r"\btoday(?:'s date)? is\b.{0,30}", str(scene.prompt.profile.get("text") or ""), re.IGNORECASE
    )
    return date_named(match[0]) if match else None
