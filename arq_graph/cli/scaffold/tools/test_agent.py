"""Tests of the agent without a model: each script says what the model would answer in a turn."""

from __future__ import annotations

from pathlib import Path

from arq_graph import Agent
from arq_graph.testing import Chat, Script, scripted_app

AGENT = Agent.from_yaml(Path(__file__).with_name("agent.yaml"))


def test_the_agent_answers() -> None:
    """Add your own: `calls=[("tool", {"argument": "value"})]` makes the model want a call."""
    chat = Chat(scripted_app(AGENT, [Script(reply="Hello! How can I help you?")]))
    assert chat.say("Hello!") == "Hello! How can I help you?"
