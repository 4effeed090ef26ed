"""Tools as an agent holds them: each LangChain tool or typed function is a tool with a name of its own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from langchain_core.tools import BaseTool, StructuredTool, Tool
from pydantic import BaseModel

from arq_graph.agent.entries import Misfit, described, is_taken, suggestion
from arq_graph.agent.modules import check_reference, load

if TYPE_CHECKING:
    from arq_graph.agent.spec import Guideline

ToolLike = BaseTool | Callable[..., Any] | str

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def tool_like(value: object) -> ToolLike:
    """Read what can become a tool: a LangChain tool, a function, "module:function", or a tool's name."""
    if isinstance(value, BaseTool):
        return value
    if isinstance(value, str):
        name = value.strip()
        if ":" in name or not _NAME.fullmatch(name):
            check_reference(name)
        return name
    if isinstance(value, type) and issubclass(value, BaseTool):
        raise Misfit(f"must hold tools, but is {described(value)}; make one with {value.__name__}(…)")
    if inspect.isroutine(value):
        return value
    hint = ""
    if isinstance(value, Mapping) and len(value) == 1:
        module, function = next(iter(value.items()))
        hint = f"; to name a function leave out the space after the colon: {module}:{function}"
    elif value is None:
        hint = "; name the function itself, not what it returns"
    raise Misfit(
        f'must be a LangChain tool, a function or "module:function", but is {described(value)}{hint}'
    )


def as_tool(value: BaseTool | Callable[..., Any]) -> BaseTool:
    """Make a LangChain tool of a typed function with a docstring; an async one stays async-only.

    The descriptions of the arguments are read from a Google-style docstring or from `Annotated[type, "…"]`.

    Args:
        value: The function; a LangChain tool is checked and returned as it is.

    Raises:
        Misfit: It cannot be called by a model as it is; the message says what to add.
    """
    tool = value if isinstance(value, BaseTool) else _from_function(value)
    if not _NAME.fullmatch(tool.name):
        raise Misfit(
            f"is a tool called {tool.name!r}, but a model can only call names of 1 to 64 of the characters"
            ' A-Z a-z 0-9 _ . -; give it another with @tool("name")'
        )
    if is_taken(tool.name):
        raise Misfit(
            f"is a tool called {tool.name!r}, a word that answers use for something else; give it another name"
            ' with @tool("name")'
        )
    if isinstance(tool, Tool) and tool.args_schema is None:
        raise Misfit(
            f"is {tool.name!r}, a LangChain `Tool` that takes one nameless text; write a function whose"
            " arguments have names and types"
        )
    try:
        schema = tool.tool_call_schema
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            schema.model_json_schema()
    except Exception as error:
        raise Misfit(
            f"is {tool.name!r}, whose arguments cannot be described to a model ({_first_line(error)}); use"
            " text, numbers, truth values, lists, enums, Pydantic models or dataclasses"
        ) from error
    return tool


