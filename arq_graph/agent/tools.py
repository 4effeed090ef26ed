"""Tools as an agent stores them: LangChain tools, some of them made from typed functions."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any, cast
from weakref import WeakKeyDictionary

from langchain_core.tools import BaseTool, StructuredTool, Tool

from arq_graph.agent.json_schema import find_schema_flaw, flatten_schema
from arq_graph.agent.part import Part
from arq_graph.agent.tool_model import find_overwritten_names, get_tool_model
from arq_graph.errors import SpecError

ToolLike = BaseTool | Callable[..., Any] | str

_NAME = re.compile(r"[A-Za-z0-9_./-]{1,128}")  # those of MCP

# By function, its description when the tool was made, and the tool. Agents that are read from one file share their
# functions, and worlds of one class their methods, so that each schema is made once.
_TOOLS: WeakKeyDictionary[Callable[..., Any], tuple[object, StructuredTool]] = WeakKeyDictionary()


def replace_tools(value: Any, tools: Mapping[str, BaseTool]) -> Any:
    """Return a part of a specification with other tools of the same names in it, at any depth."""
    if isinstance(value, BaseTool):
        return tools.get(value.name, value)
    if isinstance(value, tuple):
        items = tuple(replace_tools(item, tools) for item in value)
        has_changed = any(new is not old for new, old in zip(items, value, strict=True))
        return items if has_changed else value
    if not isinstance(value, Part):
        return value
    changes: dict[str, Any] = {}
    for name in value.model_fields_set:
        old = getattr(value, name)
        new = replace_tools(old, tools)
        if new is not old:
            changes[name] = new
    return value.replace(**changes) if changes else value


def is_reserved_name(name: str) -> bool:
    """Return True if blueprints use the name themselves: an answer has a property for each guideline id and tool."""
    from arq_graph.reasoning.blueprint import ARQ

    return name.startswith("_") or hasattr(ARQ, name)


def make_tool(value: object) -> BaseTool:
    """Make a LangChain tool from a typed function with a docstring.

    The descriptions of the arguments come from a Google-style docstring or from `Annotated[type, "…"]`. A LangChain
    tool is checked and returned unchanged.

    Raises:
        SpecError: The value can't be a tool; the message says what to add to the function.
    """
    if isinstance(value, BaseTool):
        name = value.name
    elif inspect.isroutine(value):
        name = value.__name__
    else:
        raise SpecError(f'must be a LangChain tool, a function or "module:function", but is {value!r:.60}')
    if not _NAME.fullmatch(name):
        raise SpecError(
            f"is a tool called {name!r}, but names are 1 to 128 of the characters A-Z a-z 0-9 _ . / -; give it another"
            ' with @tool("name")'
        )
    try:
        tool = value if isinstance(value, BaseTool) else _make_from_function(value)
        schema = get_argument_schema(tool)
    except Exception as error:
        problem = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise SpecError(
            f"is {name!r}, which cannot be a tool: {problem}. A tool has a docstring, and named, typed arguments: text,"
            " numbers, truth values, lists, enums, Pydantic models or dataclasses"
        ) from error
    _warn_of_flaws(tool, schema)
    return tool


def _warn_of_flaws(tool: BaseTool, schema: Mapping[str, Any]) -> None:
    """Warn whoever lists a tool about what nobody would notice when it is called."""
    flaw = None if get_tool_model(tool) else find_schema_flaw(get_json_schema(tool))
    if flaw:
        warnings.warn(
            f"the tool {tool.name!r} has a schema that cannot be checked here in full: {flaw}. What is not checked is "
            "left to the tool itself",
            stacklevel=3,
        )
    overwritten = [name for name in find_overwritten_names(tool) if name in schema["properties"]]
    if overwritten:
        warnings.warn(
            f"the tool {tool.name!r} never gets its argument {overwritten[0]!r}, since LangChain passes something of "
            "its own under that name. Give the argument another name",
            stacklevel=3,
        )


def get_argument_schema(tool: BaseTool) -> dict[str, Any]:
    """Return the JSON Schema of the arguments that a model provides, without injected arguments.

    `properties` has every argument, by the name that the tool takes as input.
    """
    if isinstance(tool, Tool) and tool.args_schema is None:
        raise TypeError("it takes one nameless text")
    model = get_tool_model(tool)
    if model is None:
        return flatten_schema(get_json_schema(tool))
    return model.schema | {"title": tool.name, "description": tool.description}


def get_json_schema(tool: BaseTool) -> dict[str, Any]:
    """Return the schema of a tool that comes with a JSON schema, such as one of an MCP server."""
    return cast("dict[str, Any]", tool.tool_call_schema)


def get_function(tool: BaseTool) -> object:
    """Return the function that a tool calls, or the tool's identity if it doesn't call one."""
    return getattr(tool, "func", None) or getattr(tool, "coroutine", None) or id(tool)


def _make_from_function(function: Callable[..., Any]) -> BaseTool:
    unbound = getattr(function, "__func__", function)
    func: Callable[..., Any] | None = function
    coroutine = None
    if inspect.iscoroutinefunction(function):
        func, coroutine = None, function
    signature = inspect.signature(function)
    description = (function.__name__, function.__doc__, signature)
    earlier_description, tool = _TOOLS.get(unbound, (None, None))
    if tool is not None and earlier_description == description:
        return tool.model_copy(update={"func": func, "coroutine": coroutine})
    _check_parameters(signature)
    tool = StructuredTool.from_function(func, coroutine, parse_docstring=True)
    get_argument_schema(tool)  # cached in the tool, and in its copies
    # Stored without the function, so that a world whose method it is can be freed.
    _TOOLS[unbound] = description, tool.model_copy(update={"func": None, "coroutine": None})
    return tool


def _check_parameters(signature: inspect.Signature) -> None:
    """Refuse parameters that LangChain accepts but that fail or lose their value when a model calls the tool."""
    for name, parameter in signature.parameters.items():
        is_keyword = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        is_typed = parameter.annotation is not parameter.empty
        if not is_keyword or not is_typed or name.startswith("_"):
            raise TypeError(
                f"its argument {name} must have a type hint, a name that begins with a letter, and be given by it,"
                " as a model gives every argument: write `order_id: str`"
            )
