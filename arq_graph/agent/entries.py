"""What an entry of a specification may hold: a reader for each kind of value, and words for a misfit.

The same readers serve an agent that is built in Python and one that is read from a file: both hear the same
complaint, and a file adds its line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

from arq_graph.agent.complaints import described
from arq_graph.agent.spelling import suggestion

__all__ = ["described", "suggestion"]

Reader = Callable[[object], Any]
T = TypeVar("T")


class Misfit(ValueError):
    """An entry does not hold what it should; becomes a `SpecError` where the file or the object is known.

    Args:
        message: What is wrong, and what was expected.
        path: Where it stands, as keys and indices from the outermost entry inwards.
    """

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def inside(self, owner: str, field: str, *outer: str | int) -> Self:
        """Return the same misfit, told from the entry whose `field` it was found in."""
        place = field + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return type(self)(f"{owner}: `{place}` {self.message}", *outer, field, *self.path)


class NotText(Misfit):
    """Something else stands where text is expected; YAML reads some words as truth values and numbers."""


def settle(
    owner: str, readers: Mapping[str, Reader], values: Mapping[str, object], *outer: str | int
) -> dict[str, Any]:
    """Pass each value through its reader.

    Args:
        owner: What the values belong to, for the message: "guideline G3".
        readers: A reader for each field.
        values: The values by field.
        outer: Where the owner stands.

    Raises:
        Misfit: A value does not fit its field.
    """
    settled = {}
    for field, value in values.items():
        try:
            settled[field] = readers[field](value)
        except Misfit as misfit:
            raise misfit.inside(owner, field, *outer) from misfit.__cause__
    return settled


def text(value: object) -> str:
    """Read a text that says something."""
    if not isinstance(value, str):
        raise NotText(f"must be text, but is {described(value)}")
    if not value.strip():
        raise Misfit("is empty; write what it should say")
    return value.strip()


def whole_number(value: object) -> int:
    """Read a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Misfit(f"must be a whole number, but is {described(value)}")
    return value


def one_of(*allowed: str) -> Reader:
    """Read one of some words."""

    def read(value: object) -> str:
        if isinstance(value, str) and value in allowed:
            return value
        hint = suggestion(value, allowed) if isinstance(value, str) else ""
        raise Misfit(f"must be {' or '.join(map(repr, allowed))}, but is {described(value)}{hint}")

    return read


def listing(reader: Callable[[object], T], what: str = "") -> Callable[[object], tuple[T, ...]]:
    """Read a list (or tuple), each item by `reader`.

    Args:
        reader: Reads one item.
        what: What the items are, for the message: "guidelines".
    """
    expected = f"a list of {what}" if what else "a list"

    def read(value: object) -> tuple[T, ...]:
        if not isinstance(value, list | tuple):
            example = f"; write {[value]!r}" if isinstance(value, str) else ""
            if isinstance(value, Mapping):
                example = "; begin each of its entries with `- `"
            raise Misfit(f"must be {expected}, but is {described(value)}{example}")
        items = []
        for index, item in enumerate(value):
            try:
                items.append(reader(item))
            except Misfit as misfit:
                raise type(misfit)(misfit.message, index, *misfit.path) from misfit.__cause__
        return tuple(items)

    return read
