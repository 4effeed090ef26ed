"""What a tool's own schema asks of a call: the required arguments, each in its type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from arq_graph.errors import ToolError
from arq_graph.milestones.values import same_value

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
        self._spend(1)
        if not isinstance(schema, Mapping) or depth > DEEPEST_SCHEMA:
            return True
        if "$ref" in schema and not self._fits(_resolve(schema["$ref"], self._root), value, depth + 1):
            return False
        for key in ("anyOf", "oneOf"):
            choices = _listed(schema.get(key))
            if choices and not any(self._fits(choice, value, depth + 1) for choice in choices):
                return False
        if not all(self._fits(part, value, depth + 1) for part in _listed(schema.get("allOf"))):
            return False
        enum = schema.get("enum")
        if isinstance(enum, list | tuple):
            self._spend(len(enum))
            if not any(same_value(one, value) for one in enum):
                return False
        if "const" in schema and not same_value(schema["const"], value):
            return False
        types = schema.get("type")
        names = [types] if isinstance(types, str) else _listed(types)
        if names and not any(_type(name)(value) for name in names):
            return False
        if isinstance(value, Mapping):
            return self.required_fit(schema, value, depth)
        if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
            return all(self._fits(schema["items"], item, depth + 1) for item in value)
        return True

    def _spend(self, checks: int) -> None:
        self._left -= checks
        if self._left < 0:
            raise _SpentError


def _listed(part: Any) -> Sequence[Any]:
    return part if isinstance(part, list | tuple) else ()


def _type(name: Any) -> Callable[[Any], bool]:
    return _IS.get(name, _anything) if isinstance(name, str) else _anything


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
