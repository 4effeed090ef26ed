"""The events that nodes write to `stream_mode="custom"` while a turn runs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from arq_graph.agent.check import CheckDecision
from arq_graph.agent.journey_progress import JourneyState
from arq_graph.agent.passage import Passage
from arq_graph.agent.state import GuidelineMatch, PendingCall, Plan, Progress, SummaryPoint, ToolVerdict
from arq_graph.agent.takeover import Takeover


class Event(BaseModel):
    """An event of one turn, with the agent's name and the id of the customer message that began the turn.

    Both are added when the event is written.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    agent: str = ""
    turn: str = ""


class GuidelinesMatched(Event):
    """The matcher judged guidelines: the turn's `matches` so far, and the ids of those `judged` in this pass."""

    type: Literal["guidelines_matched"] = "guidelines_matched"
    matches: tuple[GuidelineMatch, ...]
    judged: tuple[str, ...]


class PassagesFound(Event):
    """The agent's retrievers have searched with `query`, the customer's words; these are the turn's `passages`.

    `left_out` counts further passages for which there was no room. `failures` says for each retriever that failed why
    it has found nothing.
    """

    type: Literal["passages_found"] = "passages_found"
    query: str
    passages: tuple[Passage, ...]
    left_out: int = 0
    failures: tuple[str, ...] = ()


class JourneysAdvanced(Event):
    """The customer has moved in a journey: how far they are in each of the `journeys` that have begun."""

    type: Literal["journeys_advanced"] = "journeys_advanced"
    journeys: tuple[JourneyState, ...]


class ToolsDecided(Event):
    """A strategy decided which calls to make: one of `decisions` for each proposed call or missing argument."""

    type: Literal["tools_decided"] = "tools_decided"
    decisions: tuple[ToolVerdict, ...]


class PlanMade(Event):
    """A planner made this turn's plan, or refined it.

    `plan` is the current version, with the call or the answer that comes next; `decisions` are about the proposed
    calls, including refused ones.
    """

    type: Literal["plan_made"] = "plan_made"
    plan: Plan
    decisions: tuple[ToolVerdict, ...] = ()


class Thought(Event):
    """The speaker had a thought, which changes nothing outside the agent."""

    type: Literal["thought"] = "thought"
    text: str


class Spoke(Event):
    """The speaker said something.

    Args:
        text: The utterance.
        category: One of the six categories of ReSpAct's Table 5.
        dialogue_act: The act that it is, if acts are given.
        asks: True if it asks the customer something.
        waits: True if the task waits for an answer.
        draft: True if it is the draft of a reply.
        decisions: Verdicts on the arguments that it asks for, and on the calls that were refused before it.
        faults: The faults that remained after the last candidate.
    """

    type: Literal["spoke"] = "spoke"
    text: str
    category: str
    dialogue_act: str | None = None
    asks: bool = False
    waits: bool = False
    draft: bool = False
    decisions: tuple[ToolVerdict, ...] = ()
    faults: tuple[str, ...] = ()


class CheckMade(Event):
    """A check of the customer's message or of a reply was made; `decision.passed` says how it came out."""

    type: Literal["check_made"] = "check_made"
    decision: CheckDecision


class HandedOver(Event):
    """The conversation was handed over to a person; the agent answers nothing until it is given back."""

    type: Literal["handed_over"] = "handed_over"
    takeover: Takeover


class ConfirmationAsked(Event):
    """The reply of the last `ReplySent` ends with the confirmation question about pending calls.

    A button may send its `id` as the customer's message, which is a yes.
    """

    type: Literal["confirmation_asked"] = "confirmation_asked"
    id: str
    question: str
    calls: tuple[PendingCall, ...]


class ToolCalled(Event):
    """A tool ran, or was refused; `result` is its result as text."""

    type: Literal["tool_called"] = "tool_called"
    tool: str
    arguments: dict[str, Any]
    call_id: str
    status: Literal["success", "error"]
    result: str


class ReplyDelta(Event):
    """A piece of the reply while it is written: `text` follows the pieces with the same `revision`.

    A delta with another `revision` starts the reply again: clear what was shown before. The number is the time at which
    the revision began, in microseconds. `ReplySent` has the accepted reply, which may differ. Only a reviser with
    `stream=True` writes these events.
    """

    type: Literal["reply_delta"] = "reply_delta"
    revision: int
    text: str


class ReplyRevised(Event):
    """The reviser wrote a candidate reply; `violations` are the problems that code found in it.

    Its text isn't called `content`, because adapters such as LiveKit's read that aloud.
    """

    type: Literal["reply_revised"] = "reply_revised"
    candidate: str
    violations: tuple[str, ...] = ()


class ReplySent(Event):
    """The reply was chosen. `satisfied` is True if code found no violation in it.

    `followed` are the ids of the guidelines that it follows, `cited` those of the passages in the turn's
    `PassagesFound` that it cites; empty if no reviser wrote it.
    """

    type: Literal["reply_sent"] = "reply_sent"
    content: str
    followed: tuple[str, ...] = ()
    cited: tuple[str, ...] = ()
    satisfied: bool = True


class HistorySummarized(Event):
    """The beginning of a long conversation was summarised in `points`, up to the line `up_to`.

    `dropped` has a sentence for each point that the model wrote and that wasn't taken, which says why. If there is no
    summary, `failure` says why, the points are empty, and the next turn tries again.
    """

    type: Literal["history_summarized"] = "history_summarized"
    up_to: str
    points: tuple[SummaryPoint, ...] = ()
    dropped: tuple[str, ...] = ()
    failure: str = ""


class ProgressMade(Event):
    """The conversation's progress toward its goal changed; `newly_reached` are milestones, in order."""

    type: Literal["progress_made"] = "progress_made"
    progress: Progress
    newly_reached: tuple[str, ...] = ()
