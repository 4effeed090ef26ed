"""How a tool's arguments are asked: each is a decision, `{given, value}`.

Not given, the tool's default applies; given and null, None is passed. What fits the strict subset of JSON schema is
asked in its own type; what does not (open objects, tuples, recursion, anything) is asked as a string that holds JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any
from zlib import crc32

from pydantic import WithJsonSchema, create_model

from arq_graph.reasoning.blueprint import ARQ, query, respond
from arq_graph.reasoning.schema import NotStrict, strict_schema

_KEY = re.compile(r"(?!argument_\d+$)[a-z][A-Za-z0-9_]{0,63}")


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
    """One argument of a tool."""

    name: str
    key: str
    type: str
    required: bool
    description: str
    schema: dict[str, Any] | None
    """The strict schema of its value; None where it is asked as a string that holds JSON."""

    @property
    def as_json(self) -> bool:
        """Whether it is asked as a string that holds JSON."""
        return self.schema is None

    def shown(self) -> dict[str, Any]:
        """The argument as the prompt shows it."""
        entry = {
            "name": self.name,
            "type": self.type,
            "required": self.required,
            "description": self.description,
        }
        if self.key != self.name:
            entry["key"] = self.key
        if self.schema and "enum" in self.schema:
            entry["one_of"] = self.schema["enum"]
        return entry


def arguments_of(schema: Mapping[str, Any]) -> tuple[Argument, ...]:
    """The arguments that a tool's schema has."""
    definitions = {**(schema.get("definitions") or {}), **(schema.get("$defs") or {})}
    required = set(schema.get("required") or ())
    return tuple(
        _argument(number, name, property, definitions, name in required)
        for number, (name, property) in enumerate((schema.get("properties") or {}).items(), start=1)
    )


def arguments_blueprint(
    tool: str, arguments: Sequence[Argument], basis: type[ARQ] | None = None
) -> type[ARQ]:
    """A blueprint with one decision for each argument, and before each value what it rests on, if that is asked."""
    fields: dict[str, Any] = {
        argument.key: (_decision(argument, basis), respond(argument.description)) for argument in arguments
    }
    words = "Each argument." if basis else "Each argument; below a score of 5, none needs to be given."
    return create_model(f"{tool}_arguments", __base__=ARQ, __doc__=words, **fields)


def _argument(
    number: int, name: str, property: Any, definitions: Mapping[str, Any], required: bool
) -> Argument:
    described = property if isinstance(property, Mapping) else {}  # `true` stands for any value
    try:
        schema = strict_schema(_inlined(described, definitions))
    except NotStrict:
        schema = None
    fits = _KEY.fullmatch(name) and not hasattr(ARQ, name)
    return Argument(
        name=name,
        key=name if fits else f"argument_{number}",
        type=_type_in_words(described),
        required=required,
        description=str(described.get("description") or in_words(name)),
        schema=schema,
    )


def _decision(argument: Argument, basis: type[ARQ] | None) -> type[ARQ]:
    if argument.schema is None:
        decision = _decision_on("json")
    else:
        undescribed = {key: value for key, value in argument.schema.items() if key != "description"}
        decision = _decision_on(json.dumps(undescribed))
    return decision if basis is None else _with_basis(decision, basis)


@lru_cache(maxsize=1024)
def _with_basis(decision: type[ArgumentDecision], basis: type[ARQ]) -> type[ARQ]:
    # Fields of a class further right come first.
    return create_model(
        f"{basis.__name__}_{decision.__name__}", __base__=(decision, basis), __doc__=decision.__doc__
    )


@lru_cache(maxsize=1024)
def _decision_on(schema: str) -> type[ArgumentDecision]:
    """The decision on a value of one type, shared by all arguments that have it; making a class takes long."""
    value: Any
    if schema == "json":
        name, value, question = "json", str | None, "The value as a string that holds JSON"
    else:
        strict = json.loads(schema)
        name = strict["type"] if strict.keys() == {"type"} else f"{crc32(schema.encode()):x}"
        value = Annotated[Any, WithJsonSchema({"anyOf": [strict, {"type": "null"}]})]
        question = "The value"
    return create_model(
        f"Decision_{name}",
        __base__=ArgumentDecision,
        __doc__=ArgumentDecision.__doc__,
        value=(value, respond(f"{question}, null if not given.")),
    )


def _inlined(schema: Any, definitions: Mapping[str, Any], seen: tuple[str, ...] = ()) -> Any:
    """Replace references by what they refer to; a recursive one cannot be inlined."""
    if isinstance(schema, list):
        return [_inlined(item, definitions, seen) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    if (reference := schema.get("$ref")) is not None:
        place, _, name = str(reference).rpartition("/")
        if name in seen or name not in definitions or place not in ("#/$defs", "#/definitions"):
            raise NotStrict(f"{reference} refers to itself or to nothing")
        return _inlined(definitions[name], definitions, (*seen, name))
    inlined = {key: _inlined(value, definitions, seen) for key, value in schema.items() if key != "default"}
    if isinstance(properties := schema.get("properties"), Mapping):
        # Names of the tool's own choice, `default` and `$ref` among them.
        inlined["properties"] = {
            name: _inlined(value, definitions, seen) for name, value in properties.items()
        }
    return inlined


def _type_in_words(property: Any) -> str:
    if not isinstance(property, Mapping):
        return "any"
    if "anyOf" in property:
        return " or ".join(dict.fromkeys(_type_in_words(option) for option in property["anyOf"]))
    if "enum" in property:
        return "one of " + ", ".join(json.dumps(value) for value in property["enum"][:12])
    if "$ref" in property:
        return str(property["$ref"]).rsplit("/", 1)[-1]
    kind = property.get("format") or property.get("type", "any")
    if kind == "array" and isinstance(property.get("items"), Mapping):
        return f"list of {_type_in_words(property['items'])}"
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def in_words(name: str) -> str:
    """A name in code as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", name).lower()
