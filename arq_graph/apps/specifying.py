"""What an app without guidelines works with: a specification that has none, or a list of tools."""

from __future__ import annotations

from collections.abc import Sequence

from arq_graph.agent.spec import Agent
from arq_graph.agent.tools import ToolLike
from arq_graph.errors import InputError


def without_guidelines(
    agent: Agent | Sequence[ToolLike],
    profile: str | None,
    name: str | None,
    *,
    otherwise: str,
    instead: str,
) -> Agent:
    """An agent without guidelines, made of its tools where it is given as these.

    Args:
        agent: A specification, or its tools alone.
        profile: Who the agent is; only where `agent` is its tools.
        name: Its name, where `agent` is its tools.
        otherwise: The profile where none is given.
        instead: What does not match guidelines, and what to use for an agent that has some.

    Raises:
        InputError: The agent has guidelines, is none, or has a profile given twice.
    """
    if not isinstance(agent, Agent):
        if isinstance(agent, str) or not isinstance(agent, Sequence):
            raise InputError(
                f"agent is a {type(agent).__name__}: give an Agent without guidelines, or a list of tools"
            )
        return Agent(name or "Agent", otherwise if profile is None else profile, tools=agent)
    if profile is not None:
        raise InputError("profile belongs to a list of tools: an Agent has its own")
    if agent.guidelines:
        raise InputError(f"agent {agent.name!r} has guidelines, which {instead}")
    return agent
