"""What the nodes write to `stream_mode="custom"` while a turn runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from langchain_core.messages.ai import UsageMetadata, add_usage
from pydantic import BaseModel, ConfigDict

from arq_graph.agent.state import GuidelineMatch, Plan, PlanChange, Progress, ToolInsight, WaitingCall
from arq_graph.reasoning.answer import Answer


def total_usage(answers: Iterable[Answer[Any]]) -> UsageMetadata | None:
    """The tokens of several answers together; None where the model reports none."""
    total: UsageMetadata | None = None
    for answer in answers:
        if answer.usage is not None:
            total = add_usage(total, answer.usage)
    return total


class Event(BaseModel):
    """An event of one turn; `turn` is the id of the customer message that began it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    turn: str


class Answered(Event):
    """An event for which models were asked.

    Args:
        calls: How many model calls it took, for what the speaker says with the thoughts before it.
        usage: The tokens these used, where the model tells.
    """

    calls: int = 0
    usage: UsageMetadata | None = None


class GuidelinesMatched(Answered):
    """The matcher judged guidelines.

    Args:
        matches: The turn's judgements so far, active or not.
        judged: Ids of those judged in this look.
    """

    type: Literal["guidelines_matched"] = "guidelines_matched"
    matches: tuple[GuidelineMatch, ...]
    judged: tuple[str, ...]

    @property
    def active(self) -> tuple[str, ...]:
        """Ids of the active guidelines."""
        return tuple(match.guideline for match in self.matches if match.active)


class ToolsDecided(Answered):
    """The tool caller decided which calls to make.

    Args:
        decisions: One per proposed call or missing argument.
    """

    type: Literal["tools_decided"] = "tools_decided"
    decisions: tuple[ToolInsight, ...]


class PlanMade(Answered):
    """A planner made a plan, or refined the one of this turn.

    Args:
        plan: The plan as it is now, with the call or the answer that it takes.
        decisions: What was decided about the calls that were proposed, refused ones too.
    """

    type: Literal["plan_made"] = "plan_made"
    plan: Plan
    decisions: tuple[ToolInsight, ...] = ()

    @property
    def changed(self) -> PlanChange | None:
        """What this version does otherwise than the one before, and why; None if it follows it."""
        return next((change for change in self.plan.changes if change.version == self.plan.version), None)


class Thought(Event):
    """The speaker had a thought, which changes nothing outside.

    Args:
        text: The thought.
    """

    type: Literal["thought"] = "thought"
    text: str


class Spoke(Answered):
    """The speaker said something.

    Args:
        text: The utterance.
        category: What it does: one of the six categories of ReSpAct's Table 5.
        dialogue_act: The act that it was limited to, where `dialogue_acts` is given.
        asks: Whether it asks the customer something.
        waits: Whether the run waits for an answer.
        draft: Whether it is the draft of a reply that is still to be revised.
        decisions: What it asks for, and what was decided about calls that were refused before it.
        faults: What code found wrong with it, and what could not be put right within the bounds.
    """

    type: Literal["spoke"] = "spoke"
    text: str
    category: str
    dialogue_act: str | None = None
    asks: bool = False
    waits: bool = False
    draft: bool = False
    decisions: tuple[ToolInsight, ...] = ()
    faults: tuple[str, ...] = ()


class ConfirmationAsked(Event):
    """The reply ends with code's question about calls that wait for the customer's yes.

    Args:
        id: The question's id; a button may send it as the customer's message, which is a yes.
        question: The question.
        calls: What it asks about.
    """

    type: Literal["confirmation_asked"] = "confirmation_asked"
    id: str
    question: str
    calls: tuple[WaitingCall, ...]


class ToolCalled(Event):
    """A tool ran, or was refused.

    Args:
        tool: The tool's name.
        arguments: What it was called with.
        call_id: Id of the tool call.
        status: `success` or `error`.
        result: The result as text.
    """

    type: Literal["tool_called"] = "tool_called"
    tool: str
    arguments: dict[str, Any]
    call_id: str
    status: Literal["success", "error"]
    result: str


class ReplyRevised(Event):
    """The reviser wrote a candidate reply.

    Args:
        content: The candidate.
        violations: What code found wrong with it.
    """

    type: Literal["reply_revised"] = "reply_revised"
    content: str
    violations: tuple[str, ...] = ()


class ReplySent(Answered):
    """The turn's reply is decided.

    Args:
        content: The reply.
        followed: Ids of the guidelines it follows.
        satisfied: Whether nothing was found wrong with it.
    """

    type: Literal["reply_sent"] = "reply_sent"
    content: str
    followed: tuple[str, ...]
    satisfied: bool


class ProgressMade(Event):
    """The conversation's progress toward its goal has changed.

    Args:
        progress: How far it got.
        newly_reached: The milestones that were not reached before, in order.
    """

    type: Literal["progress_made"] = "progress_made"
    progress: Progress
    newly_reached: tuple[str, ...] = ()
