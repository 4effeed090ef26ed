"""The agent that the app's tests talk to: an order desk with two tools."""

from typing import Any

from arq_graph import Agent, Guideline
from tests.order_tools import get_order


def give_discount(order_id: str, percent: int = 5) -> str:
    """Give a discount on an order.

    Args:
        order_id: The order's number.
        percent: How much.
    """
    return f"{percent}% off {order_id}"


def make_desk(**fields: Any) -> Agent:
    guidelines = [
        Guideline("the customer asks about an order", "look it up and tell its status", tools=[get_order]),
        Guideline("the order is late", "apologise and give a discount", tools=[give_discount]),
        Guideline("the customer is angry", "calm them down", sensitive_to_tools=False),
        Guideline(None, "be polite", continuous=True),
    ]
    return Agent("Desk", "You help with orders.", **{"guidelines": guidelines, **fields})


def make_input(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def make_thread(name: str = "1") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def get_active(state: dict[str, Any]) -> list[str]:
    return [match["guideline"] for match in state["guideline_matches"] if match["active"]]


def get_types(state: dict[str, Any]) -> list[str]:
    return [message.type for message in state["messages"]]


def judge_late(prompt: Any) -> int:
    """A judgement: the order is late, as soon as a tool says so."""
    return 9 if any("is late" in line.get("result", "") for line in prompt.turn) else 2
