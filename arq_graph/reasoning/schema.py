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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from arq_graph.reasoning.queries import Form, get_queries

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
_STRUCTURAL_KEYWORDS = {
    "prefixItems": _TUPLE,
    "patternProperties": _OPEN,
    "not": _MIXED,
    "if": _MIXED,
    "dependentSchemas": _MIXED,
    "$dynamicRef": _MIXED,
}


class NotStrict(ValueError):
    """A schema says something that the strict subset cannot express; its arguments are the reason and the path."""


def make_strict_schema(schema: Mapping[str, Any], *, optional_as_null: bool = False) -> dict[str, Any]:
    """Convert a JSON schema to the strict subset; raises NotStrict if that cannot express it.

    With `optional_as_null`, a property that may be left out may be null instead; `drop_optional_nulls` drops that null
    from an answer.
    """
    try:
        return _Conversion(schema, optional_as_null=optional_as_null).convert_root()
    except (AttributeError, TypeError) as error:
        raise NotStrict(f"this is not a JSON schema ({error})", "") from error


def drop_optional_nulls(value: Any, schema: Mapping[str, Any]) -> Any:
    """Drop each null from a value for which the schema, one without references, lets a property be left out."""
    choices = list(_list_choices(schema))
    if isinstance(value, list):
        items = {"anyOf": [choice["items"] for choice in choices if "items" in choice]}
        return [drop_optional_nulls(item, items) for item in value]
    if not isinstance(value, dict):
        return value
    remaining: dict[str, Any] = {}
    for name, item in value.items():
        holders = [choice for choice in choices if name in choice.get("properties", ())]
        is_optional = bool(holders) and not any(name in _get_required(holder) for holder in holders)
        if item is not None or not is_optional:
            properties = {"anyOf": [holder["properties"][name] for holder in holders]}
            remaining[name] = drop_optional_nulls(item, properties)
    return remaining


