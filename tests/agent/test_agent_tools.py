"""Tools: what can be one, under which name, and which guidelines grant it."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool, Tool, tool

from arq_graph import Agent, Guideline
from arq_graph.errors import SpecError


class Shelf:
    """A class that no JSON schema describes."""

    def search(self, title: str) -> str:
        """Search the shelf."""
        return title


def get_order(order_id: str, verbose: bool = False) -> str:
    """Look an order up.

    Args:
        order_id: The number on the receipt.
        verbose: Whether to tell everything.
    """
    return f"order {order_id}"


async def cancel_order(order_id: str) -> str:
    """Cancel an order."""
    return f"cancelled {order_id}"


def untyped(order_id) -> str:  # type: ignore[no-untyped-def]
    """Look an order up."""
    return str(order_id)


def undocumented(order_id: str) -> str:
    return order_id


def yields(day: str):  # type: ignore[no-untyped-def]
    """List the orders of a day."""
    yield day


def hidden(_order_id: str) -> str:
    """Look an order up."""
    return _order_id


def opaque(shelf: Shelf) -> str:
    """Look a shelf up."""
    return str(shelf)


@tool("get_order")
def another_get_order(order_id: str) -> str:
    """Look an order up elsewhere."""
    return order_id


@tool("json")
def named_like_a_method(order_id: str) -> str:
    """Look an order up."""
    return order_id


def agent(*guidelines: Guideline, **fields: Any) -> Agent:
    return Agent("Order desk", "A friendly clerk.", guidelines, **fields)


def only_tool(made: Agent) -> BaseTool:
    (found,) = made.toolbox.values()
    return found


def test_a_typed_function_becomes_a_tool_with_described_arguments() -> None:
    made = only_tool(agent(tools=[get_order]))
    assert made.description == "Look an order up."
    assert made.args["order_id"]["description"] == "The number on the receipt."
    assert made.args["verbose"]["default"] is False
    assert made.invoke({"order_id": "17"}) == "order 17"


async def test_an_async_function_stays_async_only() -> None:
    made = only_tool(agent(tools=[cancel_order]))
    assert isinstance(made, StructuredTool)
    assert made.func is None
    assert await made.ainvoke({"order_id": "17"}) == "cancelled 17"


def test_a_tool_with_a_plain_json_schema_is_taken() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    remote = StructuredTool(name="remote", description="Search.", args_schema=schema, func=lambda q: q)
    assert only_tool(agent(tools=[remote])) is remote


def test_a_method_becomes_a_tool() -> None:
    shelf = Shelf()
    made = agent(Guideline("a", "b", tools=[shelf.search]), tools=[shelf.search])
    assert only_tool(made).invoke({"title": "Emma"}) == "Emma"


def test_one_function_on_two_guidelines_is_one_tool_and_a_bare_name_refers_to_it() -> None:
    made = agent(
        Guideline("a", "b", tools=["get_order"]),
        Guideline("c", "d", tools=[get_order, cancel_order]),
        Guideline("e", "f", tools=[get_order]),
    )
    assert made.grants == {"get_order": ("G1", "G2", "G3"), "cancel_order": ("G2",)}
    assert made.guidelines[0].tools == (made.toolbox["get_order"],)
    assert not made.always_available


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (untyped, "its argument order_id must have a type hint, .* write `order_id: str`"),
        (undocumented, "undocumented, which cannot become a tool: Function must have a docstring"),
        (len, "argument obj must .* be given by it"),
        (hidden, "argument _order_id must have .* a name that begins with a letter"),
        (opaque, "'opaque', whose arguments cannot be described"),
        (yields, "yields its results one by one; return them together"),
        (functools.partial(get_order, "17"), "but is functools.partial"),
        ({"orders": "get_order"}, "but is {.orders.: .get_order.}"),
        (Tool(name="t", func=str, description="d"), "takes one nameless text"),
        (named_like_a_method, "called 'json', but names are"),
        ("string:digits", "names 'string:digits', which is '0123456789'"),
        ("orders.get", "no tool that the agent names elsewhere; to name a function write module:function"),
        ("shop/orders.py:get", "without spaces, slashes and brackets"),
    ],
)
def test_what_cannot_be_a_tool_is_told_with_what_to_do(value: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        agent(Guideline("a", "b", tools=[value]))


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(SpecError, match="holds a second tool called 'get_order'"):
        agent(Guideline("a", "b", tools=[get_order]), tools=[another_get_order])
