"""References of arguments: to results of earlier calls, and to arguments of earlier calls that observed a milestone."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from arq_graph.milestones.constraints import Constraint
from arq_graph.milestones.transcript import Call


def split_reference(reference: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each of the names with which a reference such as `get_order.customer.id` begins, and the path after it."""
    for name in names:
        if f"{reference}.".startswith(f"{name}."):
            yield name, reference[len(name) + 1 :]


class References:
    """What the arguments of a conversation's calls can refer to.

    Attributes:
        before: The number of the call whose arguments refer: only what came before it counts.
    """

    def __init__(self) -> None:
        self.before = 0
        self._results: dict[str, list[tuple[int, str]]] = defaultdict(list)
        self._calls: dict[str, list[tuple[int, Call]]] = defaultdict(list)
        self._result_values: dict[tuple[int, str], list[Any]] = {}

    def add_result(self, number: int, tool: str, text: str) -> None:
        """Add the result of a call that didn't fail, with the number of the result's event."""
        self._results[tool].append((number, text))

    def add_call(self, number: int, milestone: str, call: Call) -> None:
        """Add a call that observed a milestone, with its number."""
        self._calls[milestone].append((number, call))

    def find_values(self, constraint: Constraint) -> Iterator[Any]:
        """Yield the values that a constraint refers to."""
        if constraint.equals_result_of is not None:
            for tool, path in split_reference(constraint.equals_result_of, self._results):
                for number, text in self._results[tool]:
                    if number >= self.before:
                        break
                    if (number, path) not in self._result_values:
                        self._result_values[number, path] = _find_values_in_text(text, path)
                    yield from self._result_values[number, path]
        elif constraint.equals_argument_of is not None:
            for milestone, path in split_reference(constraint.equals_argument_of, self._calls):
                for number, call in self._calls[milestone]:
                    if number < self.before:
                        yield from find_values(call.arguments, path)


def find_values(value: Any, path: str) -> list[Any]:
    """Return the values at a path of keys, such as `orders.id`; a list stands for itself and for its elements."""
    values = _expand_list(value)
    for key in path.split(".") if path else ():
        inner_values: list[Any] = []
        for outer in values:
            if isinstance(outer, Mapping) and key in outer:
                inner_values.extend(_expand_list(outer[key]))
        values = inner_values
    return values


def _expand_list(value: Any) -> list[Any]:
    return [value, *value] if isinstance(value, list | tuple) else [value]


def _find_values_in_text(text: str, path: str) -> list[Any]:
    values: list[Any] = [] if path else [text]
    with suppress(ValueError, RecursionError):
        values.extend(find_values(json.loads(text), path))
    return values
