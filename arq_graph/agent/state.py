"""What a guided agent keeps in a LangGraph thread.

Tool calls and their results are ordinary messages. Everything else is kept as small records, in channels of plain
JSON: `state["guideline_matches"][0]["active"]`. The classes below say what such a record holds; nodes validate the
JSON into them where they read it.

Every record carries `agent`, the name of the specification that it belongs to, and `turn`, the id of the customer
message that began the turn. A node reads the records of its own agent and leaves the others untouched, so two agents
may share a thread; and it ignores records of other turns, so nothing has to be reset between them. If the message is
sent again with other words under the same id, records of what it said before count no more.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from langgraph.graph import MessagesState
from pydantic import BaseModel, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema


class RecordPart(BaseModel, frozen=True, extra="forbid", defer_build=True):  # importing is quicker
    """A part of a record."""


class Record(RecordPart):
    """What all records have: the name of their agent, and the customer message that began the turn.

    `turn` is the message's id, or where it has none its number in the conversation, `M1`; `said` is a fingerprint of
    what it said then, which is added when the record is written.
    """

    agent: str = ""
    turn: str
    said: str = ""


class GuidelineMatch(Record):
    """One guideline's judgement in one turn, active or not (ARQ paper, 5.1.1).

    `matched` is what the judgement alone says, `active` what is left of it after the relations; scores go from 1 to 10,
    6 and more activates. `undecided` is what would decide a condition that is not known yet; `settled` says that only
    the customer's words could change the judgement, and no result of a tool. Under `keep_matches="active"` one record
    speaks for all guidelines that came out alike: `also` are the ids of the others.
    """

    guideline: str
    active: bool
    matched: bool
    score: int | None = None
    rationale: str = ""
    origin: Literal["model", "code", "relation", "failure"] = "model"
    continuous: bool | None = None
    previously_applied: Literal["no", "partially", "fully"] | None = None
    undecided: str = ""
    settled: bool = False
    remarks: tuple[str, ...] = ()
    also: Annotated[tuple[str, ...], Field(exclude_if=lambda ids: not ids)] = ()

    def each(self) -> list[GuidelineMatch]:
        """The match of each guideline that it speaks for."""
        if not self.also:
            return [self]
        return [self.model_copy(update={"guideline": id, "also": ()}) for id in (self.guideline, *self.also)]


class AppliedGuideline(Record):
    """The last reply in which a guideline's action was taken, and in how many it was so far; kept across turns."""

    guideline: str
    message: str
    times: int = 1


class ToolInsight(Record):
    """What was decided about one proposed tool call, and what the reply has to say about it (5.1.2).

    The kinds are `run` (called), `missing` or `invalid` (an argument), `confirm` (waits for the customer's yes) and
    `declined` (not called; `problem` says why). `description` is the argument's, or where it is about none the tool's.
    """

    tool: str
    kind: Literal["run", "missing", "invalid", "confirm", "declined"]
    argument: str | None = None
    description: str = ""
    problem: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)
    score: int | None = None
    rationale: str = ""
    granted_by: tuple[str, ...] = ()


class WaitingCall(RecordPart):
    """A call that waits for a yes, or that one was spent on: then `call` is the id of the tool call that it became."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    granted_by: tuple[str, ...] = ()
    call: str | None = None


class Agreement(Record):
    """One question about calls that need a yes, and what came of it.

    `id` may be sent as the customer's message, by a button; `message` is the id of the message that ends with the
    question, `agreed_in` that of the customer's message that agreed, and `agreed_by` what it said.
    """

    id: str
    by: Literal["customer", "operator", "interrupt"] = "customer"
    message: str = ""
    question: str = ""
    calls: tuple[WaitingCall, ...]
    agreed_in: str | None = None
    agreed_by: str = ""


class Revision(Record):
    """One candidate reply, and what was found wrong with it, each beginning with the query that failed (5.1.3)."""

    content: str
    followed: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    sent: bool = False


class PlanStep(RecordPart):
    """One step of a plan that is still to come (Pre-Act 3.1); the final answer, the last of them, has no tool."""

    description: str
    reason: str
    tool: str | None = None


class PlannedCall(RecordPart):
    """The tool call that a plan takes now, and what its result is expected to tell."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    expected: str = ""


