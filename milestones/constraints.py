"""What a milestone asks of a tool call's arguments: an exact value, a pattern, a range, a choice, absence."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from arq_graph.milestones.patterns import Pattern
from arq_graph.milestones.values import as_number, as_text, same_value


class Constraint(Protocol):
    """What is asked of one argument."""

    def holds(self, given: bool, value: Any) -> bool:
        """Whether it holds of a value, or of an argument that was not given."""

    def as_written(self) -> Any:
        """The constraint as it stands in a milestone file."""


@dataclass(frozen=True, slots=True)
class Equals:
    """The argument is exactly this value; see `values.same_value`."""

    value: Any

    def holds(self, given: bool, value: Any) -> bool:
        """Whether the value is this one."""
        return given and same_value(self.value, value)

    def as_written(self) -> Any:
        """The value itself, or `{equals: …}` where the value could be taken for another constraint."""
        return {"equals": self.value} if _reads_as_constraint(self.value) else self.value


@dataclass(frozen=True, slots=True)
class Matches:
    """The argument matches this regular expression as a whole; numbers and lists as their JSON text.

    What JSON cannot say is matched as Python writes it; what is nested too deep to be written matches nothing.
    """

    pattern: Pattern

    def holds(self, given: bool, value: Any) -> bool:
        """Whether the whole value matches.

        Raises:
            TimeoutError: The pattern was still searching after one second.
        """
        if not given or value is None:
            return False
        try:
            text = as_text(value)
        except RecursionError:
            return False
        return self.pattern.is_all_of(text)

    def as_written(self) -> Any:
        """`{regex: …}`."""
        return {"regex": self.pattern.text}


@dataclass(frozen=True, slots=True)
class Within:
    """The argument lies between two bounds, both included: numbers, or texts that sort (ISO dates)."""

    low: float | str | None = None
    high: float | str | None = None

    def holds(self, given: bool, value: Any) -> bool:
        """Whether the value lies within; a number given as text counts as the number."""
        if not given:
            return False
        bounds = [bound for bound in (self.low, self.high) if bound is not None]
        found: Any = value if isinstance(bounds[0], str) else as_number(value)
        if found is None or (isinstance(bounds[0], str) and not isinstance(found, str)):
            return False
        above = self.low is None or bool(self.low <= found)
        return above and (self.high is None or bool(found <= self.high))

    def as_written(self) -> Any:
        """`{min: …, max: …}`."""
        bounds = {"min": self.low, "max": self.high}
        return {key: bound for key, bound in bounds.items() if bound is not None}


@dataclass(frozen=True, slots=True)
class OneOf:
    """The argument is one of these values."""

    values: tuple[Any, ...]

    def holds(self, given: bool, value: Any) -> bool:
        """Whether the value is among them."""
        return given and any(same_value(choice, value) for choice in self.values)

    def as_written(self) -> Any:
        """`{one_of: […]}`."""
        return {"one_of": list(self.values)}


@dataclass(frozen=True, slots=True)
class Absent:
    """The argument is not given (or null); with `absent=False`, it is given."""

    absent: bool = True

    def holds(self, given: bool, value: Any) -> bool:
        """Whether it is missing, or there, as asked."""
        return (not given or value is None) == self.absent

    def as_written(self) -> Any:
        """`{absent: …}`."""
        return {"absent": self.absent}


_KEYS: tuple[frozenset[str], ...] = tuple(
    frozenset(keys)
    for keys in (("equals",), ("regex",), ("min",), ("max",), ("min", "max"), ("one_of",), ("absent",))
)
_ALL_KEYS = frozenset[str]().union(*_KEYS)


def read_constraint(written: Any) -> Constraint:
    """The constraint that a milestone file says of one argument.

    Args:
        written: A value, or one of `{regex}`, `{min}`, `{max}`, `{min, max}`, `{one_of}`, `{absent}`,
            `{equals}`. A mapping with other keys is an exact value.

    Raises:
        ValueError: A constraint is given something it cannot work with.
    """
    if not _reads_as_constraint(written):
        return Equals(written)
    if frozenset(written) not in _KEYS:
        keys = ", ".join(sorted(written))
        raise ValueError(f"{keys} cannot stand together; to mean this very mapping, write {{equals: …}}")
    if "equals" in written:
        return Equals(written["equals"])
    if "regex" in written:
        if not isinstance(written["regex"], str):
            raise ValueError("`regex` must be text; put it in quotes")
        return Matches(Pattern(written["regex"]))
    if "one_of" in written:
        if not isinstance(written["one_of"], list | tuple) or not written["one_of"]:
            raise ValueError("`one_of` must be a list of at least one value")
        return OneOf(tuple(written["one_of"]))
    if "absent" in written:
        if not isinstance(written["absent"], bool):
            raise ValueError("`absent` must be true or false")
        return Absent(written["absent"])
    return _range(written.get("min"), written.get("max"))


def all_hold(constraints: Iterable[tuple[str, Constraint]], arguments: Mapping[str, Any]) -> bool:
    """Whether each constraint holds of the argument it names.

    Raises:
        TimeoutError: A pattern was still searching after one second.
    """
    return all(constraint.holds(name in arguments, arguments.get(name)) for name, constraint in constraints)


def _range(low: Any, high: Any) -> Within:
    bounds = [bound for bound in (low, high) if bound is not None]
    kinds: set[Literal["number", "text", "other"]] = {
        "text" if isinstance(bound, str) else "number" if as_number(bound) is not None else "other"
        for bound in bounds
    }
    if len(kinds) != 1 or "other" in kinds:
        raise ValueError("`min` and `max` must be numbers, or both texts such as ISO dates")
    for bound in bounds:
        # 1e3 is text in YAML 1.1; as text, 9 would be greater than 10.
        if isinstance(bound, str) and (number := as_number(bound)) is not None:
            raise ValueError(
                f"the bound {bound!r} is text that reads as a number: write {number:g}, without quotes"
            )
    if len(bounds) == 2 and bounds[0] > bounds[1]:
        raise ValueError(f"`min` {low!r} is greater than `max` {high!r}: no value lies between")
    return Within(low, high)


def meant_as_constraint(value: Any) -> str | None:
    """What a mapping that is taken for an exact value was probably meant as: `regex` for `{regexp: …}`."""
    if not isinstance(value, Mapping) or len(value) > 2:
        return None
    known = sorted(_ALL_KEYS)
    close = (difflib.get_close_matches(str(key).lower(), known, n=1, cutoff=0.75) for key in value)
    return next((found[0] for found in close if found), None)


def _reads_as_constraint(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value) and _ALL_KEYS.issuperset(value)
