"""A tool's argument, and how it is asked for: as a decision, `{given, value}`.

If an argument isn't given, the tool's default applies; if it is given and null, None is passed. A type that fits the
strict subset of JSON Schema is asked for as it is. Any other (open objects, tuples, recursion, any value) is asked for
as a string that holds JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any
from zlib import crc32

from pydantic import WithJsonSchema, create_model

from arq_graph.agent.json_schema import describe_type, inline_references
from arq_graph.reasoning.blueprint import ARQ, combine_blueprints, query, respond
from arq_graph.reasoning.schema import NotStrict, make_strict_schema
from arq_graph.reasoning.sections import name_in_words

# A name that could be mistaken for the generated property of another argument isn't used as a property's name.
_PLAIN_NAME = re.compile(r"(?!argument_\d+$)[a-z][A-Za-z0-9_]{0,63}")


class ArgumentDecision(ARQ):
    """One argument of the call."""

    value_in_context: str | None = query(
        "Where is the value, with its id and in its own words? Null: nowhere."
    )
    already_provided_and_needed_again: bool | None = query(
        "If somewhere: was it said for an earlier need, and is it needed anew? Else null."
    )
    customer_should_provide_it: bool | None = query(
        "If nowhere: is it for the customer to provide? Else null."
    )
    problematic_to_guess: bool | None = query(
        "If nowhere, and required: would guessing it do harm? Else null."
    )
    given: bool = respond("Is there a value to pass? Never one that nobody gave.")


@dataclass(frozen=True)
class Argument:
    """One argument of a tool.

    Args:
        name: The name under which the tool takes it.
        property_name: The property for it in the blueprint.
        type: Its type in words.
        required: True if the tool needs it.
        description: Its description.
        inlined_schema: Its schema, without references if they can be resolved.
        strict_schema: Its strict schema; None if its value is asked for as a string that holds JSON.
    """

    name: str
    property_name: str
    type: str
    required: bool
    description: str
    inlined_schema: Mapping[str, Any]
    strict_schema: dict[str, Any] | None

    @property
    def choices(self) -> list[Any] | None:
        """The values that it may have, if its schema lists them."""
        return self.strict_schema.get("enum") if self.strict_schema else None

    def describe(self) -> dict[str, Any]:
        """Return the argument as the prompt shows it."""
        entry: dict[str, Any] = {
            "name": self.name,
            "type": self.type,
            "required": self.required,
            "description": self.description,
        }
        if self.property_name != self.name:
            entry["key"] = self.property_name
        if self.choices is not None:
            entry["one_of"] = self.choices
        return entry


def make_argument(
    number: int, name: str, schema: Mapping[str, Any], root: Mapping[str, Any], is_required: bool
) -> Argument:
    """Make the argument with this number, name and schema; `root` is the schema of the whole tool."""
    inlined_schema: Mapping[str, Any] = schema
    strict_schema: dict[str, Any] | None
    try:
        inlined_schema = inline_references(schema, root)
        strict_schema = make_strict_schema(inlined_schema, optional_as_null=True)
        strict_schema.pop("description", None)
    except NotStrict:
        strict_schema = None
    is_property_name = _PLAIN_NAME.fullmatch(name) and not hasattr(ARQ, name)
    return Argument(
        name=name,
        property_name=name if is_property_name else f"argument_{number}",
        type=describe_type(schema),
        required=is_required,
        description=str(schema.get("description") or name_in_words(name)),
        inlined_schema=inlined_schema,
        strict_schema=strict_schema,
    )


@lru_cache(maxsize=1024)  # making a class takes long
def make_decision(schema_json: str, basis: type[ARQ] | None) -> type[ARQ]:
    """Return the decision on a value of one type, shared by all arguments of that type.

    Args:
        schema_json: The type's strict schema as JSON; `null` if the value is a string that holds JSON.
        basis: Queries that are asked before the value.
    """
    if basis is not None:
        decision = make_decision(schema_json, None)
        name = f"{basis.__name__}_{decision.__name__}"
        return combine_blueprints(name, decision.__doc__, basis, decision)
    schema = json.loads(schema_json)
    value: Any
    if schema is None:
        name = "json"
        value = (str | None, respond("The value as a string that holds JSON, null if not given."))
    else:
        name = schema["type"] if schema.keys() == {"type"} else f"{crc32(schema_json.encode()):x}"
        nullable: Any = Annotated[Any, WithJsonSchema({"anyOf": [schema, {"type": "null"}]})]
        value = (nullable, respond("The value, null if not given."))
    return create_model(
        f"Decision_{name}", __base__=ArgumentDecision, __doc__=ArgumentDecision.__doc__, value=value
    )
