"""The state of a guided agent in a LangGraph thread.

Tool calls and their results are ordinary messages. Everything else is stored as small records, in channels of plain
JSON: `state["guideline_matches"][0]["active"]`. The classes below describe those records; a node validates the JSON
into them when it reads a channel.

Every record carries `agent`, the name of its agent, and `turn`, the id of the customer message that began the turn.
A node reads only the records of its own agent, so two agents can share a thread, even under one name: `specification`
tells them apart. It ignores records of other turns, so
nothing has to be reset between turns. If a message is sent again under the same id with different content, the records
made for the earlier content are ignored too.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from langgraph.graph import MessagesState
from pydantic import Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from arq_graph.agent.check import CheckDecision
from arq_graph.agent.journey_progress import JourneyProgress
from arq_graph.agent.passage import Passage
from arq_graph.agent.record import Record, RecordPart
from arq_graph.agent.takeover import Takeover


class GuidelineMatch(Record):
    """The judgement of one guideline in one turn, active or not (ARQ paper, 5.1.1).

    `matched` is the judgement alone; `active` is the result after the relations were applied. Scores go from 1 to 10,
    and 6 or more activates. `missing_information` says what would decide a condition that isn't known yet.
    `independent_of_tools` means that only the customer's words could change the judgement, not a tool's result. With
    `keep_matches="active"` one record stands for all guidelines with the same result: `other_guidelines` are the ids
    of the others.
    """

    guideline: str
    active: bool
    matched: bool
    score: int | None = None
    rationale: str = ""
    origin: Literal["model", "code", "relation", "failure"] = "model"
    continuous: bool | None = None
    previously_applied: Literal["no", "partially", "fully"] | None = None
    missing_information: str = ""
    independent_of_tools: bool = False
    remarks: tuple[str, ...] = ()
    other_guidelines: Annotated[tuple[str, ...], Field(exclude_if=lambda ids: not ids)] = ()

    def expand(self) -> list[GuidelineMatch]:
        """Return one match for each guideline that this record stands for."""
        if not self.other_guidelines:
            return [self]
        matches = [self.model_copy(update={"other_guidelines": ()})]
        for id in self.other_guidelines:
            matches.append(matches[0].model_copy(update={"guideline": id}))
        return matches


class AppliedGuideline(Record):
    """The last reply that took a guideline's action, and how many replies did so far; stored across turns."""

    guideline: str
    message_id: str
    times: int = 1


VerdictKind = Literal["run", "missing", "invalid", "confirm", "declined"]


class ToolVerdict(Record):
    """The verdict on one proposed tool call, for the reply to take into account (5.1.2).

    The kinds are `run` (called), `missing` or `invalid` (an argument), `confirm` (waits for the customer's yes) and
    `declined` (not called; `problem` says why). `description` describes the argument, or the tool if `argument` is
    None.
    """

    tool: str
    kind: VerdictKind
    argument: str | None = None
    description: str = ""
    problem: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)
    score: int | None = None
    rationale: str = ""
    granted_by: tuple[str, ...] = ()


class PendingCall(RecordPart):
    """A call that waits for the customer's or operator's agreement.

    Once the agreement is used for it, `tool_call_id` is the id of the tool call that it became, and `message_id` that
    of the message with the call.
    """

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    granted_by: tuple[str, ...] = ()
    tool_call_id: str | None = None
    message_id: str | None = None


class Agreement(Record):
    """A confirmation question about pending calls, and its outcome.

    A button returns `id`. `question_message_id` is the id of the message that ends with the question; the same one has
    been asked `times_asked` times in a row. When the customer agrees, `answer_message_id` becomes the id of their
    message and `answer_text` its text; until then `answer_message_id` is None.
    """

    id: str
    by: Literal["customer", "operator", "interrupt"] = "customer"
    question_message_id: str = ""
    question: str = ""
    times_asked: int = 1
    calls: tuple[PendingCall, ...]
    answer_message_id: str | None = None
    answer_text: str = ""


class FilledField(RecordPart):
    """The value of a field of a canned reply, and the id of the tool result, variable or message that it is from."""

    value: str
    source: str


class UsedReply(RecordPart):
    """A canned reply by its id, with the values of its fields by name."""

    reply: str
    values: dict[str, FilledField] = Field(default_factory=dict)


class Revision(Record):
    """A candidate reply with its violations, each of which begins with the query that failed (5.1.3).

    `broken` are the active guidelines that it breaks, each with the reason that the model gives; None if it was not
    checked for that, as in the modes without queries. `cited` are the ids of the passages that it cites; those modes
    don't ask for sources, either.
    `replies` are the canned replies in it; of a choice that can't be sent, with the values that the model gave.
    """

    content: str
    followed: tuple[str, ...] = ()
    broken: Annotated[dict[str, str] | None, Field(exclude_if=lambda broken: broken is None)] = None
    cited: Annotated[tuple[str, ...], Field(exclude_if=lambda ids: not ids)] = ()
    violations: tuple[str, ...] = ()
    replies: Annotated[tuple[UsedReply, ...], Field(exclude_if=lambda replies: not replies)] = ()
    sent: bool = False


class PlanStep(RecordPart):
    """A step of a plan that is still to come (Pre-Act 3.1). The last step, the final answer, has no tool."""

    description: str
    reason: str
    tool: str | None = None