class PlanChange(RecordPart):
    """What one version of a plan does otherwise than the one before, and why."""

    version: int
    what: str
    why: str


class Plan(Record):
    """The plan of one turn, as its last version has it (Pre-Act 3.1); a new customer message begins a new one.

    `steps` are still to come, the action taken now first, the final answer last. A version has a `call`, or a
    `final_answer`, or, where nothing acceptable came, neither. `changes` are what observations changed, `results` how
    many results of the turn it knew, `faults` what code found wrong with it.
    """

    version: int = 1
    previous_steps: str | None = None
    steps: tuple[PlanStep, ...] = ()
    call: PlannedCall | None = None
    final_answer: str | None = None
    observation: Literal["as_expected", "failed", "empty", "another_branch"] | None = None
    changes: tuple[PlanChange, ...] = ()
    results: int = 0
    faults: tuple[str, ...] = ()


class NextMilestone(RecordPart):
    """A milestone that could be reached next, with the tool whose call reaches it; None for a state or a condition."""

    name: str
    description: str = ""
    tool: str | None = None


class Progress(Record):
    """How far the conversation got toward its goal (Pre-Act 4.3); `arq_graph.milestones` defines each term.

    Where undecided milestones decide it, `goal_completed` is None, and `progress_range` is given in place of
    `progress_rate`, 0 to 1. `forbidden` is what happened that must not.
    """

    reached: tuple[str, ...]
    goal_completed: bool | None = None
    progress_rate: float | None = None
    progress_range: tuple[float, float] | None = None
    next: tuple[NextMilestone, ...] = ()
    undecided: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()


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
    """One move of the speaker, kept in the channel `moves` for as long as what it works on lasts.

    `text` is the thought, the utterance or the action in a world; for a tool call, the tool's name. In a task, `turn`
    is the id of the message that began the task. `after` is the id of the line that it came after.
    """

    kind: MoveKind
    text: str
    after: str = ""
    category: SpeechCategory | None = None
    dialogue_act: str | None = None
    faults: tuple[str, ...] = ()


class WorldStatus(Record):
    """How a world stands after the actions of a thread, in the channel `world`.

    `actions` is None where any text may be an action, `score` where the world keeps none; `taken` are the actions that
    were possible, each with what it showed, and `invalid` counts those that were refused.
    """

    beginning: str
    actions: tuple[str, ...] | None = None
    done: bool = False
    score: float | None = None
    taken: tuple[tuple[str, str], ...] = ()
    invalid: int = 0


class _JsonOf:
    """The JSON schema of a record, for a channel that holds its plain JSON: servers then show what is in it."""

    def __init__(self, record: type[Record]) -> None:
        self._record = record

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(self._record.__pydantic_core_schema__)


def _merged(before: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    """The variables after a write: a write of some leaves the others as they are."""
    return {**(before or {}), **(new or {})}


class AgentState(MessagesState, total=False):
    """State of a guided agent: messages, and what each step concluded, as plain JSON.

    Subclass it to add channels of your own, and pass the subclass as `state_schema`.
    """

    guideline_matches: list[Annotated[dict[str, Any], _JsonOf(GuidelineMatch)]]
    applied_guidelines: list[Annotated[dict[str, Any], _JsonOf(AppliedGuideline)]]
    tool_insights: list[Annotated[dict[str, Any], _JsonOf(ToolInsight)]]
    agreements: list[Annotated[dict[str, Any], _JsonOf(Agreement)]]
    plan: list[Annotated[dict[str, Any], _JsonOf(Plan)]]
    moves: list[Annotated[dict[str, Any], _JsonOf(Move)]]
    progress: list[Annotated[dict[str, Any], _JsonOf(Progress)]]
    revisions: list[Annotated[dict[str, Any], _JsonOf(Revision)]]
    world: list[Annotated[dict[str, Any], _JsonOf(WorldStatus)]]
    variables: Annotated[dict[str, Any], _merged]
