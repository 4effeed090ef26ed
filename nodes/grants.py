"""The guidelines that are active in a turn, and the tools that they grant."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from arq_graph.agent.guideline import Guideline
from arq_graph.agent.spec import Agent
from arq_graph.nodes.judgements import MAX_SCORE
from arq_graph.nodes.state_view import StateView, view_state


def get_active_guidelines(agent: Agent, state: Any, *, messages_key: str = "messages") -> list[Guideline]:
    """Return the guidelines that are active in the current turn of a state, for a prompt or a router of your own.

    Args:
        agent: The specification.
        state: A graph's state, as a node gets it.
        messages_key: Channel of the messages.

    Raises:
        StateError: A channel of this library has a value that it did not write.
    """
    scores = get_active_scores(agent, view_state(agent, state, messages_key))
    return [agent.get_guideline(id) for id in scores]


def get_active_scores(agent: Agent, state: StateView) -> dict[str, int]:
    """Return the scores of the guidelines that are active in this turn, by their ids.

    If guidelines weren't matched in this turn, those without a condition are active, and a warning says so.
    """
    scores: dict[str, int] = {}
    matches = state.current_turn_matches
    if matches:
        for match in matches:
            if match.active and match.guideline in agent.relations.by_id:
                scores[match.guideline] = match.score or MAX_SCORE
        return scores
    for guideline in agent.guidelines:
        if guideline.condition is None:
            scores[guideline.id] = MAX_SCORE
    if len(scores) < len(agent.rules) and not state.is_speculative:
        warnings.warn(
            f"guidelines were not matched for the customer's last message: of agent {agent.name!r} only those "
            "without a condition apply. Put a GuidelineMatcher before this node. It (or GuidelineMiddleware) "
            "belongs after what rewrites messages, such as a summary; messages need the reducer add_messages",
            stacklevel=1,  # one place, so that Python warns once and not in every step
        )
    return scores


def get_granted_tools(agent: Agent, state: StateView) -> dict[str, tuple[str, ...]]:
    """Return the tools that may be called in this turn, each with the active guidelines that grant it."""
    active_ids = get_active_scores(agent, state)
    granted_tools = {}
    for name in agent.toolbox:
        granted_by = tuple(id for id in agent.grants[name] if id in active_ids)
        if granted_by or name in agent.always_available:
            granted_tools[name] = granted_by
    return granted_tools


def find_remaining_grants(agent: Agent, state: StateView, granted_by: Sequence[str]) -> tuple[str, ...]:
    """Return the guidelines that granted a call when the customer was asked, and still do.

    The model's judgements from then still count; only conditions in code have been evaluated again.
    """
    known_ids = agent.relations.by_id.keys() & set(granted_by)
    # When the customer was asked, the guidelines that these depend on were active, too.
    scores = dict.fromkeys(agent.relations.find_dependencies(known_ids), MAX_SCORE)
    for match in state.current_turn_matches:
        if match.matched:
            scores[match.guideline] = match.score or MAX_SCORE
        elif match.origin == "code":
            scores.pop(match.guideline, None)
    active_ids = agent.relations.resolve(scores).active
    return tuple(id for id in granted_by if id in active_ids)