def _from_function(function: Callable[..., Any]) -> BaseTool:
    name = getattr(function, "__name__", "")
    called = f"is the function {name}"
    if name == "<lambda>":
        raise Misfit("is a lambda; write a function with `def`, type hints and a docstring")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise Misfit(f"{called}, which yields its results one by one; return them together, as a list")
    if not inspect.getdoc(function):
        raise Misfit(
            f"{called}, which has no docstring; say in one what it does: the model reads it to decide"
            " when to call it"
        )
    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters.values()
    except (NameError, TypeError, ValueError, AttributeError) as error:
        raise Misfit(
            f"{called}, whose type hints cannot be read ({error}); import the types where the function is"
            " defined, outside `if TYPE_CHECKING:`"
        ) from error
    if untyped := [p.name for p in parameters if p.name not in hints and p.kind not in _VARIADIC]:
        raise Misfit(
            f"{called}, whose arguments lack a type hint: {', '.join(untyped)}; write `{untyped[0]}: str`"
        )
    for parameter in parameters:
        if parameter.kind in _VARIADIC or parameter.kind is parameter.POSITIONAL_ONLY:
            raise Misfit(
                f"{called}, whose argument {parameter.name} cannot be given by name, as a model gives"
                " every argument"
            )
        if parameter.name.startswith("_"):
            raise Misfit(
                f"{called}, whose argument {parameter.name} begins with _, which hides it; rename it"
            )
    is_async = inspect.iscoroutinefunction(function)
    try:
        return StructuredTool.from_function(
            func=None if is_async else function,
            coroutine=function if is_async else None,
            parse_docstring=True,
        )
    except Exception as error:
        raise Misfit(f"{called}, which cannot become a tool: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__


@dataclass(frozen=True)
class _Entry:
    """One place of a specification that names a tool."""

    owner: str
    value: ToolLike
    place: tuple[str | int, ...]

    def wrong(self, misfit: Misfit) -> Misfit:
        return Misfit(f"{self.owner}: `tools[{self.place[-1]}]` {misfit.message}", *self.place)


class Toolbox:
    """The tools that guidelines and the agent itself name, each under one name.

    Args:
        guidelines: Guidelines with their ids.
        always: What is always available.
        folder: Where modules are looked for before `sys.path`.

    Attributes:
        by_name: Every tool by its name.
        attached: For each guideline's id, its tools.
        always: The tools that are always available.
        grants: For each tool's name, the ids of the guidelines that it is attached to.

    Raises:
        Misfit: A tool cannot be imported or used, or two different ones have one name.
    """

    def __init__(
        self, guidelines: Sequence[Guideline], always: Sequence[ToolLike], folder: Path | None
    ) -> None:
        self._folder = folder
        self._made: dict[Callable[..., Any], BaseTool] = {}
        self.by_name: dict[str, BaseTool] = {}
        found = {
            entry.place: self._find(entry) for entry in _entries(guidelines, always) if not _is_name(entry)
        }
        for entry in _entries(guidelines, always):
            if _is_name(entry):
                found[entry.place] = self._look_up(entry)
        self.attached = {
            guideline.id: _distinct(
                found["guidelines", index, "tools", position] for position in range(len(guideline.tools))
            )
            for index, guideline in enumerate(guidelines)
        }
        self.always = _distinct(found["tools", position] for position in range(len(always)))
        self.grants = {
            name: tuple(id for id, tools in self.attached.items() if tool in tools)
            for name, tool in self.by_name.items()
        }

    def _find(self, entry: _Entry) -> BaseTool:
        try:
            value = load(entry.value, self._folder) if isinstance(entry.value, str) else entry.value
            tool = self._tool_of(value, entry.value)
        except Misfit as misfit:
            raise entry.wrong(misfit) from misfit.__cause__
        if self.by_name.setdefault(tool.name, tool) is not tool:
            raise entry.wrong(
                Misfit(
                    f'holds a second tool called {tool.name!r}; give one of the two another name: @tool("…")'
                )
            )
        return tool

    def _tool_of(self, value: object, written: ToolLike) -> BaseTool:
        if isinstance(value, BaseTool):
            return as_tool(value)
        if not inspect.isroutine(value):
            raise Misfit(
                f"names {written!r}, which is {described(value)}; name a function or a LangChain tool"
            )
        if value not in self._made:
            self._made[value] = as_tool(value)
        return self._made[value]

    def _look_up(self, entry: _Entry) -> BaseTool:
        name = str(entry.value)
        if name not in self.by_name:
            hint = suggestion(name, self.by_name)
            module, dot, function = name.rpartition(".")
            if not hint:
                hint = f"; to name a function write {module}:{function}" if dot else f"; write module:{name}"
            raise entry.wrong(
                Misfit(f"names {name!r}, which is no tool that the agent names elsewhere{hint}")
            )
        return self.by_name[name]


def _entries(guidelines: Sequence[Guideline], always: Sequence[ToolLike]) -> Iterator[_Entry]:
    for index, guideline in enumerate(guidelines):
        for position, value in enumerate(guideline.tools):
            yield _Entry(f"guideline {guideline.id}", value, ("guidelines", index, "tools", position))
    for position, value in enumerate(always):
        yield _Entry("the agent", value, ("tools", position))


def _is_name(entry: _Entry) -> bool:
    return isinstance(entry.value, str) and ":" not in entry.value


def _distinct(tools: Iterable[BaseTool]) -> tuple[BaseTool, ...]:
    return tuple({tool.name: tool for tool in tools}.values())
