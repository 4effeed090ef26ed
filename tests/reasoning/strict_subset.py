"""A checker, written apart from the code under test, of OpenAI's strict subset of JSON schema."""

from __future__ import annotations

import re
from typing import Any

_SCALARS = {"string", "integer", "number", "boolean", "null"}
_PYTHON = {"string": str, "integer": int, "number": float, "boolean": bool}
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def assert_strict(schema: dict[str, Any], *, root: str | None = "object") -> None:
    """Fail unless a schema is in the strict subset.

    Args:
        schema: What a provider would be sent.
        root: The type that the root must have; None: any.
    """
    definitions = schema.get("$defs", {})
    assert root is None or schema.get("type") == root, f"the root must be an {root}: {schema}"
    referenced: set[str] = set()
    _check({key: value for key, value in schema.items() if key != "$defs"}, definitions, referenced, "#")
    for name, definition in definitions.items():
        _check(definition, definitions, referenced, f"#/$defs/{name}")
    assert referenced == definitions.keys(), (
        f"unused or missing definitions: {referenced ^ definitions.keys()}"
    )


def _check(schema: Any, definitions: dict[str, Any], referenced: set[str], where: str) -> None:
    assert isinstance(schema, dict), f"{where}: {schema!r} is no schema"
    if "$ref" in schema:
        assert set(schema) == {"$ref"}, f"{where}: a keyword beside $ref: {schema}"
        name = schema["$ref"].removeprefix("#/$defs/")
        assert name in definitions, f"{where}: {schema['$ref']} leads nowhere"
        referenced.add(name)
        return
    keys = set(schema) - {"description"}
    assert isinstance(schema.get("description", ""), str), where
    if "anyOf" in schema:
        assert keys == {"anyOf"}, f"{where}: {keys} beside anyOf"
        assert schema["anyOf"], f"{where}: an empty anyOf"
        for number, choice in enumerate(schema["anyOf"]):
            _check(choice, definitions, referenced, f"{where}/anyOf/{number}")
        return
    kind = schema.get("type")
    if kind == "object":
        assert keys == {"type", "properties", "required", "additionalProperties"}, f"{where}: {keys}"
        assert schema["additionalProperties"] is False, f"{where}: an open object"
        assert schema["required"] == list(schema["properties"]), f"{where}: required is not all, in order"
        for name, value in schema["properties"].items():
            assert _NAME.fullmatch(name), f"{where}: the property name {name!r}"
            _check(value, definitions, referenced, f"{where}/properties/{name}")
    elif kind == "array":
        assert keys == {"type", "items"}, f"{where}: {keys}"
        _check(schema["items"], definitions, referenced, f"{where}/items")
    else:
        assert kind in _SCALARS, f"{where}: the type {kind!r}"
        assert keys <= {"type", "enum"}, f"{where}: {keys}"
        if "enum" in schema:
            assert schema["enum"], f"{where}: an empty enumeration"
            assert all(type(value) is _PYTHON[kind] for value in schema["enum"]), f"{where}: {schema}"
