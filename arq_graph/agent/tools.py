"""Tools as an agent holds them: each LangChain tool or typed function is a tool with a name of its own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.tools import BaseTool, StructuredTool, Tool
from pydantic import ValidationInfo

from arq_graph.agent.modules import load
from arq_graph.errors import SpecError

ToolLike = BaseTool | Callable[..., Any] | str

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_IN_A_FILE = re.compile(r"\.ya?ml:")

# Agents of one file have the same functions, and worlds of one class the same methods: a schema is made once of each.
_MADE: WeakKeyDictionary[Callable[..., Any], tuple[object, StructuredTool]] = WeakKeyDictionary()


def is_taken(name: str) -> bool:
    """Whether an answer, which has a property for each id and for each tool, cannot have one of that name."""
    from arq_graph.reasoning.blueprint import ARQ

    return name.startswith("_") or hasattr(ARQ, name)


def read_tool(value: object, info: ValidationInfo) -> BaseTool:
    """Read a LangChain tool, a function, "module:function", "file.yaml:tool" or "mcp:server/tool"."""
    folder = info.context.folder if info.context else None
    if isinstance(value, str) and value.startswith("mcp:"):
        from arq_graph.agent.mcp import mcp_tool

        value = mcp_tool(value, info.context)
    elif isinstance(value, str) and _IN_A_FILE.search(value):
        from arq_graph.agent.tool_file import described_tool

        value = described_tool(value, folder)
    elif isinstance(value, str):
        if ":" not in value:
            raise SpecError(f'must be "module:function" or "file.yaml:name", but is {value!r}')
        value = load(value, folder)
    return as_tool(value)


def as_tool(value: object) -> BaseTool:
    """Make a LangChain tool of a typed function with a docstring.

    The descriptions of the arguments are read from a Google-style docstring or from `Annotated[type, "…"]`. A
    LangChain tool is checked and returned as it is. The message of an error says what to add to the function.
    """
    if not isinstance(value, BaseTool) and not inspect.isroutine(value):
        said = f'must be a LangChain tool, a function or "module:function", but is {value!r:.60}'
        raise SpecError(said)
    name = value.name if isinstance(value, BaseTool) else value.__name__
    if not _NAME.fullmatch(name) or is_taken(name):
        raise SpecError(
            f"is a tool called {name!r}, but names are 1 to 64 of the characters A-Z a-z 0-9 _ . - and none that"
            ' answers use for something else; give it another with @tool("name")'
        )
    try:
        tool = value if isinstance(value, BaseTool) else _from_function(value)
        argument_schema(tool)
    except Exception as error:
        said = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise SpecError(
            f"is {name!r}, which cannot be a tool: {said}. A tool has a docstring, and named, typed arguments: text,"
            " numbers, truth values, lists, enums, Pydantic models or dataclasses"
        ) from error
    return tool


def argument_schema(tool: BaseTool) -> dict[str, Any]:
    """The JSON Schema of the arguments that a model gives; injected ones are not among them."""
    if isinstance(tool, Tool) and tool.args_schema is None:
        raise TypeError("it takes one nameless text")
    schema: Any = tool.tool_call_schema
    found: dict[str, Any] = schema if isinstance(schema, dict) else schema.model_json_schema()
    return found


def schema_errors(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a JSON Schema finds wrong with arguments: each time an argument's name, "" for the whole, and why."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    for name in schema.get("required") or ():
        if name not in arguments:
            yield name, "it is required"
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        # An empty registry: a reference to a web address is never fetched.
        for error in kind(schema, registry=Registry(), format_checker=kind.FORMAT_CHECKER).iter_errors(
            arguments
        ):
            if error.absolute_path or error.validator != "required":
                yield str(next(iter(error.absolute_path), "")), error.message
    except Exception as error:  # a reference that leads nowhere, an unknown type, a broken pattern
        yield "", f"the tool's own schema cannot be used: {type(error).__name__}: {error}"


def function_of(tool: BaseTool) -> object:
    """The function that a tool calls; the tool's own identity where it is none of a function's."""
    return getattr(tool, "func", None) or getattr(tool, "coroutine", None) or id(tool)


def _from_function(function: Callable[..., Any]) -> BaseTool:
    """Make a tool; LangChain also takes functions of which a model's call would fail or lose an argument."""
    written = getattr(function, "__func__", function)
    func, coroutine = (None, function) if inspect.iscoroutinefunction(function) else (function, None)
    signature = inspect.signature(function)
    described = function.__name__, function.__doc__, signature
    before, made = _MADE.get(written, (None, None))
    if made and before == described:
        return made.model_copy(update={"func": func, "coroutine": coroutine})
    for parameter in signature.parameters.values():
        name, kind = parameter.name, parameter.kind
        by_name = kind in (kind.POSITIONAL_OR_KEYWORD, kind.KEYWORD_ONLY) and not name.startswith("_")
        if not by_name or parameter.annotation is parameter.empty:
            raise TypeError(
                f"its argument {name} must have a type hint, a name that begins with a letter, and be given by it,"
                " as a model gives every argument: write `order_id: str`"
            )
    tool = StructuredTool.from_function(func, coroutine, parse_docstring=True)
    argument_schema(tool)  # which its copies keep
    # Without the function, so that a world that is done with is not kept.
    _MADE[written] = described, tool.model_copy(update={"func": None, "coroutine": None})
    return tool
