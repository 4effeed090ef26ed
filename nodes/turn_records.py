"""What the nodes of a turn read in the records of those before them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from arq_graph.agent.passage import Passage
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Move, Plan, ToolVerdict, VerdictKind
from arq_graph.nodes.state_view import StateView


def read_current_plan(state: StateView) -> Plan | None:
    """Return this turn's plan, or None if there isn't one yet."""
    plans = state.read_turn_records("plan", Plan, state.turn_id)
    return plans[-1] if plans else None


def read_current_draft(state: StateView) -> str | None:
    """Return the draft of this turn's reply that a planner or a speaker's last move left, or None."""
    moves = state.read_turn_records("moves", Move, state.turn_id)
    if moves and moves[-1].kind == "speak":
        return moves[-1].text
    plan = read_current_plan(state)
    return plan.final_answer if plan else None


def read_passages(agent: Agent, state: StateView) -> list[Passage]:
    """Return the passages that were found for this turn.

    If nothing has ever searched the agent's knowledge in this thread, a warning says so.
    """
    if not agent.knowledge:
        return []
    if state.get("passages") is None:
        warnings.warn(
            f"agent {agent.name!r} has knowledge, and nothing has searched it: put a KnowledgeRetriever before the "
            "node that acts",
            stacklevel=1,  # one place, so that Python warns once and not in every step
        )
    return state.read_turn_records("passages", Passage, state.turn_id)


def find_requests_of_last_reply(state: StateView) -> list[ToolVerdict]:
    """Return the arguments and confirmations that the last reply asked for, which this turn may answer.

    All other records of earlier turns are ignored, among them the requests of earlier replies.
    """
    verdicts = state.read_turn_records("tool_insights", ToolVerdict, state.answered_turn_id)
    return select_verdicts(verdicts, "missing", "invalid", "confirm")


def select_verdicts(verdicts: Iterable[ToolVerdict], *kinds: VerdictKind) -> list[ToolVerdict]:
    """Return the verdicts of these kinds."""
    return [verdict for verdict in verdicts if verdict.kind in kinds]
