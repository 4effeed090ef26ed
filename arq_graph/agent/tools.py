"""Tools as an agent holds them: each LangChain tool or typed function is a tool with a name of its own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, Tool
from pydantic import ValidationInfo

from arq_graph.agent.modules import load
from arq_graph.agent.spec_errors import Place, Problem, described
from arq_graph.errors import SpecError, suggestion

ToolLike = BaseTool | Callable[..., Any] | str

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def is_taken(name: str) -> bool:
    """Whether an answer, which has a property for each id and for each tool, cannot have one of that name."""
    from arq_graph.reasoning.blueprint import ARQ

    return name.startswith("_") or hasattr(ARQ, name)


def read_tool(value: object, info: ValidationInfo) -> BaseTool | str:
    """Read a LangChain tool, a function or "module:function"; the name of a tool that stands elsewhere stays one."""
    if isinstance(value, str):
        name = value.strip()
        if _NAME.fullmatch(name):
            return name
        value = load(name, info.context.folder if info.context else None)
        if not isinstance(value, BaseTool) and not inspect.isroutine(value):
            said = f"names {name!r}, which is {described(value)}; name a function or a LangChain tool"
            raise SpecError(said)
    return as_tool(value)


def as_tool(value: object) -> BaseTool:
    """Make a LangChain tool of a typed function with a docstring; an async one stays async-only.

    The descriptions of the arguments are read from a Google-style docstring or from `Annotated[type, "…"]`. A
    LangChain tool is checked and returned as it is. The message of an error says what to add to the function.
    """
    if isinstance(value, BaseTool):
        tool = value
    elif inspect.isroutine(value):
        tool = _from_function(value)
    else:
        said = f'must be a LangChain tool, a function or "module:function", but is {described(value)}'
        raise SpecError(said)
    called = f"is a tool called {tool.name!r}"
    if not _NAME.fullmatch(tool.name) or is_taken(tool.name):
        raise SpecError(
            f"{called}, but names are 1 to 64 of the characters A-Z a-z 0-9 _ . - and none that answers use for"
            ' something else; give it another with @tool("name")'
        )
    if isinstance(tool, Tool) and tool.args_schema is None:
        raise SpecError(
            f"{called} that takes one nameless text; write a function with named, typed arguments"
        )
    try:
        argument_schema(tool)
    except Exception as error:
        raise SpecError(
            f"{called}, whose arguments cannot be described to a model ({_first_line(error)}); use text, numbers,"
            " truth values, lists, enums, Pydantic models or dataclasses"
        ) from error
    return tool


def argument_schema(tool: BaseTool) -> dict[str, Any]:
    """The JSON Schema of the arguments that a model gives; injected ones are not among them."""
    schema: Any = tool.tool_call_schema
    if not isinstance(schema, dict):  # `schema` is what models of Pydantic's first version have
        schema = getattr(schema, "model_json_schema", None) or schema.schema
    found: dict[str, Any] = schema() if callable(schema) else schema
    return found


def gathered(written: Mapping[Place, BaseTool | str]) -> tuple[dict[str, BaseTool], list[Problem]]:
    """Each tool under its name, one for a function wherever it stands, and what is wrong with what is written."""
    box: dict[str, BaseTool] = {}
    problems: list[Problem] = []
    for place, tool in written.items():
        if isinstance(tool, BaseTool) and _function(box.setdefault(tool.name, tool)) != _function(tool):
            said = f'holds a second tool called {tool.name!r}; rename one of the two: @tool("…")'
            problems.append((place, said))
    for place, name in written.items():  # which may stand before the function that it refers to
        if isinstance(name, str) and name not in box:
            near = suggestion(name, box) or "; to name a function write module:function"
            problems.append((place, f"names {name!r}, which is no tool that the agent names elsewhere{near}"))
    return box, problems


def _function(tool: BaseTool) -> object:
    """The function that a tool calls; the tool's own identity where it is none of a function's."""
    return getattr(tool, "func", None) or getattr(tool, "coroutine", None) or id(tool)


def _from_function(function: Callable[..., Any]) -> BaseTool:
    is_async = inspect.iscoroutinefunction(function)
    try:
        _check_signature(function)
        return StructuredTool.from_function(
            func=None if is_async else function,
            coroutine=function if is_async else None,
            parse_docstring=True,
        )
    except Exception as error:
        called = f"is the function {getattr(function, '__name__', '')}"
        raise SpecError(f"{called}, which cannot become a tool: {_first_line(error)}") from error


def _check_signature(function: Callable[..., Any]) -> None:
    """Refuse what LangChain takes, although the call that a model makes would fail or lose an argument."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError("it yields its results one by one; return them together, as a list")
    for parameter in inspect.signature(function).parameters.values():
        name, kind = parameter.name, parameter.kind
        by_name = kind in (kind.POSITIONAL_OR_KEYWORD, kind.KEYWORD_ONLY) and not name.startswith("_")
        if not by_name or parameter.annotation is parameter.empty:
            raise TypeError(
                f"its argument {name} must have a type hint, a name that begins with a letter, and be given by it,"
                " as a model gives every argument: write `order_id: str`"
            )


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__
