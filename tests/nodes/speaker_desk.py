"""The desk that the speaker's tests talk to, and one move of a speaker."""

from __future__ import annotations

from functools import cache
from itertools import count
from typing import Literal

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from arq_graph import Agent, ScriptedChatModel
from arq_graph.nodes.speaking.speaker import Speaker
from tests.brain import asked_by
from tests.running import Runs
from tests.speaking import speaker


def get_order(order_id: str) -> str:
    """Look up an order.

    Args:
        order_id: The order's number.
    """
    return f"{order_id} is late"


def cancel(order_id: str, reason: str = "none") -> str:
    """Cancel an order.

    Args:
        order_id: The order's number.
        reason: Why.
    """
    return f"cancelled {order_id} {reason}"


def find_table(guests: int, area: Literal["north", "south", "any"], food: str) -> str:
    """Find a table.

    Args:
        guests: How many.
        area: Which part of the town.
        food: The cuisine.
    """
    return f"{guests} {area} {food}"


DESK = Agent(
    "Desk", "You help with orders.", tools=[get_order, cancel, find_table], confirm={"cancel": "customer"}
)
A1 = {"order_id": "A-1"}


def customer(text, id="h1"):
    return HumanMessage(text, id=id)


def agent(text, id="a1", **speech):
    return AIMessage(text, id=id, response_metadata={"speech": speech} if speech else {})


def ran(text="it is late", *, tool="get_order", args=A1, status="success", id="c1"):
    call = AIMessage("", tool_calls=[{"name": tool, "args": args, "id": id, "type": "tool_call"}])
    return [call, ToolMessage(text, tool_call_id=id, name=tool, status=status)]


def move(script, *messages, runs=None, desk=DESK, state=None, **options):
    """One run of a speaker: its update, and what its model was asked."""
    plain = desk is DESK and not options
    node, model = _at_desk() if plain else _speaker(desk, options)
    _SCRIPT[model.name] = speaker(script)._answer
    before = len(model.calls)
    update = (runs or Runs(None)).invoke(node, {"messages": list(messages), **(state or {})})
    return update, asked_by(model, "speaker")[before:]


_SCRIPT = {}
_NUMBERS = count()


@cache
def _at_desk():
    """The speaker that most tests have, made once: its blueprint takes longer to make than to answer."""
    return _speaker(DESK, {})


def _speaker(desk, options):
    name = f"script {next(_NUMBERS)}"
    model = ScriptedChatModel(lambda call: _SCRIPT[name](call), name=name)
    return Speaker(model, desk, **options), model


def called(update):
    """The calls of an update."""
    return [(c["name"], c["args"]) for m in update["messages"] for c in getattr(m, "tool_calls", ())]


def said(update):
    """What an update says to the customer."""
    return "".join(message.text for message in update["messages"])


def kinds(update):
    """What is kept about calls."""
    return [(insight.kind, insight.tool) for insight in update["tool_insights"]]
