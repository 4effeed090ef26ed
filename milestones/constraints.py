"""What a milestone asks of a tool call's arguments: an exact value, a pattern, a range, a choice, absence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from arq_graph.agent.part import Part
from arq_graph.errors import suggestion
from arq_graph.milestones.patterns import PatternText
from arq_graph.milestones.values import as_number, as_text, is_same_value

# The first type that reads it: 1e3, which is text in YAML, is a number here, and 2024-05-20 a text.
Bound = Annotated[int | float | str, Field(union_mode="left_to_right")]


class Constraint(Part):
    """What is asked of one argument; in a file an exact value, or a mapping with these keys.

    Args:
        equals: Exactly this value; see `values.is_same_value`. A value that is a mapping is always written so.
        regex: The argument as a whole matches; numbers and lists as their JSON text.
        min: The least that it may be: a number, or a text that sorts, such as an ISO date.
        max: The most that it may be.
        one_of: It is one of these values.
        absent: It is not given (or null); false: it is given.
    """

    equals: Any = None
    regex: PatternText | None = None
    min: Bound | None = None
    max: Bound | None = None
    one_of: Annotated[tuple[Any, ...], Field(min_length=1)] | None = None
    absent: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _read(cls, written: Any) -> Any:
        if not _is_constraint(written):
            return written if isinstance(written, cls) else {"equals": written}
        if unknown := [key for key in written if key not in cls.model_fields]:
            keys = f"its keys: {', '.join(cls.model_fields)}; a value that is a mapping is written {{equals: {{…}}}}"
            near = suggestion(str(unknown[0]), cls.model_fields)
            raise ValueError(f"has an unknown key `{unknown[0]}`{near} ({keys})")
        return written

    @model_validator(mode="after")
    def _check(self) -> Self:
        bounds: list[Any] = [bound for bound in (self.min, self.max) if bound is not None]
        if len({isinstance(bound, str) for bound in bounds}) > 1:
            raise ValueError("`min` and `max` must be numbers, or both texts such as ISO dates")
        if sorted(bounds) != bounds:
            raise ValueError(f"`min` {self.min!r} is greater than `max` {self.max!r}: no value lies between")
        return self

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> Any:
        """A constraint as a milestone file has it: the value itself, or keys such as `min`."""
        written: dict[str, Any] = write(self)
        if "equals" in self.model_fields_set and not _is_constraint(self.equals):
            return written.get("equals")
        return {key: value for key, value in written.items() if key in self.model_fields_set}

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {
            "description": "An exact value, or one of {regex}, {min, max}, {one_of}, {absent}, {equals: a mapping}.",
            "examples": ["A-17", {"regex": "ORD\\d+"}, {"min": 1, "max": 5}, {"absent": True}],
        }

    def holds(self, given: bool, value: Any) -> bool:
        """Whether it holds of a value, or of an argument that was not given; a number in a text counts as one."""
        if self.absent is not None:
            return (not given or value is None) == self.absent
        if not given or ("equals" in self.model_fields_set and not is_same_value(self.equals, value)):
            return False
        if self.one_of is not None and not any(is_same_value(choice, value) for choice in self.one_of):
            return False
        if self.regex is not None and (value is None or not self.regex.fullmatch(as_text(value))):
            return False
        if self.min is None and self.max is None:
            return True
        is_text = isinstance(self.min, str) or isinstance(self.max, str)
        found: Any = as_number(value) if not is_text else value if isinstance(value, str) else None
        above = found is not None and (self.min is None or self.min <= found)
        return above and (self.max is None or bool(found <= self.max))


def _is_constraint(written: Any) -> bool:
    return isinstance(written, Mapping) and bool(written)


def all_hold(rules: Mapping[str, Constraint], arguments: Mapping[str, Any]) -> bool:
    """Whether each rule holds of the argument it names."""
    return all(rule.holds(name in arguments, arguments.get(name)) for name, rule in rules.items())
