"""The desk whose plans the planners' tests make, and one step of a planner."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage

from arq_graph import Agent, Plan, PlannedCall, PlanStep
from arq_graph.nodes import PreActPlanner, ReActPlanner
from tests.brain import asked_by
from tests.nodes.order_tools import A1, cancel, get_order, ran
from tests.planning import planner
from tests.running import Runs

ASKED = HumanMessage("Where is A-1?", id="h1")
BOTH = pytest.mark.parametrize("node", [PreActPlanner, ReActPlanner])
"""Both planners, for what they have in common."""


def list_orders() -> str:
    """List all orders."""
    return "A-1"


DESK = Agent("Desk", "You help with orders.", tools=[get_order, cancel, list_orders])
PLAN = Plan(
    turn="h1",
    steps=(
        PlanStep(description="call get_order", reason="It tells.", tool="get_order"),
        PlanStep(description="answer the customer", reason="Done."),
    ),
    call=PlannedCall(tool="get_order", arguments=A1, expected="where it is"),
)


FAILED = [ASKED, *ran("ConnectionError: no answer", status="error")]


def plan(script, *, runs=None, messages=(ASKED,), node=PreActPlanner, agent=DESK, state=None, **options):
    """One step of a planner: its update, and what its model was asked."""
    model = planner(script)
    before = {"messages": list(messages), **(state or {})}
    update = (runs or Runs(None)).invoke(node(model, agent, **options), before)
    return update, asked_by(model, "planner")


def text_of(update):
    """What an update says to the customer."""
    return "".join(message.content for message in update.get("messages", ()))
