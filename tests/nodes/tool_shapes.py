"""Tools of every shape that an argument schema can have, each with a call and what it should receive."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

from langchain_core.tools import InjectedToolArg, InjectedToolCallId, StructuredTool, tool
from langgraph.prebuilt import InjectedState, InjectedStore
from langgraph.store.base import BaseStore
from pydantic import BaseModel, Field


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Line(BaseModel):
    """What is ordered."""

    product: str
    count: int = Field(1, ge=1)
    default: bool = Field(False, description="Whether it is the usual one.")


class Category(BaseModel):
    name: str
    parts: list[Category] = []


@dataclass
class Point:
    x: float
    y: float


@tool
def scalars(days: int, weight: float, fast: bool, on: date, price: Decimal, either: int | str) -> str:
    """Single values."""
    return repr((days, weight, fast, on, price, either))


@tool
def choices(
    size: Size,
    speed: Literal["slow", "fast"],
    level: Literal[1, 2, None],
    tags: list[str] = ["a"],  # noqa: B006
) -> str:
    """Enumerations."""
    return repr((size, speed, level, tags))


@tool
def nested(lines: list[Line], category: Category, point: Point, several: set[int]) -> str:
    """Models in models, one that holds itself, a dataclass and a set."""
    return repr(([line.model_dump() for line in lines], category.parts[0].name, point, several))


@tool
def open_ended(data: dict[str, Any], anything: Any, pair: tuple[int, str]) -> str:
    """What the strict subset cannot say."""
    return repr((data, anything, pair))


@tool
def no_arguments() -> str:
    """Nothing to give."""
    return "done"


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # LangChain makes a model whose fields shadow methods

    @tool
    def awkward(copy: str, schema: str, argument_1: int, json: bool) -> str:
        """Names that a model class has already."""
        return repr((copy, schema, argument_1, json))


@tool
def final_answer(last_customer_message: str) -> str:
    """A name that a planner's prompt has already."""
    return last_customer_message


@tool
def last_customer_message(number: int) -> str:
    """A name that the tool caller's prompt has already."""
    return str(number)


@tool("get-order.v2")
def dashed(order: str) -> str:
    """A name with a hyphen and a dot."""
    return order


@tool
def injected(
    order: str,
    state: Annotated[dict, InjectedState],
    call_id: Annotated[str, InjectedToolCallId],
    store: Annotated[BaseStore, InjectedStore()],
    secret: Annotated[str, InjectedToolArg] = "kept",
) -> str:
    """Arguments that the runtime gives."""
    return repr((order, len(state["messages"]), call_id.startswith("call_"), store is not None, secret))


def mcp(name: str, properties: dict[str, Any], **further: Any) -> StructuredTool:
    """A tool that comes with a JSON schema, as MCP servers give it."""

    def run(**arguments: Any) -> str:
        return repr(arguments)

    schema = {"type": "object", "properties": properties, **further}
    return StructuredTool(name=name, description="From a server.", args_schema=schema, func=run)


TEXT = {"type": "string"}
SERVED = mcp(
    "served",
    {
        "order-id": {"type": "string", "pattern": "^A-", "description": "The order."},
        "Mode": {"enum": ["a", "b"], "default": "a"},
        "filter": {"$ref": "#/$defs/Filter"},
        "where": {"type": ["string", "null"]},
        "free": {},
        "any": True,
    },
    required=["order-id"],
    **{"$defs": {"Filter": {"type": "object", "properties": {"late": {"type": "boolean"}}}}},
)
OLD_DRAFT = mcp(
    "old_draft",
    {"unit": {"$ref": "#/definitions/Unit"}},
    definitions={"Unit": {"type": "object", "properties": {"code": TEXT}, "required": ["code"]}},
    additionalProperties=False,
    **{"$schema": "http://json-schema.org/draft-07/schema#"},
)
CLASH = mcp("clash", {"argument_2": TEXT, "B": TEXT})

SCALARS = {"days": 2, "weight": 1.5, "fast": True, "on": "2026-03-01", "price": "1.10", "either": "x"}
LINES = [{"product": "tea", "count": 2, "default": True}]
CHOSEN = {"size": "large", "speed": "fast", "level": None, "tags": []}
TREE = {"name": "a", "parts": [{"name": "b", "parts": []}]}
NESTED = {"lines": LINES, "category": TREE, "point": {"x": 1, "y": 2}, "several": [1, 2]}
OPEN = {"data": {"a": [1, None]}, "anything": {"b": 2}, "pair": [1, "x"]}
GIVEN = {"order-id": "A-1", "Mode": "b", "filter": {"late": True}, "where": None, "free": [1], "any": 2}
CALLS: list[tuple[Any, dict[str, Any], str]] = [
    (scalars, SCALARS, "(2, 1.5, True, datetime.date(2026, 3, 1), Decimal('1.10'), 'x')"),
    (nested, NESTED, f"({LINES}, 'b', Point(x=1.0, y=2.0), {{1, 2}})"),
    (choices, CHOSEN, "(<Size.LARGE: 'large'>, 'fast', None, [])"),
    (open_ended, OPEN, "({'a': [1, None]}, {'b': 2}, (1, 'x'))"),
    (no_arguments, {}, "done"),
    (awkward, {"copy": "a", "schema": "b", "argument_1": 3, "json": True}, "('a', 'b', 3, True)"),
    (final_answer, {"last_customer_message": "Hi"}, "Hi"),
    (last_customer_message, {"number": 1}, "1"),
    (dashed, {"order": "A-1"}, "A-1"),
    (injected, {"order": "A-1"}, "('A-1', 2, True, True, 'kept')"),
    (SERVED, GIVEN, repr(GIVEN)),
    (CLASH, {"argument_2": "x", "B": "y"}, "{'argument_2': 'x', 'B': 'y'}"),
    (OLD_DRAFT, {"unit": {"code": "kg"}}, "{'unit': {'code': 'kg'}}"),
]
"""A tool, the arguments it is called with, and what it should say that it received."""