class PlannedCall(RecordPart):
    """The tool call that a plan makes next, with the result it expects."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    expected: str = ""


class PlanChange(RecordPart):
    """A change from one version of a plan to the next, and the reason for it."""

    version: int
    what: str
    why: str


class Plan(Record):
    """The latest version of a turn's plan (Pre-Act 3.1); a new customer message starts a new plan.

    `steps` are still to come: the next action first, the final answer last. A version has a `call` or a
    `final_answer`, or neither if nothing acceptable was proposed. `changes` are the changes that observations led to,
    `result_count` is the number of the turn's tool results that the plan knew, `faults` are the problems that code
    found in it.
    """

    version: int = 1
    previous_steps: str | None = None
    steps: tuple[PlanStep, ...] = ()
    call: PlannedCall | None = None
    final_answer: str | None = None
    observation: Literal["as_expected", "failed", "empty", "another_branch"] | None = None
    changes: tuple[PlanChange, ...] = ()
    result_count: int = 0
    faults: tuple[str, ...] = ()


class SummaryPoint(RecordPart):
    """A point of a summary, with the ids of the conversation lines that it rests on."""

    text: str
    sources: tuple[str, ...]


class HistorySummary(Record):
    """The summary of a conversation's first lines, which prompts show in their place.

    It covers the first `line_count` lines, and counts only while their hash is still `history_hash`. Code adds what it
    keeps word for word: the ids of the `kept_lines`, which prompts show in full, and the `values` that were mentioned
    (ids, numbers, dates), by the id of a line.
    """

    line_count: int
    history_hash: str
    points: tuple[SummaryPoint, ...]
    kept_lines: tuple[str, ...] = ()
    values: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class NextMilestone(RecordPart):
    """A milestone that could be reached next, with the tool that reaches it (None for a state or condition)."""

    name: str
    description: str = ""
    tool: str | None = None


class Progress(Record):
    """The conversation's progress toward its goal (Pre-Act 4.3); `arq_graph.milestones` defines each term.

    If undecided milestones leave the result open, `goal_completed` is None and `progress_range` replaces
    `progress_rate`; both go from 0 to 1. `forbidden` lists forbidden events that happened. `journey` is the id of the
    agent's journey whose steps are the milestones, if they aren't those of a graph that was given.
    """

    reached: tuple[str, ...]
    goal_completed: bool | None = None
    progress_rate: float | None = None
    progress_range: tuple[float, float] | None = None
    next: tuple[NextMilestone, ...] = ()
    undecided: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    journey: Annotated[str, Field(exclude_if=lambda journey: not journey)] = ""


MoveKind = Literal["think", "speak", "act"]
SpeechCategory = Literal[
    "assumption_verification",
    "probing_question",
    "status_update",
    "clarification_request",
    "alternative_suggestion",
    "follow_up",
]


class Move(Record):
    """A move of the speaker, stored in the channel `moves` until its turn or task ends.

    `text` is the thought, the utterance or the action in a world; for a tool call it is the tool's name. In a task,
    `turn` is the id of the message that began the task. `after_line` is the id of the conversation line before the
    move.
    """

    kind: MoveKind
    text: str
    after_line: str = ""
    category: SpeechCategory | None = None
    dialogue_act: str | None = None
    faults: tuple[str, ...] = ()


class WorldStatus(Record):
    """The status of a world after the actions of a thread, stored in the channel `world`.

    `beginning` is the first observation. `actions` is None if any text may be an action, `score` if the world doesn't
    keep one. `steps` are the valid actions, each with its observation; `invalid` counts the invalid ones.
    """

    beginning: str
    actions: tuple[str, ...] | None = None
    done: bool = False
    score: float | None = None
    steps: tuple[tuple[str, str], ...] = ()
    invalid: int = 0


class _JsonOf:
    """The JSON schema of a record for a channel that holds its plain JSON, so that servers show its fields."""

    def __init__(self, record: type[RecordPart]) -> None:
        self._record = record

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(self._record.__pydantic_core_schema__)


def _merge_variables(before: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    return (before or {}) | (new or {})


class AgentState(MessagesState, total=False):
    """The state of a guided agent: its messages, and the conclusions of each step as plain JSON.

    To add your own channels, subclass it and pass the subclass as `state_schema`.
    """

    guideline_matches: list[Annotated[dict[str, Any], _JsonOf(GuidelineMatch)]]
    applied_guidelines: list[Annotated[dict[str, Any], _JsonOf(AppliedGuideline)]]
    journeys: list[Annotated[dict[str, Any], _JsonOf(JourneyProgress)]]
    tool_insights: list[Annotated[dict[str, Any], _JsonOf(ToolVerdict)]]
    agreements: list[Annotated[dict[str, Any], _JsonOf(Agreement)]]
    passages: list[Annotated[dict[str, Any], _JsonOf(Passage)]]
    plan: list[Annotated[dict[str, Any], _JsonOf(Plan)]]
    moves: list[Annotated[dict[str, Any], _JsonOf(Move)]]
    progress: list[Annotated[dict[str, Any], _JsonOf(Progress)]]
    revisions: list[Annotated[dict[str, Any], _JsonOf(Revision)]]
    summaries: list[Annotated[dict[str, Any], _JsonOf(HistorySummary)]]
    world: list[Annotated[dict[str, Any], _JsonOf(WorldStatus)]]
    checks: list[Annotated[dict[str, Any], _JsonOf(CheckDecision)]]
    takeover: Annotated[dict[str, Any], _JsonOf(Takeover)] | None
    variables: Annotated[dict[str, Any], _merge_variables]
