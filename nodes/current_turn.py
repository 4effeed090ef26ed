"""The records of the current turn, as the steps of a turn read them."""

from __future__ import annotations

from langchain_core.messages import AIMessage

from arq_graph.agent.state import GuidelineMatch, Move, Plan, ToolInsight
from arq_graph.nodes.channels import StateView
from arq_graph.nodes.messages import format_message_name, iterate_since_customer
from arq_graph.reasoning.conversation import Conversation


def current_turn_matches(state: StateView) -> list[GuidelineMatch]:
    """Return this turn's matches, one for each guideline; none if guidelines weren't matched in this turn."""
    matches: list[GuidelineMatch] = []
    for record in state.read_turn_records("guideline_matches", GuidelineMatch, state.turn):
        matches.extend(record.expand())
    return matches


def current_turn_plan(state: StateView) -> Plan | None:
    """Return this turn's plan, or None if there isn't one yet."""
    plans = state.read_turn_records("plan", Plan, state.turn)
    return plans[-1] if plans else None


def current_turn_draft(state: StateView) -> str | None:
    """Return the draft of this turn's reply that a planner or a speaker's last move left, or None."""
    moves = state.read_turn_records("moves", Move, state.turn)
    if moves and moves[-1].kind == "speak":
        return moves[-1].text
    plan = current_turn_plan(state)
    return plan.final_answer if plan else None


def find_answered_insights(state: StateView, conversation: Conversation) -> list[ToolInsight]:
    """Return what the last reply asked the customer for, an argument or a confirmation, which this turn may answer.

    The one exception to the rule that records of other turns are ignored. What an earlier turn asked for is over.
    """
    insights = state.read_turn_records("tool_insights", ToolInsight, conversation.answered_turn)
    return [insight for insight in insights if insight.kind in ("missing", "invalid", "confirm")]


def count_tool_rounds(state: StateView) -> int:
    """Return how many times the agent has called tools since the customer last spoke; other agents don't count."""
    name = format_message_name(state.agent)
    rounds = 0
    for message in iterate_since_customer(state.messages):
        if isinstance(message, AIMessage) and message.tool_calls and message.name == name:
            rounds += 1
    return rounds
