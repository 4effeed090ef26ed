"""Tools as an agent holds them: each LangChain tool or typed function is a tool with a name of its own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.tools import BaseTool, StructuredTool, Tool
from pydantic import BaseModel

from arq_graph.agent.modules import check_reference, load
from arq_graph.agent.spec_errors import Place, Problem, described
from arq_graph.agent.spelling import suggestion
from arq_graph.errors import SpecError

if TYPE_CHECKING:
    from arq_graph.agent.parts import Guideline

ToolLike = BaseTool | Callable[..., Any] | str

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def tool_like(value: object) -> ToolLike:
    """Read what can become a tool: a LangChain tool, a function, "module:function", or a tool's name."""
    if isinstance(value, str):
        name = value.strip()
        if ":" in name or not _NAME.fullmatch(name):
            check_reference(name)
        return name
    if isinstance(value, BaseTool) or inspect.isroutine(value):
        return value
    raise SpecError(f'must be a LangChain tool, a function or "module:function", but is {described(value)}')


def as_tool(value: object) -> BaseTool:
    """Make a LangChain tool of a typed function with a docstring; an async one stays async-only.

    The descriptions of the arguments are read from a Google-style docstring or from `Annotated[type, "…"]`. A
    LangChain tool is checked and returned as it is. The message of an error says what to add to the function.
    """
    from arq_graph.agent.parts import is_taken

    if isinstance(value, BaseTool):
        tool = value
    elif inspect.isroutine(value):
        tool = _from_function(value)
    else:
        raise SpecError(f"is {described(value)}; give a function or a LangChain tool itself")
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
    if not isinstance(schema, dict):
        # `schema` is what models of Pydantic's first version have.
        schema = schema.model_json_schema() if issubclass(schema, BaseModel) else schema.schema()
    found: dict[str, Any] = schema
    return found


def _from_function(function: Callable[..., Any]) -> BaseTool:
    called = f"is the function {getattr(function, '__name__', '')}"
    is_async = inspect.iscoroutinefunction(function)
    try:
        _check_signature(function)
        return StructuredTool.from_function(
            func=None if is_async else function,
            coroutine=function if is_async else None,
            parse_docstring=True,
        )
    except Exception as error:
        raise SpecError(f"{called}, which cannot become a tool: {_first_line(error)}") from error


def _check_signature(function: Callable[..., Any]) -> None:
    """Refuse what LangChain takes, although the call that a model makes would fail or lose an argument."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError("it yields its results one by one; return them together, as a list")
    for parameter in inspect.signature(function).parameters.values():
        name, kind = parameter.name, parameter.kind
        if kind in (kind.POSITIONAL_ONLY, kind.VAR_POSITIONAL, kind.VAR_KEYWORD):
            raise TypeError(f"its argument {name} cannot be given by name, as a model gives every argument")
        if name.startswith("_"):
            raise TypeError(f"its argument {name} begins with _, which hides it; rename it")
        if parameter.annotation is parameter.empty:
            raise TypeError(f"its argument {name} lacks a type hint; write `{name}: str`")


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__


class Toolbox:
    """The tools that guidelines and the agent itself name, each under one name."""

    def __init__(
        self, guidelines: Sequence[Guideline], always: Sequence[ToolLike], folder: Path | None
    ) -> None:
        self._folder = folder
        self._made: dict[object, BaseTool] = {}
        self.by_name: dict[str, BaseTool] = {}
        self.problems: list[Problem] = []
        named = dict(_named(guidelines, always))
        found: dict[Place, BaseTool] = {}
        for find in (self._find, self._look_up):  # a name may stand before the function that it refers to
            for place, value in named.items():
                try:
                    if tool := find(value):
                        found[place] = tool
                except SpecError as error:
                    self.problems.append((place, error))

        def standing(*under: str | int) -> tuple[BaseTool, ...]:
            here = [found[place] for place in named if place[:-1] == under and place in found]
            return tuple({tool.name: tool for tool in here}.values())

        self.always = standing("tools")
        self.attached = {each.id: standing("guidelines", at, "tools") for at, each in enumerate(guidelines)}
        self.grants = {
            name: tuple(id for id, tools in self.attached.items() if tool in tools)
            for name, tool in self.by_name.items()
        }

    def _find(self, written: ToolLike) -> BaseTool | None:
        """The tool that a value is or names with its module; one function is one tool, wherever it stands."""
        value: object = written
        if isinstance(written, str):
            if ":" not in written:
                return None
            value = load(written, self._folder)
            if not isinstance(value, BaseTool) and not inspect.isroutine(value):
                raise SpecError(
                    f"names {written!r}, which is {described(value)}; name a function or a LangChain tool"
                )
        key = value if inspect.isroutine(value) else id(value)
        tool = self._made[key] = self._made.get(key) or as_tool(value)
        if self.by_name.setdefault(tool.name, tool) is not tool:
            raise SpecError(f'holds a second tool called {tool.name!r}; rename one of the two: @tool("…")')
        return tool

    def _look_up(self, written: ToolLike) -> BaseTool | None:
        """The tool of a bare name, which stands elsewhere."""
        if not isinstance(written, str) or ":" in written:
            return None
        if written not in self.by_name:
            near = suggestion(written, self.by_name) or "; to name a function write module:function"
            raise SpecError(f"names {written!r}, which is no tool that the agent names elsewhere{near}")
        return self.by_name[written]


def _named(guidelines: Sequence[Guideline], always: Sequence[ToolLike]) -> Iterator[tuple[Place, ToolLike]]:
    for index, guideline in enumerate(guidelines):
        for position, value in enumerate(guideline.tools):
            yield ("guidelines", index, "tools", position), value
    for position, value in enumerate(always):
        yield ("tools", position), value
