"""What a milestone asks of a tool call's arguments: an exact value, a pattern, a range, a choice, absence."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    WithJsonSchema,
    model_validator,
)

from arq_graph.milestones.patterns import PatternText
from arq_graph.milestones.values import as_number, as_text, is_number, same_value


class Rule(BaseModel, ABC):
    """What is asked of one argument; its fields are the keys that it has in a milestone file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @abstractmethod
    def holds(self, given: bool, value: Any) -> bool:
        """Whether it holds of a value, or of an argument that was not given."""

    def as_written(self) -> Any:
        """The rule as it stands in a milestone file."""
        return self.model_dump(mode="json", exclude_none=True)


class Equals(Rule):
    """The argument is exactly this value; see `values.same_value`."""

    equals: Any

    @model_validator(mode="before")
    @classmethod
    def _read(cls, written: Any) -> Any:
        is_read = isinstance(written, Equals) or (_is_rule(written) and "equals" in written)
        return written if is_read else {"equals": written}

    def holds(self, given: bool, value: Any) -> bool:
        """Whether the value is this one."""
        return given and same_value(self.equals, value)

    def as_written(self) -> Any:
        """The value itself, or `{equals: …}` where the value could be taken for another rule."""
        return {"equals": self.equals} if _is_rule(self.equals) else self.equals


class Matches(Rule):
    """The argument matches this regular expression as a whole; numbers and lists as their JSON text."""

    regex: PatternText

    def holds(self, given: bool, value: Any) -> bool:
        """Whether the whole value matches; what is nested too deep to be written as text does not."""
        if not given or value is None:
            return False
        try:
            text = as_text(value)
        except RecursionError:
            return False
        return self.regex.is_all_of(text)


class Within(Rule):
    """The argument lies between two bounds, both included: numbers, or texts that sort (ISO dates)."""

    min: StrictInt | StrictFloat | StrictStr | None = None
    max: StrictInt | StrictFloat | StrictStr | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        bounds = self._bounds
        if len({is_number(bound) for bound in bounds}) != 1:
            raise ValueError("`min` and `max` must be numbers, or both texts such as ISO dates")
        for bound in bounds:
            # 1e3 is text in YAML; as text, 9 would be greater than 10.
            if isinstance(bound, str) and (number := as_number(bound)) is not None:
                raise ValueError(
                    f"the bound {bound!r} is text that reads as a number: write {number:g}, without quotes"
                )
        if len(bounds) == 2 and bounds[0] > bounds[1]:
            raise ValueError(
                f"`min` {self.min!r} is greater than `max` {self.max!r}: no value lies between them"
            )
        return self

    def holds(self, given: bool, value: Any) -> bool:
        """Whether the value lies within; a number given as text counts as the number."""
        if not given:
            return False
        is_text = isinstance(self._bounds[0], str)
        found: Any = value if is_text else as_number(value)
        if found is None or (is_text and not isinstance(found, str)):
            return False
        above = self.min is None or self.min <= found
        return above and (self.max is None or bool(found <= self.max))

    @property
    def _bounds(self) -> list[Any]:
        return [bound for bound in (self.min, self.max) if bound is not None]


class OneOf(Rule):
    """The argument is one of these values."""

    one_of: Annotated[tuple[Any, ...], Field(min_length=1)]

    def holds(self, given: bool, value: Any) -> bool:
        """Whether the value is among them."""
        return given and any(same_value(choice, value) for choice in self.one_of)


class Absent(Rule):
    """The argument is not given (or null); with `absent: false`, it is given."""

    absent: StrictBool = True

    def holds(self, given: bool, value: Any) -> bool:
        """Whether it is missing, or there, as asked."""
        return (not given or value is None) == self.absent


_RULES: dict[str, type[Rule]] = {
    key: rule for rule in (Equals, Matches, Within, OneOf, Absent) for key in rule.model_fields
}


def _is_rule(written: Any) -> bool:
    """Whether a mapping is meant as a rule: it has no other keys than those of rules."""
    return isinstance(written, Mapping) and bool(written) and _RULES.keys() >= written.keys()


def _kind(written: Any) -> str:
    if isinstance(written, Rule):
        return type(written).__name__
    return _RULES[min(written)].__name__ if _is_rule(written) else Equals.__name__


Constraint = Annotated[
    Annotated[Equals, Tag("Equals")]
    | Annotated[Matches, Tag("Matches")]
    | Annotated[Within, Tag("Within")]
    | Annotated[OneOf, Tag("OneOf")]
    | Annotated[Absent, Tag("Absent")],
    Discriminator(_kind),
    PlainSerializer(lambda rule: rule.as_written()),
    WithJsonSchema(
        {
            "description": "An exact value, or one of {regex}, {min, max}, {one_of}, {absent}, {equals}.",
            "examples": ["A-17", {"regex": "ORD\\d+"}, {"min": 1, "max": 5}, {"absent": True}],
        }
    ),
]
"""What is asked of one argument; in a file an exact value, or a mapping whose keys are those of one rule."""


def all_hold(rules: Mapping[str, Rule], arguments: Mapping[str, Any]) -> bool:
    """Whether each rule holds of the argument it names."""
    return all(rule.holds(name in arguments, arguments.get(name)) for name, rule in rules.items())


def meant_as_rule(value: Any) -> str | None:
    """What a mapping that is taken for an exact value was probably meant as: `regex` for `{regexp: …}`."""
    if not isinstance(value, Mapping) or len(value) > 2:
        return None
    close = (difflib.get_close_matches(str(key).lower(), _RULES, n=1, cutoff=0.75) for key in value)
    return next((found[0] for found in close if found), None)
