"""What a tool's own schema asks of a call: the required arguments, each in its type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from arq_graph.errors import ToolError

Schema = Mapping[str, Any]
DEEPEST_SCHEMA = 32


def tool_name(tool: Any) -> str:
    """The name of a tool: a name, an OpenAI tool definition, or an object with a `name`.

    Raises:
        ToolError: It has none.
    """
    if isinstance(tool, str):
        return tool
    if isinstance(tool, Mapping):
        definition = tool.get("function", tool)
        name = definition.get("name") if isinstance(definition, Mapping) else None
    else:
        name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    if not isinstance(name, str):
        raise ToolError(
            f"a tool without a name: {str(tool)[:80]!r}; give names, definitions or LangChain tools"
        )
    return name


def argument_schemas(tools: Any) -> dict[str, Schema]:
    """The JSON schema of each tool's arguments, by the tool's name; tools without one are left out.

    Args:
        tools: A mapping of names to schemas or to tools, or a list of OpenAI tool definitions or LangChain tools.

    Raises:
        ToolError: A tool has no name.
    """
    if isinstance(tools, Mapping):
        known = (
            (name, tool if isinstance(tool, Mapping) else _schema_of(tool)) for name, tool in tools.items()
        )
        return {name: schema for name, schema in known if schema is not None}
    listed: Iterable[Any] = tools
    schemas = ((tool_name(tool), _schema_of(tool)) for tool in listed)
    return {name: schema for name, schema in schemas if schema is not None}


def has_required_arguments(schema: Schema, arguments: Mapping[str, Any]) -> bool:
    """Whether a call gives every argument that the schema requires, each in its type."""
    return _required_fit(schema, arguments, schema, 0)


def _schema_of(tool: Any) -> Schema | None:
    if isinstance(tool, Mapping):
        definition = tool.get("function", tool)
        schema = definition.get("parameters") or definition.get("input_schema")
    else:
        # LangChain hides the arguments that it injects itself in `tool_call_schema`.
        schema = getattr(tool, "tool_call_schema", None) or getattr(tool, "args_schema", None)
    describe = getattr(schema, "model_json_schema", None)
    if callable(describe):
        schema = describe()
    return schema if isinstance(schema, Mapping) else None


def _required_fit(schema: Schema, value: Mapping[str, Any], root: Schema, depth: int) -> bool:
    properties = schema.get("properties") or {}
    return all(
        name in value and _fits(properties.get(name, {}), value[name], root, depth + 1)
        for name in schema.get("required") or ()
    )


def _fits(schema: Any, value: Any, root: Schema, depth: int) -> bool:
    if not isinstance(schema, Mapping) or depth > DEEPEST_SCHEMA:
        return True
    if "$ref" in schema and not _fits(_resolve(schema["$ref"], root), value, root, depth + 1):
        return False
    for key in ("anyOf", "oneOf"):
        choices = schema.get(key)
        if choices and not any(_fits(choice, value, root, depth + 1) for choice in choices):
            return False
    if not all(_fits(part, value, root, depth + 1) for part in schema.get("allOf") or ()):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "const" in schema and value != schema["const"]:
        return False
    types = schema.get("type")
    if types is not None:
        names = [types] if isinstance(types, str) else types
        if not any(_IS.get(name, _anything)(value) for name in names):
            return False
    if isinstance(value, Mapping):
        return _required_fit(schema, value, root, depth)
    if isinstance(value, list):
        return all(_fits(schema.get("items"), item, root, depth + 1) for item in value)
    return True


def _resolve(reference: Any, root: Schema) -> Any:
    node: Any = root
    for part in str(reference).removeprefix("#/").split("/"):
        node = node.get(part) if isinstance(node, Mapping) else None
    return node


def _anything(_: Any) -> bool:
    return True


_IS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    # JSON does not tell 3 from 3.0: a whole number is an integer however it is written.
    "integer": lambda value: not isinstance(value, bool) and (isinstance(value, int) or _is_whole(value)),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list),
}


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()
