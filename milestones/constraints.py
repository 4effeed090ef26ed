"""Constraints on a tool call's arguments: an exact value, a pattern, a range, a choice, a reference, absence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Self

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from arq_graph.agent.part import Part, Text
from arq_graph.agent.patterns import PatternText
from arq_graph.errors import suggestion
from arq_graph.milestones.values import as_number, as_text, is_same_value

# The first type that takes the value: 1e3, which is text in YAML, is a number here, and 2024-05-20 a text.
Bound = Annotated[int | float | str, Field(union_mode="left_to_right")]


_EQUALS_ALONE = {"equals"}

FindValues = Callable[["Constraint"], Iterable[Any]]
"""Returns the values that a constraint's reference stands for."""


class Constraint(Part):
    """A constraint on one argument; in a file an exact value, or a mapping with these keys.

    Args:
        equals: Exactly this value; see `values.is_same_value`. A value that is a mapping is always written so.
        regex: The argument as a whole matches; numbers and lists as their JSON text.
        min: The least that it may be: a number, or a text that sorts, such as an ISO date.
        max: The most that it may be.
        one_of: It is one of these values.
        absent: It is not given (or null); false: it is given.
        equals_result_of: It is a value in the result of an earlier call that didn't fail, as `TOOL.path.of.keys`; a
            list on the path stands for itself and for each of its elements. Without a path, the whole result.
        equals_argument_of: It is an argument of an earlier call that observed an FC, as `MILESTONE.argument`.
    """

    equals: Any = None
    regex: PatternText | None = None
    min: Bound | None = None
    max: Bound | None = None
    one_of: Annotated[tuple[Any, ...], Field(min_length=1)] | None = None
    absent: bool | None = None
    equals_result_of: Text | None = None
    equals_argument_of: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _accept_exact_value(cls, data: Any) -> Any:
        if isinstance(data, cls):
            return data
        if not _has_constraint_keys(data):
            return {"equals": data}
        for key in data:
            if key not in cls.model_fields:
                hint = suggestion(str(key), cls.model_fields)
                raise ValueError(
                    f"has an unknown key `{key}`{hint} (its keys: {', '.join(cls.model_fields)}; a value that is a "
                    "mapping is written {equals: {…}})"
                )
        return data

    @model_validator(mode="after")
    def _require_ordered_bounds(self) -> Self:
        if self.min is None or self.max is None:
            return self
        low: Any = self.min
        high: Any = self.max
        if isinstance(low, str) != isinstance(high, str):
            raise ValueError("`min` and `max` must be numbers, or both texts such as ISO dates")
        if low > high:
            raise ValueError(f"`min` {low!r} is greater than `max` {high!r}: no value lies between")
        return self

    @model_validator(mode="after")
    def _require_one_reference(self) -> Self:
        if self.equals_result_of is not None and self.equals_argument_of is not None:
            raise ValueError("has both `equals_result_of` and `equals_argument_of`; give one of them")
        if self.equals_result_of is not None and "" in self.equals_result_of.split("."):
            raise ValueError(
                f"`equals_result_of: {self.equals_result_of}` has an empty key: write TOOL.key.key"
            )
        return self

    @model_serializer(mode="wrap")
    def _serialize(self, serialize: SerializerFunctionWrapHandler) -> Any:
        """Return the constraint as in a milestone file: the value itself, or keys such as `min`."""
        fields: dict[str, Any] = serialize(self)
        if "equals" in self.model_fields_set and not _has_constraint_keys(self.equals):
            return fields.get("equals")
        return {key: value for key, value in fields.items() if key in self.model_fields_set}

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {
            "description": "An exact value, or one of {regex}, {min, max}, {one_of}, {absent}, {equals: a mapping}, "
            "{equals_result_of: TOOL.path}, {equals_argument_of: MILESTONE.argument}.",
            "examples": [
                "A-17",
                {"regex": "ORD\\d+"},
                {"min": 1, "max": 5},
                {"absent": True},
                {"equals_result_of": "get_order.id"},
            ],
        }

    @classmethod
    def make_exact(cls, value: Any) -> Constraint:
        """Return the constraint `equals: value`, of which nothing has to be validated: any value will do."""
        if isinstance(value, str | int | float):
            return _make_exact_constraint(value)
        return _make_exact_constraint("").model_copy(update={"equals": value})

    @property
    def reference(self) -> str | None:
        """The name and path of a value from before the call that the argument must equal."""
        return self.equals_result_of or self.equals_argument_of

    def holds(self, is_given: bool, value: Any, find_values: FindValues) -> bool:
        """Return whether it holds of a value, or of an argument that wasn't given.

        For `min` and `max`, a number in a text counts as a number. `find_values` returns what a reference refers to.
        """
        if self.model_fields_set == _EQUALS_ALONE:
            return is_given and is_same_value(self.equals, value)
        if self.absent is not None:
            is_absent = not is_given or value is None
            return is_absent == self.absent
        if not is_given:
            return False
        if "equals" in self.model_fields_set and not is_same_value(self.equals, value):
            return False
        if self.one_of is not None and not any(is_same_value(choice, value) for choice in self.one_of):
            return False
        if self.regex is not None and (value is None or not self.regex.fullmatch(as_text(value))):
            return False
        if self.reference and not any(is_same_value(other, value) for other in find_values(self)):
            return False
        return self._is_in_bounds(value)

    def _is_in_bounds(self, value: Any) -> bool:
        low: Any = self.min
        high: Any = self.max
        if low is None and high is None:
            return True
        bounds_are_texts = isinstance(low, str) or isinstance(high, str)
        if not bounds_are_texts:
            value = as_number(value)
        elif not isinstance(value, str):
            return False
        if value is None:
            return False
        return bool((low is None or low <= value) and (high is None or value <= high))


def _has_constraint_keys(data: Any) -> bool:
    return isinstance(data, Mapping) and bool(data)


def all_hold(
    constraints: Mapping[str, Constraint], arguments: Mapping[str, Any], find_values: FindValues
) -> bool:
    """Return whether each constraint holds of the argument that it is for."""
    for name, constraint in constraints.items():
        if not constraint.holds(name in arguments, arguments.get(name), find_values):
            return False
    return True


@lru_cache(maxsize=4096, typed=True)
def _make_exact_constraint(value: str | float) -> Constraint:
    """Make a constraint once for many conversations, which have the same names, numbers and so on."""
    return Constraint(equals=value)
