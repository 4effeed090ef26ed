"""The base class of everything that a specification consists of."""

from __future__ import annotations

import inspect
import re
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from arq_graph.agent.spec_errors import make_spec_error

Text = Annotated[str, Field(min_length=1)]

_ARGUMENT = re.compile(r"^    (\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)


def _describe_schema(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Describe a model and its fields to editors with the docstrings of its classes and the `Args:` in them."""
    properties = schema.get("properties", {})
    for base in reversed(model.__mro__):
        docstring = inspect.cleandoc(base.__doc__ or "")
        schema["description"] = docstring.partition("\n\nArgs:")[0]
        for name, description in _ARGUMENT.findall(docstring):
            if name in properties:
                properties[name]["description"] = " ".join(description.split())


class Part(BaseModel):
    """An immutable part of a specification, which raises `SpecError` for invalid values."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        str_strip_whitespace=True,
        arbitrary_types_allowed=True,
        defer_build=True,  # until the first instance is made: the import is faster
        json_schema_extra=_describe_schema,
    )

    def __init__(self, *positions: Any, **values: Any) -> None:
        names = list(type(self).model_fields)[: len(positions)]
        values |= zip(names, positions, strict=True)
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise make_spec_error(error, type(self), values) from None

    __iter__ = None  # type: ignore[assignment]  # or Pydantic would take one part for a list of its fields

    # Pydantic then validates a part inside another part without `__init__`, so that its errors keep their places.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, validated again. A field that wasn't given has its default again.

        Raises:
            SpecError: The changed part isn't valid.
        """
        values = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self)(**values | changes)


def has_value_or_error(part: Part, value_field: str) -> bool:
    """Return whether a part has either a value, which may be null if it was given, or an `error`."""
    if vars(part)["error"] is None:
        return value_field in part.model_fields_set
    return vars(part)[value_field] is None