def _list_choices(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas of which a value fits one: the schema itself, or the choices of its union."""
    if not isinstance(schema, Mapping):
        return
    choices = schema.get("anyOf") or schema.get("oneOf")
    if not choices:
        yield schema
    for choice in choices or ():
        yield from _list_choices(choice)


def _get_required(schema: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of the properties that an object must have."""
    required = schema.get("required")
    return required if isinstance(required, list) else ()


class AnswerJsonSchema(GenerateJsonSchema):
    """Generates a schema as Pydantic does, except for decimals."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """Return the schema of a string, in which no digit of a decimal is lost."""
        return {"type": "string"}


def make_schema_generator(form: Form) -> type[AnswerJsonSchema]:
    """Return a generator that keeps, of every blueprint at any depth, the fields that the form includes."""

    class FormJsonSchema(AnswerJsonSchema):
        def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
            reduced = super().model_schema(schema)
            for name, query in get_queries(schema["cls"]).items():
                if not form.includes(name, query):
                    del reduced["properties"][name]
            return reduced

    return FormJsonSchema


class _Conversion:
    def __init__(self, schema: Mapping[str, Any], *, optional_as_null: bool) -> None:
        self._schema = schema
        self._optional_as_null = optional_as_null
        self._sources: Mapping[str, Any] = schema.get("$defs", {})
        self._definitions: dict[str, dict[str, Any]] = {}

    def convert_root(self) -> dict[str, Any]:
        schema = self._schema
        if "$ref" in schema:  # a model that refers to itself
            _, definition = self._find_definition(schema["$ref"], "")
            schema = {**definition, **_get_description(schema)}
        converted = self._convert(schema, "")
        if self._definitions:
            converted["$defs"] = self._definitions
        return converted

    def _find_definition(self, reference: str, path: str) -> tuple[str, Mapping[str, Any]]:
        name = reference.removeprefix("#/$defs/")
        if name not in self._sources:
            raise NotStrict(f"the reference {reference!r} does not lead into $defs", path)
        return name, self._sources[name]

    def _convert(self, schema: Any, path: str) -> dict[str, Any]:
        if not isinstance(schema, Mapping):
            raise NotStrict(_ANY, path)
        for keyword, reason in _STRUCTURAL_KEYWORDS.items():
            if keyword in schema:
                raise NotStrict(reason, path)
        shape = self._convert_shape(schema, path)
        description = _get_description(schema)
        if description and "$ref" in shape:
            # A reference must stand alone, so its description goes to a choice of one.
            return {**description, "anyOf": [shape]}
        return {**description, **shape, **description}

    def _convert_shape(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        shapes = _SHAPES & schema.keys()
        is_mixed = len(shapes - {"enum", "const"}) > 1
        is_mixed = is_mixed or (len(shapes) > 1 and bool(shapes & {"anyOf", "oneOf", "$ref"}))
        if is_mixed:
            raise NotStrict(_MIXED, path)
        match schema:
            case {"$ref": reference}:
                return self._convert_reference(reference, path)
            case {"anyOf": choices} | {"oneOf": choices}:
                return self._convert_choice(choices, path)
            case {"allOf": _}:
                raise NotStrict(_MIXED, path)
            case {"const": value}:
                return _convert_enumeration([value], path)
            case {"enum": [_, *_] as values}:
                return _convert_enumeration(values, path)
            case {"type": "object"} | {"properties": _}:
                return self._convert_object(schema, path)
            case {"type": str(scalar)} if scalar in _SCALARS:
                return {"type": scalar}
            case {"type": [*types]}:
                bare = {key: value for key, value in schema.items() if key != "description"}
                return self._convert_choice([{**bare, "type": name} for name in types], path)
            case {"type": "array"} | {"items": _}:
                return {"type": "array", "items": self._convert(schema.get("items"), f"{path}[]")}
        raise NotStrict(_ANY, path)

    def _convert_reference(self, reference: str, path: str) -> dict[str, Any]:
        name, definition = self._find_definition(reference, path)
        if name not in self._definitions:
            self._definitions[name] = {}  # entered before it is converted, so that recursion ends here
            self._definitions[name] = self._convert(definition, path)
        return {"$ref": f"#/$defs/{name}"}

    def _convert_choice(self, choices: Iterable[Any], path: str) -> dict[str, Any]:
        """Convert a union; choices that differ only in what the subset leaves out become one."""
        distinct: list[dict[str, Any]] = []
        for choice in choices:
            converted = self._convert(choice, path)
            alternatives = [converted]
            if converted.keys() == {"anyOf"}:
                alternatives = converted["anyOf"]
            for alternative in alternatives:
                if alternative not in distinct:
                    distinct.append(alternative)
        if not distinct:
            raise NotStrict(_ANY, path)
        return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}

    def _convert_object(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        is_open = "properties" not in schema  # unless it says otherwise
        if schema.get("additionalProperties", is_open) is not False:
            raise NotStrict(_OPEN, path)
        properties: dict[str, Any] = {}
        for name, value in schema.get("properties", {}).items():
            property_path = f"{path}.{name}" if path else name
            if not _PROPERTY_NAME.fullmatch(name):
                raise NotStrict(_NAME, property_path)
            converted = self._convert(value, property_path)
            if self._optional_as_null and name not in _get_required(schema):
                converted = _add_null(converted)
            properties[name] = converted
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }


def _add_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a strict schema that also admits null."""
    shape = {key: value for key, value in schema.items() if key != "description"}
    choices = list(shape["anyOf"]) if shape.keys() == {"anyOf"} else [shape]
    if {"type": "null"} not in choices:
        choices.append({"type": "null"})
    if len(choices) == 1:  # null alone
        return schema
    return {**_get_description(schema), "anyOf": choices}


def _get_description(schema: Mapping[str, Any]) -> dict[str, str]:
    description = schema.get("description")
    return {"description": description} if description and isinstance(description, str) else {}


def _convert_enumeration(values: Iterable[Any], path: str) -> dict[str, Any]:
    """Return one enumeration for each JSON type, since a strict enumeration names its type."""
    values_by_type: dict[str, list[Any]] = {}
    for value in values:
        if type(value) not in _PYTHON_TYPES:
            raise NotStrict(f"{value!r} cannot be a value of an enumeration; use strings or numbers", path)
        values_by_type.setdefault(_PYTHON_TYPES[type(value)], []).append(value)
    choices: list[dict[str, Any]] = []
    for name, typed_values in values_by_type.items():
        choice: dict[str, Any] = {"type": name}
        if name != "null":
            choice["enum"] = typed_values
        choices.append(choice)
    return choices[0] if len(choices) == 1 else {"anyOf": choices}
