"""JSON schemas in the strict subset that providers hold a model's answer to.

The subset is that of OpenAI's structured outputs, the narrowest of those in use: objects whose properties
are all named and all required, lists, strings, numbers, booleans, null, enumerations, `anyOf`, and
references into `$defs`. What only narrows a value (ranges, lengths, patterns, formats, uniqueness) is left
out and stays with validation. What would lose part of an answer without anybody noticing (an open
dictionary, a tuple, a value of any type) is refused with its path. LangChain's own converter loses such
arguments silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from arq_graph.reasoning.queries import Form, queries_of

_PROPERTY_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # the limit of Anthropic's tool schemas
_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})
_SHAPES = frozenset({"properties", "items", "anyOf", "oneOf", "allOf", "enum", "const", "$ref"})
_PYTHON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}

_OPEN = (
    "an open dictionary cannot be asked; use a list of models with a field for the key and one for the value"
)
_TUPLE = "a tuple of fixed length cannot be asked; use a model with one field per place, or a list"
_ANY = "a value of any type cannot be asked; name its type"
_NAME = "a property name has 1 to 64 characters of A-Z, a-z, 0-9, _, . and -; rename it"
_MIXED = "a conditional schema, or one that is several things at once, cannot be asked; use a union of models"
# Keywords that change what an answer looks like: without them the schema would ask for something else.
_STRUCTURAL = {
    "prefixItems": _TUPLE,
    "patternProperties": _OPEN,
    **dict.fromkeys(("not", "if", "dependentSchemas", "$dynamicRef"), _MIXED),
}


class NotStrict(ValueError):
    """A schema says something that the strict subset cannot: why not, and the path of it."""


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Write a JSON schema in the strict subset."""
    try:
        return _Conversion(schema).root()
    except (AttributeError, TypeError) as error:
        raise NotStrict(f"this is no JSON schema ({error})", "") from error


class AnswerJsonSchema(GenerateJsonSchema):
    """Pydantic's schema of an answer."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """Ask a decimal as a string, so that no digit is lost."""
        return {"type": "string"}


def make_schema_generator(form: Form) -> type[AnswerJsonSchema]:
    """Return a generator that keeps, of every blueprint at any depth, the fields that the form includes."""

    class FormJsonSchema(AnswerJsonSchema):
        def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
            reduced = super().model_schema(schema)
            for name, query in queries_of(schema["cls"]).items():
                if not form.includes(name, query):
                    del reduced["properties"][name]
            return reduced

    return FormJsonSchema


class _Conversion:
    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self.sources: Mapping[str, Any] = schema.get("$defs", {})
        self.definitions: dict[str, dict[str, Any]] = {}

    def root(self) -> dict[str, Any]:
        schema = self.schema
        if "$ref" in schema:  # a model that refers to itself
            schema = {**self.source(schema["$ref"], "")[1], **_description(schema)}
        converted = self.node(schema, "")
        return {**converted, "$defs": self.definitions} if self.definitions else converted

    def source(self, reference: str, path: str) -> tuple[str, Mapping[str, Any]]:
        name = reference.removeprefix("#/$defs/")
        if name not in self.sources:
            raise NotStrict(f"the reference {reference!r} does not lead into $defs", path)
        return name, self.sources[name]

    def node(self, schema: Any, path: str) -> dict[str, Any]:
        if not isinstance(schema, Mapping):
            raise NotStrict(_ANY, path)
        for keyword, reason in _STRUCTURAL.items():
            if keyword in schema:
                raise NotStrict(reason, path)
        shape = self.shape(schema, path)
        description = _description(schema)
        # A reference stands alone: a choice of one carries what is said beside it.
        if description and "$ref" in shape:
            return {**description, "anyOf": [shape]}
        return {**description, **shape, **description}

    def shape(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        shapes = _SHAPES & schema.keys()
        if len(shapes - {"enum", "const"}) > 1 or (len(shapes) > 1 and shapes & {"anyOf", "oneOf", "$ref"}):
            raise NotStrict(_MIXED, path)
        match schema:
            case {"$ref": reference}:
                return self.reference(reference, path)
            case {"anyOf": choices} | {"oneOf": choices}:
                return self.choice(choices, path)
            case {"allOf": _}:
                raise NotStrict(_MIXED, path)
            case {"const": value}:
                return _enumeration([value], path)
            case {"enum": [_, *_] as values}:
                return _enumeration(values, path)
            case {"type": "object"} | {"properties": _}:
                return self.object(schema, path)
            case {"type": str(scalar)} if scalar in _SCALARS:
                return {"type": scalar}
            case {"type": [*types]}:
                bare = {key: value for key, value in schema.items() if key != "description"}
                return self.choice([{**bare, "type": name} for name in types], path)
            case {"type": "array"} | {"items": _}:
                return {"type": "array", "items": self.node(schema.get("items"), f"{path}[]")}
        raise NotStrict(_ANY, path)

    def reference(self, reference: str, path: str) -> dict[str, Any]:
        name, definition = self.source(reference, path)
        if name not in self.definitions:
            self.definitions[name] = {}  # entered before it is converted, so that recursion ends here
            self.definitions[name] = self.node(definition, path)
        return {"$ref": f"#/$defs/{name}"}

    def choice(self, choices: Iterable[Any], path: str) -> dict[str, Any]:
        """A union; choices that differ only in what the subset leaves out become one."""
        kept: list[dict[str, Any]] = []
        for choice in choices:
            converted = self.node(choice, path)
            for one in converted["anyOf"] if converted.keys() == {"anyOf"} else [converted]:
                if one not in kept:
                    kept.append(one)
        if not kept:
            raise NotStrict(_ANY, path)
        return kept[0] if len(kept) == 1 else {"anyOf": kept}

    def object(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        if schema.get("additionalProperties", "properties" not in schema) is not False:
            raise NotStrict(_OPEN, path)
        properties: dict[str, Any] = {}
        for name, value in schema.get("properties", {}).items():
            place = f"{path}.{name}" if path else name
            if not _PROPERTY_NAME.fullmatch(name):
                raise NotStrict(_NAME, place)
            properties[name] = self.node(value, place)
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }


def _description(schema: Mapping[str, Any]) -> dict[str, str]:
    description = schema.get("description")
    return {"description": description} if description and isinstance(description, str) else {}


def _enumeration(values: Iterable[Any], path: str) -> dict[str, Any]:
    """One enumeration per JSON type, since a strict enumeration names its type."""
    by_type: dict[str, list[Any]] = {}
    for value in values:
        if type(value) not in _PYTHON_TYPES:
            raise NotStrict(f"{value!r} cannot be a value of an enumeration; use strings or numbers", path)
        by_type.setdefault(_PYTHON_TYPES[type(value)], []).append(value)
    choices = [{"type": name} if name == "null" else {"type": name, "enum": v} for name, v in by_type.items()]
    return choices[0] if len(choices) == 1 else {"anyOf": choices}
