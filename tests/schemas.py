"""JSON schemas of answers: how to read one, and the smallest answer that fits it."""

from typing import Any

NULL = {"type": "null"}


def inline_references(schema: Any, root: Any = None) -> Any:
    """Return a schema in which each reference is replaced by what it refers to."""
    root = root or schema
    if isinstance(schema, list):
        return [inline_references(item, root) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return inline_references(root["$defs"][name], root)
    if len(schema.get("anyOf", ())) == 1:
        return inline_references(schema["anyOf"][0], root)
    return {key: inline_references(value, root) for key, value in schema.items()}


def fill_schema(schema: dict[str, Any]) -> Any:
    """Return the smallest value that fits a strict schema without references."""
    if "anyOf" in schema:
        return None if NULL in schema["anyOf"] else fill_schema(schema["anyOf"][0])
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {name: fill_schema(value) for name, value in schema["properties"].items()}
    if schema["type"] == "array":
        return []
    return {"string": "-", "integer": 1, "number": 1.0, "boolean": False, "null": None}[schema["type"]]


def without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the values that aren't null."""
    options: list[dict[str, Any]] = schema.get("anyOf", [schema])
    return next(option for option in options if option != NULL)


def get_properties(schema: dict[str, Any], *path: str) -> dict[str, Any]:
    """Return the properties of an object, or of one inside it at a path of names."""
    for name in path:
        schema = schema["properties"][name]
    properties: dict[str, Any] = schema["properties"]
    return properties


def find_option(schema: dict[str, Any], key: str) -> dict[str, Any]:
    """Return what an object holds under the key that tells it apart from its alternatives."""
    for option in schema.get("anyOf", [schema]):
        if key in option["properties"]:
            return dict(option["properties"][key])
    raise KeyError(key)


def override(answer: dict[str, Any], fields: Any) -> None:
    """Replace fields of an answer; fields that it wasn't asked for are ignored."""
    for name in answer.keys() & fields.keys():
        answer[name] = fields[name]
