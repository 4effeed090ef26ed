"""What a tool's own schema asks of a call: the required arguments, each in its type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from langchain_core.utils.function_calling import convert_to_openai_tool

from arq_graph.errors import ToolError

Schema = Mapping[str, Any]
_RULES = ("$ref", "allOf", "anyOf", "oneOf", "type", "const", "enum", "required", "items")


def get_tool_name(tool: Any) -> str:
    """The name of a tool: a name, an OpenAI tool definition, or an object with a `name`."""
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
    """The JSON schema of each tool's arguments, by the tool's name; tools without one are left out."""
    known = {name: _schema_of(each) for name, each in _named(tools)}
    return {name: schema for name, schema in known.items() if schema is not None}


def get_tool_definitions(tools: Any) -> list[dict[str, Any]]:
    """What tools say of themselves, as OpenAI's functions: `name`, `description` and `parameters`."""
    return [*{name: _definition(name, each) for name, each in _named(tools)}.values()]


def _named(tools: Any) -> Iterator[tuple[str, Any]]:
    """Tools with their names; each value of a mapping is a tool, or the schema of its arguments."""
    if isinstance(tools, Mapping):
        for name, each in tools.items():
            yield name, {"name": name, "parameters": each} if isinstance(each, Mapping) else each
    else:
        yield from ((get_tool_name(each), each) for each in tools)


def _definition(name: str, tool: Any) -> dict[str, Any]:
    if isinstance(tool, str):
        return {"name": name}
    if not isinstance(tool, Mapping):
        try:
            described: dict[str, Any] = convert_to_openai_tool(tool)["function"]
        except Exception as error:
            raise ToolError(f"the tool {name!r} cannot be described: {error}") from error
        return described
    description, schema = tool.get("function", tool).get("description"), _schema_of(tool)
    told = {"description": str(description)} if description else {}
    return {"name": name, **told, **({"parameters": schema} if schema is not None else {})}


def has_required_arguments(schema: Schema, arguments: Mapping[str, Any]) -> bool:
    """Whether a call gives every argument that the schema requires, each in its type.

    A schema that cannot be read, or that leads in a circle, asks for nothing.
    """
    try:
        return bool(_validator_of_types()(schema).is_valid(dict(arguments)))
    except Exception:  # whatever a broken schema leads to
        return True


@cache
def _validator_of_types() -> Any:
    """A validator that checks only which values are required, and their types."""
    from jsonschema import Draft202012Validator, validators  # slow, and most scoring needs none

    known = Draft202012Validator.VALIDATORS

    def required_alone(validator: Any, properties: Any, value: Any, schema: Any) -> Any:
        asked = {name: part for name, part in properties.items() if name in schema.get("required", ())}
        return known["properties"](validator, asked, value, schema)

    rules = {name: known[name] for name in _RULES} | {"properties": required_alone}
    return validators.create({}, rules, type_checker=Draft202012Validator.TYPE_CHECKER)


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
