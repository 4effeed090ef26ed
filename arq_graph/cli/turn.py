"""A turn of a thread, as it is read from the state of the thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from pydantic import BaseModel, computed_field

from arq_graph.agent.check import CheckDecision
from arq_graph.agent.journey_progress import JourneyProgress, JourneyState
from arq_graph.agent.passage import Passage
from arq_graph.agent.state import GuidelineMatch, Move, Plan, Progress, Revision, ToolVerdict
from arq_graph.agent.takeover import Takeover
from arq_graph.reasoning.history import is_from_colleague
from arq_graph.reasoning.tool_calls import pair_calls
from arq_graph.reasoning.usage import UsageTracker


class ToolRun(BaseModel):
    """A tool call and its result."""

    tool: str
    arguments: dict[str, Any]
    status: Literal["success", "error", "pending"] = "pending"
    result: str | None = None


class Turn(BaseModel, frozen=True):
    """One turn of a thread, as `run` and `explain --json` print it.

    Without a reply it is unfinished, or a person has the conversation (`takeover`). `tool_decisions` and `revisions`
    hold the rejected ones, too.
    """

    turn: int
    customer: str
    reply: str | None
    guidelines: tuple[GuidelineMatch, ...]
    passages: tuple[Passage, ...]
    tool_calls: tuple[ToolRun, ...]
    tool_decisions: tuple[ToolVerdict, ...]
    revisions: tuple[Revision, ...]
    plan: Plan | None
    moves: tuple[Move, ...]
    progress: Progress | None
    journey_progress: tuple[Progress, ...] = ()
    journeys: tuple[JourneyState, ...] = ()
    checks: tuple[CheckDecision, ...] = ()
    takeover: Takeover | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def active(self) -> tuple[str, ...]:
        """Ids of the active guidelines."""
        return tuple(match.guideline for match in self.guidelines if match.active)

    @property
    def all_progress(self) -> tuple[Progress, ...]:
        """How far the conversation is on each journey that has begun, and on the milestones that were given."""
        return self.journey_progress if self.progress is None else (*self.journey_progress, self.progress)

    @property
    def sent_revision(self) -> Revision | None:
        """The candidate that became the reply."""
        return next((revision for revision in self.revisions if revision.sent), None)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def followed(self) -> tuple[str, ...]:
        """Ids of the active guidelines that the reply follows."""
        revision = self.sent_revision
        if revision is None:
            return ()
        return tuple(id for id in self.active if id in revision.followed)


@dataclass(frozen=True)
class TurnOutcome:
    """A turn that was run, the calls that wait for an operator, and the model calls and seconds that it took."""

    turn: Turn
    pending_calls: Sequence[Mapping[str, Any]]
    usage: UsageTracker
    seconds: float


def customer_messages(values: Mapping[str, Any]) -> list[HumanMessage]:
    """Return the customer's messages in the state of a thread."""
    return [message for message in values.get("messages") or () if isinstance(message, HumanMessage)]


def read_last_turn(values: Mapping[str, Any], agent: str | None = None) -> Turn | None:
    """Return the last turn in the state of a thread, or None before the first.

    Only the records of one agent are read, if it is named.
    """
    questions = customer_messages(values)
    if not questions:
        return None
    question = questions[-1]
    messages: list[AnyMessage] = values["messages"]
    answers = messages[messages.index(question) + 1 :]

    def records(channel: str) -> list[Any]:
        return [record for record in values.get(channel) or () if agent in (None, record["agent"])]

    def turn_records(channel: str) -> list[Any]:
        return [record for record in records(channel) if record["turn"] == question.id]

    guidelines: list[GuidelineMatch] = []
    for record in turn_records("guideline_matches"):
        guidelines += GuidelineMatch.model_validate(record).expand()
    return Turn(
        turn=len(questions),
        customer=question.text,
        reply=_read_reply(answers),
        guidelines=tuple(guidelines),
        passages=turn_records("passages"),
        tool_calls=_read_tool_runs(answers),
        tool_decisions=turn_records("tool_insights"),
        revisions=turn_records("revisions"),
        plan=_last(turn_records("plan")),
        moves=turn_records("moves"),
        progress=_last([record for record in records("progress") if not record.get("journey")]),
        journey_progress=tuple(record for record in records("progress") if record.get("journey")),
        journeys=_read_journeys(records("journeys")),
        checks=turn_records("checks"),
        takeover=values.get("takeover"),
    )


def _read_journeys(records: Sequence[Any]) -> tuple[JourneyState, ...]:
    """Return how far the customer is in the journeys of each agent."""
    last_records = {record["agent"]: record for record in records}
    journeys: list[JourneyState] = []
    for record in last_records.values():
        journeys.extend(JourneyProgress.model_validate(record).journeys)
    return tuple(journeys)


def _last(records: Sequence[Any]) -> Any:
    return records[-1] if records else None


def _read_reply(messages: Sequence[AnyMessage]) -> str | None:
    own_messages = [message for message in messages if not is_from_colleague(message)]
    last = _last(own_messages)
    if not isinstance(last, AIMessage) or last.tool_calls:
        return None
    return last.text


def _read_tool_runs(messages: Sequence[AnyMessage]) -> tuple[ToolRun, ...]:
    runs: list[ToolRun] = []
    for placed_call in pair_calls(messages):
        run = ToolRun(tool=placed_call.call["name"], arguments=placed_call.call["args"])
        if placed_call.result:
            run.status, run.result = placed_call.result.status, placed_call.result.text
        runs.append(run)
    return tuple(runs)
