"""Calls that wait for the customer: for a word that agrees to them, or for an argument that was asked for.

The one exception to the rule that records of other turns are ignored: an answer comes in the turn after the
question. Whatever the turn before that one left open is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from arq_graph.agent.state import ToolInsight
from arq_graph.nodes.agreement import questions_in, says_no
from arq_graph.nodes.channels import Reader
from arq_graph.reasoning.conversation import Conversation, Line

NOT_AGREED = "the customer has not agreed to these arguments yet"
"""The `problem` of a call that runs only once the customer says yes to it."""

_WAITING = frozenset({"missing", "invalid", "confirm"})


def left_open(state: Reader, conversation: Conversation) -> list[ToolInsight]:
    """What the last reply had to ask the customer for."""
    return [
        insight
        for insight in state.records("tool_insights", ToolInsight) or []
        if insight.kind in _WAITING and insight.turn == conversation.answered_turn
    ]


def awaiting_confirmation(state: Reader, conversation: Conversation) -> list[ToolInsight]:
    """The calls that the last reply put to the customer."""
    return [insight for insight in left_open(state, conversation) if insight.kind == "confirm"]


def still_open(waiting: Iterable[ToolInsight], run: Sequence[ToolInsight]) -> list[ToolInsight]:
    """What still waits after these calls were made: one word of the customer covers one call."""
    made = [(insight.tool, insight.arguments) for insight in run if insight.kind == "run"]
    return [insight for insight in waiting if (insight.tool, insight.arguments) not in made]


def as_put(
    pending: Iterable[ToolInsight],
    call: ToolInsight,
    settled: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> list[ToolInsight]:
    """What was put to the customer, in the words of a call that does the same: defaults spelled out or not.

    Args:
        pending: The calls that were put to the customer.
        call: The call.
        settled: What makes equal what does the same (`ToolArguments.settled`).
    """
    same = settled(call.arguments)
    return [
        each.model_copy(update={"arguments": call.arguments})
        if each.tool == call.tool and settled(each.arguments) == same
        else each
        for each in pending
    ]


def is_affirmed(
    call: ToolInsight,
    pending: Sequence[ToolInsight],
    proposal: Any,
    conversation: Conversation,
    agrees: Callable[[str], bool] | None = None,
) -> bool:
    """Whether a later message of the customer affirms the very arguments that were put to them.

    A no is a no, whatever the model makes of it; and a yes from before a no is over.

    Args:
        call: The call.
        pending: The calls that were put to the customer.
        proposal: The model's answer, with `affirmed_in`.
        conversation: The thread.
        agrees: What is a yes even where it sounds like a no; None: nothing is.
    """
    asked = next((p for p in pending if p.tool == call.tool and p.arguments == call.arguments), None)
    line = conversation.by_id.get((proposal.affirmed_in or "").strip())
    last = conversation.last_customer_line
    if asked is None or line is None or line.speaker != "customer" or last is None:
        return False
    said = [line, last]
    if agrees is not None:  # it decides of a message that it takes for a yes
        said = [each for each in said if agrees(each.message.text) is not True]
    if any(says_no(each.message.text, put_before(each, conversation)) for each in said):
        return False
    start = next((i for i, at in enumerate(conversation.lines) if asked.turn in (at.message.id, at.id)), -1)
    return conversation.lines.index(line) > start


def put_before(line: Line, conversation: Conversation) -> str:
    """What the agent asked last before a message of the customer's; all that it said, if it asked nothing."""
    before = conversation.lines[: conversation.lines.index(line)]
    said = next((each.message.text for each in reversed(before) if each.speaker == "agent"), "")
    return " ".join(questions_in(said))
