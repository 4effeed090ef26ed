"""Calls that need a word from the customer first: asked for in the chat, made once it is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage

from arq_graph.agent.state import ToolInsight
from arq_graph.nodes.channels import Reader
from arq_graph.reasoning.conversation import Conversation


def awaiting_confirmation(state: Reader, conversation: Conversation) -> list[ToolInsight]:
    """The calls that were put to the customer in the turn before this one, and replied to since.

    The one exception to the rule that records of other turns are ignored: an answer comes in the next turn.
    """
    asked = [
        insight
        for insight in state.records("tool_insights", ToolInsight) or []
        if insight.kind == "confirm" and insight.turn != conversation.turn
    ]
    return [insight for insight in asked if _was_asked(insight, conversation)]


def _was_asked(insight: ToolInsight, conversation: Conversation) -> bool:
    """Whether the agent said anything between the customer's message of that turn and the latest one."""
    lines = conversation.lines
    start = next((i for i, line in enumerate(lines) if insight.turn in (line.message.id, line.id)), None)
    last = conversation.last_customer_line
    if start is None or last is None:
        return False
    between = lines[start + 1 : lines.index(last)]
    return any(line.speaker == "agent" and isinstance(line.message, AIMessage) for line in between)


def is_affirmed(
    call: ToolInsight,
    pending: Sequence[ToolInsight],
    proposal: Any,
    conversation: Conversation,
) -> bool:
    """Whether a later message of the customer affirms the very arguments that were put to them."""
    asked = next((p for p in pending if p.tool == call.tool and p.arguments == call.arguments), None)
    line = conversation.by_id.get((proposal.affirmed_in or "").strip())
    if asked is None or line is None or line.speaker != "customer":
        return False
    start = next((i for i, at in enumerate(conversation.lines) if asked.turn in (at.message.id, at.id)), -1)
    return conversation.lines.index(line) > start
