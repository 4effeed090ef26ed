"""What a tool's own schema asks of a call: the required arguments, each in its type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from arq_graph.errors import ToolError
from arq_graph.milestones.values import is_number, same_value

Schema = Mapping[str, Any]
DEEPEST_SCHEMA = 32
MOST_CHECKS = 100_000
"""So many comparisons are made for one call; a schema may branch without end."""


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


def tool_definitions(tools: Any) -> list[dict[str, Any]]:
    """What tools say of themselves, as OpenAI's functions: `name`, `description` and `parameters`, as far as they do.

    Args:
        tools: Names, OpenAI or Anthropic definitions, LangChain tools or plain functions; or schemas by name.

    Returns:
        Each name once; the last of that name counts.

    Raises:
        ToolError: A tool has no name, or cannot be described.
    """
    if isinstance(tools, Mapping):
        known = argument_schemas(tools)
        return [{"name": name, **({"parameters": known[name]} if name in known else {})} for name in tools]
    return [*{definition["name"]: definition for definition in map(_definition, tools)}.values()]


def _definition(tool: Any) -> dict[str, Any]:
    name = tool_name(tool)
    if isinstance(tool, str):
        return {"name": name}
    if not isinstance(tool, Mapping):
        from langchain_core.utils.function_calling import (
            convert_to_openai_tool,
        )  # slow, and scoring needs none

        try:
            described: dict[str, Any] = convert_to_openai_tool(tool)["function"]
        except Exception as error:
            raise ToolError(f"the tool {name!r} cannot be described: {error}") from error
        return described
    function = tool.get("function", tool)
    description, schema = function.get("description"), _schema_of(tool)
    told = {"description": str(description)} if description else {}
    return {"name": name, **told, **({"parameters": schema} if schema is not None else {})}


def has_required_arguments(schema: Schema, arguments: Mapping[str, Any]) -> bool:
    """Whether a call gives every argument that the schema requires, each in its type.

    A part of the schema that is none (`required: true`, `anyOf: 5`) asks for nothing. What lies deeper
    than `DEEPEST_SCHEMA` is taken as fitting, and so is a call about which `MOST_CHECKS` comparisons found nothing.
    """
    try:
        return _Check(schema).required_fit(schema, arguments, 0)
    except _SpentError:
        return True


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


class _SpentError(Exception):
    """As much was checked as may be."""


class _Check:
    """One check of a call against a schema, and how much of it may still be done."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = MOST_CHECKS

    def required_fit(self, schema: Schema, value: Mapping[str, Any], depth: int) -> bool:
        """Whether an object gives every property that the schema requires, each in its type."""
        properties = schema.get("properties")
        known: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        return all(
            name in value and self._fits(known.get(name), value[name], depth + 1)
            for name in _listed(schema.get("required"))
            if isinstance(name, str)
        )

    def _fits(self, schema: Any, value: Any, depth: int) -> bool:
        self._left -= 1
        if self._left < 0:
            raise _SpentError
        if not isinstance(schema, Mapping) or depth > DEEPEST_SCHEMA:
            return True
        parts = [self._referenced(schema["$ref"])] if "$ref" in schema else []
        parts += _listed(schema.get("allOf"))
        if not all(self._fits(part, value, depth + 1) for part in parts):
            return False
        for key in ("anyOf", "oneOf"):
            choices = _listed(schema.get(key))
            if choices and not any(self._fits(choice, value, depth + 1) for choice in choices):
                return False
        allowed = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(allowed, list | tuple) and not any(same_value(one, value) for one in allowed):
            return False
        types = schema.get("type")
        names = [types] if isinstance(types, str) else _listed(types)
        if names and not any(_is(name, value) for name in names):
            return False
        if isinstance(value, Mapping):
            return self.required_fit(schema, value, depth)
        items = schema.get("items")
        if isinstance(value, list) and isinstance(items, Mapping):
            return all(self._fits(items, item, depth + 1) for item in value)
        return True

    def _referenced(self, reference: Any) -> Any:
        node: Any = self._root
        for part in str(reference).removeprefix("#/").split("/"):
            node = node.get(part) if isinstance(node, Mapping) else None
        return node


def _listed(part: Any) -> Sequence[Any]:
    return part if isinstance(part, list | tuple) else ()


def _is(name: Any, value: Any) -> bool:
    """Whether a value is of a type of JSON Schema; of one that is not known it may be."""
    match name:
        case "integer":  # JSON does not tell 3 from 3.0: a whole number is an integer however it is written
            return is_number(value) and (isinstance(value, int) or value.is_integer())
        case "number":
            return is_number(value)
        case "null":
            return value is None
    kind = _KINDS.get(name) if isinstance(name, str) else None
    return kind is None or isinstance(value, kind)


_KINDS: dict[str, type] = {"string": str, "boolean": bool, "object": Mapping, "array": list}
