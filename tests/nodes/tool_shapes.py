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


class Address(BaseModel):
    """Where to."""

    street: str
    zip: str | None = None
    default: bool = Field(False, description="Whether it is the usual one.")


class Line(BaseModel):
    product: str
    count: int = Field(1, ge=1)


class Category(BaseModel):
    name: str
    parts: list[Category] = []


@dataclass
class Point:
    x: float
    y: float


@tool
def plain(order_id: str, days: int, weight: float, fast: bool) -> str:
    """Plain types."""
    return repr((order_id, days, weight, fast))


@tool
def structured(category: Category, point: Point, several: set[int]) -> str:
    """A model that holds itself, a dataclass and a set."""
    return repr((category.name, category.parts[0].name, point, several))


@tool
def nested(to: Address, lines: list[Line]) -> str:
    """Nested models."""
    return repr((to.model_dump(), [line.model_dump() for line in lines]))


@tool
def choices(size: Size, speed: Literal["slow", "fast"], level: Literal[1, 2, None]) -> str:
    """Enumerations."""
    return repr((size, speed, level))


@tool
def optional(note: str | None, extra: int | None = None, tags: list[str] = ["a"]) -> str:  # noqa: B006
    """Optional ones."""
    return repr((note, extra, tags))


@tool
def dated(on: date, price: Decimal, either: int | str) -> str:
    """Dates, decimals, unions."""
    return repr((on, price, either))


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


def mcp(name: str, schema: dict[str, Any]) -> StructuredTool:
    """A tool that comes with a JSON schema, as MCP servers give it."""

    def run(**arguments: Any) -> str:
        return repr(arguments)

    return StructuredTool(name=name, description="From a server.", args_schema=schema, func=run)


SERVED = mcp(
    "served",
    {
        "type": "object",
        "properties": {
            "order-id": {"type": "string", "pattern": "^A-", "description": "The order."},
            "Mode": {"enum": ["a", "b"], "default": "a"},
            "filter": {"$ref": "#/$defs/Filter"},
            "where": {"type": ["string", "null"]},
            "untyped": {},
            "whatever": True,
        },
        "required": ["order-id"],
        "$defs": {"Filter": {"type": "object", "properties": {"late": {"type": "boolean"}}}},
    },
)
OLD_DRAFT = mcp(
    "old_draft",
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"unit": {"$ref": "#/definitions/Unit"}},
        "definitions": {
            "Unit": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
        },
        "additionalProperties": False,
    },
)
CLASH = mcp(
    "clash", {"type": "object", "properties": {"argument_2": {"type": "string"}, "B": {"type": "string"}}}
)

NESTED = {"to": {"street": "Main", "zip": None, "default": True}, "lines": [{"product": "tea", "count": 2}]}
TREE = {"name": "a", "parts": [{"name": "b", "parts": []}]}
STRUCTURED = {"category": TREE, "point": {"x": 1, "y": 2}, "several": [1, 2]}
DATED = "(datetime.date(2026, 3, 1), Decimal('1.10'), 'x')"
OPEN = "({'a': [1, None]}, {'b': 2}, (1, 'x'))"
SERVED_WITH = {
    "order-id": "A-1",
    "Mode": "b",
    "filter": {"late": True},
    "where": None,
    "untyped": [1],
    "whatever": 2,
}
CALLS: list[tuple[Any, dict[str, Any], str]] = [
    (plain, {"order_id": "A-1", "days": 2, "weight": 1.5, "fast": True}, "('A-1', 2, 1.5, True)"),
    (nested, NESTED, f"({NESTED['to']}, {NESTED['lines']})"),
    (choices, {"size": "large", "speed": "fast", "level": None}, "(<Size.LARGE: 'large'>, 'fast', None)"),
    (optional, {"note": "x", "extra": 1, "tags": []}, "('x', 1, [])"),
    (dated, {"on": "2026-03-01", "price": "1.10", "either": "x"}, DATED),
    (open_ended, {"data": {"a": [1, None]}, "anything": {"b": 2}, "pair": [1, "x"]}, OPEN),
    (structured, STRUCTURED, "('a', 'b', Point(x=1.0, y=2.0), {1, 2})"),
    (no_arguments, {}, "done"),
    (awkward, {"copy": "a", "schema": "b", "argument_1": 3, "json": True}, "('a', 'b', 3, True)"),
    (final_answer, {"last_customer_message": "Hi"}, "Hi"),
    (last_customer_message, {"number": 1}, "1"),
    (dashed, {"order": "A-1"}, "A-1"),
    (injected, {"order": "A-1"}, "('A-1', 2, True, True, 'kept')"),
    (SERVED, SERVED_WITH, repr(SERVED_WITH)),
    (CLASH, {"argument_2": "x", "B": "y"}, "{'argument_2': 'x', 'B': 'y'}"),
    (OLD_DRAFT, {"unit": {"code": "kg"}}, "{'unit': {'code': 'kg'}}"),
]
"""A tool, the arguments it is called with, and what it should say that it received."""
