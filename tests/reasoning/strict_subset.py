"""A checker, written apart from the code under test, of OpenAI's strict subset of JSON schema."""

import re
from typing import Any

_PYTHON = {"string": str, "integer": int, "number": float, "boolean": bool, "null": None}
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def assert_strict(schema: dict[str, Any]) -> None:
    """Fail unless a schema that a provider would be sent is in the strict subset."""
    definitions = schema.get("$defs", {})
    assert schema.get("type") == "object", f"the root must be an object: {schema}"
    nodes = [{key: value for key, value in schema.items() if key != "$defs"}, *definitions.values()]
    referenced: set[str] = set()
    for node in nodes:  # which grows
        assert isinstance(node.get("description", ""), str), node
        keys = node.keys() - {"description"}
        match node:
            case {"$ref": reference}:
                assert node.keys() == {"$ref"}, node
                referenced.add(reference.removeprefix("#/$defs/"))
            case {"anyOf": [_, *_] as choices}:
                assert keys == {"anyOf"}, node
                nodes += choices
            case {"type": "object", "properties": properties}:
                assert keys == {"type", "properties", "required", "additionalProperties"}, node
                assert node["additionalProperties"] is False, node
                assert node["required"] == list(properties), f"required is not all, in order: {node}"
                assert all(map(_NAME.fullmatch, properties)), node
                nodes += properties.values()
            case {"type": "array", "items": items}:
                assert keys == {"type", "items"}, node
                nodes.append(items)
            case _:
                assert node.get("type") in _PYTHON, node
                assert keys <= {"type", "enum"}, node
                assert node.get("enum", ["-"]), f"an empty enumeration: {node}"
                assert all(type(value) is _PYTHON[node["type"]] for value in node.get("enum", ())), node
    assert referenced == definitions.keys(), f"unused or missing: {referenced ^ definitions.keys()}"
