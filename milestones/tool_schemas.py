"""Tools and their JSON schemas: names, definitions, and the arguments that a call must give, each in its type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from arq_graph.errors import ToolError

Schema = Mapping[str, Any]
Schemas = Mapping[str, Schema]
"""The JSON schema of each tool's arguments, by the tool's name."""

_CHECKED_KEYWORDS = ("$ref", "allOf", "anyOf", "oneOf", "type", "const", "enum", "required", "items")


def get_tool_name(tool: Any) -> str:
    """Return the name of a tool: a name, an OpenAI tool definition, or an object with a `name`."""
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


def get_argument_schemas(tools: Any) -> dict[str, Schema]:
    """Return the JSON schema of each tool's arguments, by the tool's name; tools without one are left out."""
    schemas = {}
    for name, tool in _iterate_named_tools(tools):
        schema = _get_argument_schema(tool)
        if schema is not None:
            schemas[name] = schema
    return schemas


def get_tool_definitions(tools: Any) -> list[dict[str, Any]]:
    """Return the tools' descriptions as OpenAI's functions: `name`, `description` and `parameters`."""
    definitions = {name: _define_tool(name, tool) for name, tool in _iterate_named_tools(tools)}
    return list(definitions.values())


def has_required_arguments(schema: Schema, arguments: Mapping[str, Any]) -> bool:
    """Return whether a call gives every argument that the schema requires, each in its type.

    A schema that is broken, or that refers to itself without end, requires nothing.
    """
    try:
        return bool(_make_type_validator()(schema).is_valid(dict(arguments)))
    except Exception:  # whatever a broken schema leads to
        return True


@cache
def _make_type_validator() -> Any:
    """Return a validator class that checks only that required values are there, and their types."""
    from jsonschema import (  # slow to import, and most scoring doesn't need it
        Draft202012Validator,
        validators,
    )

    keywords = Draft202012Validator.VALIDATORS

    def validate_required_properties(validator: Any, properties: Any, value: Any, schema: Any) -> Any:
        required = schema.get("required", ())
        required_properties = {name: part for name, part in properties.items() if name in required}
        return keywords["properties"](validator, required_properties, value, schema)

    checked: dict[str, Any] = {name: keywords[name] for name in _CHECKED_KEYWORDS}
    checked["properties"] = validate_required_properties
    return validators.create({}, checked, type_checker=Draft202012Validator.TYPE_CHECKER)


def _iterate_named_tools(tools: Any) -> Iterator[tuple[str, Any]]:
    """Yield tools with their names; each value of a mapping is a tool, or the schema of its arguments."""
    if not isinstance(tools, Mapping):
        for tool in tools:
            yield get_tool_name(tool), tool
        return
    for name, tool_or_schema in tools.items():
        if isinstance(tool_or_schema, Mapping):
            yield name, {"name": name, "parameters": tool_or_schema}
        else:
            yield name, tool_or_schema


def _define_tool(name: str, tool: Any) -> dict[str, Any]:
    if isinstance(tool, str):
        return {"name": name}
    if not isinstance(tool, Mapping):
        from langchain_core.utils.function_calling import convert_to_openai_tool

        try:
            function: dict[str, Any] = convert_to_openai_tool(tool)["function"]
        except Exception as error:
            raise ToolError(f"the tool {name!r} cannot be described: {error}") from error
        return function
    definition: dict[str, Any] = {"name": name}
    if description := tool.get("function", tool).get("description"):
        definition["description"] = str(description)
    schema = _get_argument_schema(tool)
    if schema is not None:
        definition["parameters"] = schema
    return definition


def _get_argument_schema(tool: Any) -> Schema | None:
    if isinstance(tool, Mapping):
        definition = tool.get("function", tool)
        schema = definition.get("parameters") or definition.get("input_schema")
    else:
        from langchain_core.tools import BaseTool  # as slow to import as all of the measure

        from arq_graph.agent.tools import get_argument_schema

        # LangChain's `tool_call_schema` leaves out the arguments that it injects itself, and loses aliases.
        schema = getattr(tool, "tool_call_schema", None) or getattr(tool, "args_schema", None)
        if isinstance(tool, BaseTool) and not isinstance(schema, Mapping):
            schema = get_argument_schema(tool)
    if hasattr(schema, "model_json_schema"):
        schema = schema.model_json_schema()
    return schema if isinstance(schema, Mapping) else None
