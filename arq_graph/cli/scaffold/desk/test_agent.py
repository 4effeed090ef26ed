"""Tests of the agent without a model: each script says what the model would answer in a turn."""

from __future__ import annotations

from pathlib import Path

from arq_graph import Agent
from arq_graph.testing import Chat, Script, assert_reached, scripted_app

FOLDER = Path(__file__).parent
AGENT = Agent.from_yaml(FOLDER / "agent.yaml")


def test_a_late_order_is_looked_up() -> None:
    """The guideline for late orders becomes active only once the tool has said that the order is late."""
    script = Script(
        active=["look-up"],
        active_after_tools=["late"],
        calls=[("get_order", {"order_id": "ORD-1001"})],
        reply="It is delayed. I am sorry. I can offer you a 10% discount.",
    )
    chat = Chat(scripted_app(AGENT, [script]))
    chat.say("Where is my order ORD-1001?")
    assert_reached(FOLDER / "milestones.yaml", chat)


def test_an_order_is_cancelled_only_after_the_customer_agrees() -> None:
    """Code asks, and code reads the answer: no model can skip this."""
    wish = Script(active=["cancel"], calls=[("cancel_order", {"order_id": "ORD-1002"})])
    chat = Chat(scripted_app(AGENT, [wish, Script(reply="It is cancelled.")]))
    assert chat.say("Please cancel my order ORD-1002.").endswith("Reply yes to go ahead.")
    assert chat.calls == []
    chat.say("Yes")
    assert_reached(FOLDER / "milestones.yaml", chat, "cancel_order")
