"""Tools as an agent stores them: LangChain tools, some of them made from typed functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.tools import BaseTool, StructuredTool, Tool

from arq_graph.errors import SpecError

ToolLike = BaseTool | Callable[..., Any] | str

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")

# By function, its description when the tool was made, and the tool. Agents that are read from one file share their
# functions, and worlds of one class their methods, so that each schema is made once.
_TOOLS: WeakKeyDictionary[Callable[..., Any], tuple[object, StructuredTool]] = WeakKeyDictionary()


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
    if not _NAME.fullmatch(name) or is_reserved_name(name):
        raise SpecError(
            f"is a tool called {name!r}, but names are 1 to 64 of the characters A-Z a-z 0-9 _ . - and none that"
            ' answers use for something else; give it another with @tool("name")'
        )
    try:
        tool = value if isinstance(value, BaseTool) else _make_from_function(value)
        get_argument_schema(tool)
    except Exception as error:
        problem = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise SpecError(
            f"is {name!r}, which cannot be a tool: {problem}. A tool has a docstring, and named, typed arguments: text,"
            " numbers, truth values, lists, enums, Pydantic models or dataclasses"
        ) from error
    return tool


def get_argument_schema(tool: BaseTool) -> dict[str, Any]:
    """Return the JSON Schema of the arguments that a model provides, without injected arguments."""
    if isinstance(tool, Tool) and tool.args_schema is None:
        raise TypeError("it takes one nameless text")
    schema: Any = tool.tool_call_schema
    if not isinstance(schema, dict):
        schema = schema.model_json_schema()
    json_schema: dict[str, Any] = schema
    return json_schema


def find_schema_errors(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Validate arguments by a JSON Schema: yield each invalid argument's name ("" for all of them) and the problem."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    for name in schema.get("required") or ():
        if name not in arguments:
            yield name, "it is required"
    validator_class = validator_for(schema, default=Draft202012Validator)
    checker = validator_class.FORMAT_CHECKER
    try:
        # With an empty registry, a reference to a web address is never fetched.
        validator = validator_class(schema, registry=Registry(), format_checker=checker)
        for error in validator.iter_errors(arguments):
            if error.absolute_path or error.validator != "required":
                yield str(next(iter(error.absolute_path), "")), error.message
    except Exception as error:  # a reference that leads nowhere, an unknown type, a broken pattern
        yield "", f"the tool's own schema cannot be used: {type(error).__name__}: {error}"


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
