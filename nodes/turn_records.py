"""What the nodes of a turn read in the records of those before them."""

from __future__ import annotations

from collections.abc import Iterable

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


def find_requests_of_last_reply(state: StateView) -> list[ToolVerdict]:
    """Return the arguments and confirmations that the last reply asked for, which this turn may answer.

    All other records of earlier turns are ignored, among them the requests of earlier replies.
    """
    verdicts = state.read_turn_records("tool_insights", ToolVerdict, state.answered_turn_id)
    return select_verdicts(verdicts, "missing", "invalid", "confirm")


def select_verdicts(verdicts: Iterable[ToolVerdict], *kinds: VerdictKind) -> list[ToolVerdict]:
    """Return the verdicts of these kinds."""
    return [verdict for verdict in verdicts if verdict.kind in kinds]
