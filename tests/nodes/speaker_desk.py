"""The desk that the speaker's tests talk to, and one move of a speaker."""

from __future__ import annotations

from functools import cache
from itertools import count
from typing import Literal

from langchain_core.messages import AIMessage, HumanMessage

from arq_graph import Agent, ScriptedChatModel
from arq_graph.nodes.speaking.speaker import Speaker
from tests.brain import asked_by
from tests.nodes.order_tools import cancel, get_order
from tests.running import Runs
from tests.speaking import speaker


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


def customer(text, id="h1"):
    return HumanMessage(text, id=id)


def agent(text, id="a1", **speech):
    return AIMessage(text, id=id, response_metadata={"speech": speech} if speech else {})


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


def said(update):
    """What an update says to the customer."""
    return "".join(message.text for message in update["messages"])


def kinds(update):
    """What is kept about calls."""
    return [(insight.kind, insight.tool) for insight in update["tool_insights"]]
