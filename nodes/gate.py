"""Which tools may be called: those that an active guideline grants, and those that are always available."""

from __future__ import annotations

import warnings

from arq_graph.agent.spec import Agent
from arq_graph.nodes.channels import Reader
from arq_graph.nodes.turns import matches_of_turn


def active_guidelines(agent: Agent, state: Reader, turn: str) -> dict[str, int]:
    """Ids of the guidelines active in this turn, with their scores.

    Where guidelines were not matched in this turn, only those that are always true count, with a warning.
    """
    matches = matches_of_turn(state, turn)
    if matches is None:
        if any(guideline.condition is not None for guideline in agent.guidelines):
            warnings.warn(
                "guidelines were not matched in this turn: only those without a condition apply. "
                "Put a GuidelineMatcher before this node",
                stacklevel=3,
            )
        return {guideline.id: 10 for guideline in agent.guidelines if guideline.condition is None}
    known = {guideline.id for guideline in agent.guidelines}
    return {
        match.guideline: match.score or 10 for match in matches if match.active and match.guideline in known
    }


def callable_tools(agent: Agent, state: Reader, turn: str) -> frozenset[str]:
    """Names of the tools that may be called now."""
    active = active_guidelines(agent, state, turn)
    return frozenset(
        name
        for name in agent.toolbox
        if name in agent.always_available or any(id in active for id in agent.grants[name])
    )
