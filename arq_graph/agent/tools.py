"""Tools as an agent holds them: each LangChain tool or typed function is a tool with a name of its own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from langchain_core.tools import BaseTool, StructuredTool, Tool
from pydantic import BaseModel

from arq_graph.agent.complaints import described
from arq_graph.agent.modules import check_reference, load
from arq_graph.agent.spelling import suggestion
from arq_graph.errors import SpecError

if TYPE_CHECKING:
    from arq_graph.agent.parts import Guideline

ToolLike = BaseTool | Callable[..., Any] | str
Place = tuple[str | int, ...]

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def tool_like(value: object) -> ToolLike:
    """Read what can become a tool: a LangChain tool, a function, "module:function", or a tool's name.

    Raises:
        SpecError: It is none; the message continues a sentence that begins with where it stands.
    """
    if isinstance(value, BaseTool):
        return value
    if isinstance(value, str):
        name = value.strip()
        if ":" in name or not _NAME.fullmatch(name):
            check_reference(name)
        return name
    if inspect.isroutine(value):
        return value
    hint = ""
    if isinstance(value, type) and issubclass(value, BaseTool):
        hint = f"; make one with {value.__name__}(…)"
    elif isinstance(value, Mapping) and len(value) == 1:
        module, function = next(iter(value.items()))
        hint = f"; to name a function leave out the space after the colon: {module}:{function}"
    elif value is None:
        hint = "; name the function itself, not what it returns"
    raise SpecError(
        f'must be a LangChain tool, a function or "module:function", but is {described(value)}{hint}'
    )


def as_tool(value: object) -> BaseTool:
    """Make a LangChain tool of a typed function with a docstring; an async one stays async-only.

    The descriptions of the arguments are read from a Google-style docstring or from `Annotated[type, "…"]`.

    Args:
        value: The function; a LangChain tool is checked and returned as it is.

    Raises:
        SpecError: It cannot be called by a model as it is; the message says what to add.
    """
    from arq_graph.agent.parts import is_taken

    if not isinstance(value, BaseTool) and not inspect.isroutine(value):
        raise SpecError(f"is {described(value)}; give a function or a LangChain tool itself")
    tool = value if isinstance(value, BaseTool) else _from_function(value)
    if not _NAME.fullmatch(tool.name):
        raise SpecError(
            f"is a tool called {tool.name!r}, but a model can only call names of 1 to 64 of the characters"
            ' A-Z a-z 0-9 _ . -; give it another with @tool("name")'
        )
    if is_taken(tool.name):
        raise SpecError(
            f"is a tool called {tool.name!r}, a word that answers use for something else; give it another name"
            ' with @tool("name")'
        )
    if isinstance(tool, Tool) and tool.args_schema is None:
        raise SpecError(
            f"is {tool.name!r}, a LangChain `Tool` that takes one nameless text; write a function whose"
            " arguments have names and types"
        )
    try:
        argument_schema(tool)
    except Exception as error:
        raise SpecError(
            f"is {tool.name!r}, whose arguments cannot be described to a model ({_first_line(error)}); use"
            " text, numbers, truth values, lists, enums, Pydantic models or dataclasses"
        ) from error
    return tool


def argument_schema(tool: BaseTool) -> dict[str, Any]:
    """The JSON Schema of the arguments that a model gives; injected ones are not among them."""
    schema: Any = tool.tool_call_schema
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        schema = schema.model_json_schema()
    return schema if isinstance(schema, dict) else {"properties": tool.args}


def _from_function(function: Callable[..., Any]) -> BaseTool:
    name = getattr(function, "__name__", "")
    called = f"is the function {name}"
    if name == "<lambda>":
        raise SpecError("is a lambda; write a function with `def`, type hints and a docstring")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise SpecError(f"{called}, which yields its results one by one; return them together, as a list")
    if not inspect.getdoc(function):
        raise SpecError(
            f"{called}, which has no docstring; say in one what it does: the model reads it to decide"
            " when to call it"
        )
    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters.values()
    except (NameError, TypeError, ValueError, AttributeError) as error:
        raise SpecError(
            f"{called}, whose type hints cannot be read ({error}); import the types where the function is"
            " defined, outside `if TYPE_CHECKING:`"
        ) from error
    if untyped := [p.name for p in parameters if p.name not in hints and p.kind not in _VARIADIC]:
        raise SpecError(
            f"{called}, whose arguments lack a type hint: {', '.join(untyped)}; write `{untyped[0]}: str`"
        )
    for parameter in parameters:
        if parameter.kind in _VARIADIC or parameter.kind is parameter.POSITIONAL_ONLY:
            raise SpecError(
                f"{called}, whose argument {parameter.name} cannot be given by name, as a model gives"
                " every argument"
            )
        if parameter.name.startswith("_"):
            raise SpecError(
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
        raise SpecError(f"{called}, which cannot become a tool: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__


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
        problems: What cannot be imported or used, with its place in the agent.
    """

    def __init__(
        self, guidelines: Sequence[Guideline], always: Sequence[ToolLike], folder: Path | None
    ) -> None:
        self._folder = folder
        self._made: dict[Callable[..., Any], BaseTool] = {}
        self.by_name: dict[str, BaseTool] = {}
        self.problems: list[tuple[Place, SpecError]] = []
        named = dict(_named(guidelines, always))
        found = {place: self._find(value, place) for place, value in named.items() if not _is_name(value)}
        found |= {place: self._look_up(value, place) for place, value in named.items() if _is_name(value)}

        def standing(*under: str | int) -> tuple[BaseTool, ...]:
            here = (tool for place in named if place[:-1] == under and (tool := found[place]))
            return tuple({tool.name: tool for tool in here}.values())

        self.always = standing("tools")
        self.attached = {each.id: standing("guidelines", at, "tools") for at, each in enumerate(guidelines)}
        self.grants = {
            name: tuple(id for id, tools in self.attached.items() if tool in tools)
            for name, tool in self.by_name.items()
        }

    def _find(self, written: ToolLike, place: Place) -> BaseTool | None:
        try:
            value = load(written, self._folder) if isinstance(written, str) else written
            if isinstance(written, str) and not (isinstance(value, BaseTool) or inspect.isroutine(value)):
                said = f"names {written!r}, which is {described(value)}; name a function or a LangChain tool"
                self.problems.append((place, SpecError(said)))
                return None
            tool = self._tool(value)
        except SpecError as error:
            self.problems.append((place, error))
            return None
        if self.by_name.setdefault(tool.name, tool) is not tool:
            said = f'holds a second tool called {tool.name!r}; give one of the two another name: @tool("…")'
            self.problems.append((place, SpecError(said)))
        return tool

    def _tool(self, value: object) -> BaseTool:
        """The tool that is made of a value; one function is one tool, wherever it stands."""
        if not inspect.isroutine(value):
            return as_tool(value)
        if value not in self._made:
            self._made[value] = as_tool(value)
        return self._made[value]

    def _look_up(self, written: ToolLike, place: Place) -> BaseTool | None:
        name = str(written)
        if name not in self.by_name:
            module, dot, function = name.rpartition(".")
            hint = suggestion(name, self.by_name)
            if not hint:
                hint = f"; to name a function write {module}:{function}" if dot else f"; write module:{name}"
            said = f"names {name!r}, which is no tool that the agent names elsewhere{hint}"
            self.problems.append((place, SpecError(said)))
        return self.by_name.get(name)


def _named(guidelines: Sequence[Guideline], always: Iterable[ToolLike]) -> Iterator[tuple[Place, ToolLike]]:
    for index, guideline in enumerate(guidelines):
        for position, value in enumerate(guideline.tools):
            yield ("guidelines", index, "tools", position), value
    for position, value in enumerate(always):
        yield ("tools", position), value


def _is_name(value: ToolLike) -> bool:
    return isinstance(value, str) and ":" not in value
