"""What a guided agent keeps in a LangGraph thread.

Tool calls and their results are ordinary messages. Everything else is kept as small records, in channels of plain
JSON: `state["guideline_matches"][0]["active"]`. The classes below say what such a record holds; nodes validate the
JSON into them where they read it.

Every record carries `agent`, the name of the specification that it belongs to, and `turn`, the id of the customer
message that began the turn. A node reads the records of its own agent and leaves the others untouched, so two agents
may share a thread; and it ignores records of other turns, so nothing has to be reset between them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from langgraph.graph import MessagesState
from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema


class Record(BaseModel):
    """What all records have: immutable, and strict about its fields.

    Args:
        agent: Name of the specification that it belongs to; the node that writes it fills it in.
        turn: Id of the customer message that began the turn.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent: str = ""
    turn: str


class RecordPart(BaseModel):
    """A part of a record."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class GuidelineMatch(Record):
    """One guideline's judgement in one turn, active or not (ARQ paper, 5.1.1).

    Args:
        guideline: The guideline's id.
        active: Whether the action is to be taken now, relations considered.
        matched: Whether the judgement alone made it active, before relations.
        score: 1 to 10; 6 and more activates. None where no model was asked.
        rationale: Why the condition does or does not apply, in the model's words or the code's.
        origin: Who decided: the model, the code (a condition that is a function, or always true and
            continuous), a relation that entailed it, or a batch that failed and is activated or skipped.
        continuous: Whether the action is to be kept up rather than done once; None if nobody asked.
        previously_applied: To what degree the action was taken before; None if nobody asked.
        undecided: What would decide whether the condition holds, where that is not known yet; else empty.
        settled: Whether only the customer's words could change this judgement, and no result of a tool.
        remarks: What code settled: contradictions, disagreements, relations that added or removed it.
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


class AppliedGuideline(Record):
    """The last reply in which a guideline's action was taken; kept across turns.

    Args:
        guideline: The guideline's id.
        message: Id of the reply.
        times: In how many replies it was taken so far.
    """

    guideline: str
    message: str
    times: int = 1


class ToolInsight(Record):
    """What was decided about one proposed tool call, and what the reply has to say about it (5.1.2).

    Args:
        tool: The tool's name.
        kind: `run` (called), `missing` or `invalid` (an argument), `confirm` (waits for the customer's
            yes), `declined` (not called; `problem` says why).
        argument: The argument that is missing or invalid.
        description: What the argument means, for a question to the customer.
        problem: Why the argument is invalid, in the tool's own words.
        arguments: The arguments of the proposed call as far as they are known.
        score: Applicability, 1 to 10.
        rationale: Why.
        granted_by: Ids of the active guidelines that grant the call.
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
    """A call that waits for a yes, or that one was spent on.

    Args:
        tool: The tool's name.
        arguments: What it is called with, to the letter.
        granted_by: Ids of the guidelines that granted it when it was put.
        call: Id of the tool call that it became; None while it waits.
    """

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    granted_by: tuple[str, ...] = ()
    call: str | None = None


class Agreement(Record):
    """One question about calls that need a yes, and what came of it.

    Args:
        id: The question's id; a button may send it as the customer's message.
        by: Who was asked.
        message: Id of the message that ends with the question; empty where there is none.
        question: The question as it was sent.
        calls: What was asked about, in order.
        agreed_in: Id of the customer message that agreed; None while none did.
    """

    id: str
    by: Literal["customer", "operator", "interrupt"] = "customer"
    message: str = ""
    question: str = ""
    calls: tuple[WaitingCall, ...]
    agreed_in: str | None = None


class Revision(Record):
    """One candidate reply, and what was found wrong with it (5.1.3).

    Args:
        content: The whole reply.
        followed: Ids of the guidelines and insights it follows.
        violations: What code found, each beginning with the query that failed.
        sent: Whether this is the reply the customer got.
    """

    content: str
    followed: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    sent: bool = False


class PlanStep(RecordPart):
    """One step of a plan that is still to come (Pre-Act 3.1).

    Args:
        description: What is done.
        reason: Why, and why at this place.
        tool: The tool it calls; None for the final answer, which is the last step of every plan.
    """

    description: str
    reason: str
    tool: str | None = None


class PlannedCall(RecordPart):
    """The tool call that a plan takes now.

    Args:
        tool: The tool's name.
        arguments: What it is called with.
        expected: What its result is expected to tell; empty where that was not asked.
    """

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    expected: str = ""


class PlanChange(RecordPart):
    """What one version of a plan does otherwise than the one before.

    Args:
        version: The version that it came with.
        what: What is different.
        why: What made that necessary.
    """

    version: int
    what: str
    why: str


class Plan(Record):
    """The plan of one turn, as its last version has it (Pre-Act 3.1); a new customer message begins a new one.

    Args:
        version: 1 for the first plan of the turn, one more after each observation.
        previous_steps: What was done in this turn and what it told; None before a tool ran.
        steps: What is still to come, the action taken now first, the final answer last.
        call: The call that this version makes; None where it ends the turn.
        final_answer: What it answers; None where it makes a call, or where no acceptable answer came.
        observation: How the newest result was against what was expected of it; None before there was one.
        changes: What the observations of this turn changed, the oldest first.
        results: How many results of this turn it knew.
        faults: What code found wrong with it, and what could not be put right within the bounds.
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
    """A milestone that could be reached next.

    Args:
        name: Its name.
        description: What it means.
        tool: The tool whose call reaches it; None for a state or a condition.
    """

    name: str
    description: str = ""
    tool: str | None = None


class Progress(Record):
    """How far the conversation got toward its goal (Pre-Act 4.3); the arq_graph.milestones package defines each term.

    Args:
        reached: The milestones that were reached for certain, in order.
        goal_completed: Goal completion; None where undecided milestones decide it.
        progress_rate: The progress rate, 0 to 1; None where it is a range.
        progress_range: The progress rate at least and at most.
        next: The milestones whose dependencies are reached.
        undecided: Milestones of which nothing says whether they were observed.
        forbidden: What happened that must not.
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

    In a task, `turn` is the id of the message that began the task.

    Args:
        kind: `think`, `speak` or `act`.
        text: The thought, the utterance or the action in a world; for a tool call, the tool's name.
        after: Id of the line of the conversation that it came after; empty before the first.
        category: What an utterance does (ReSpAct, Table 5).
        dialogue_act: The act that an utterance was limited to, where `dialogue_acts` is given.
        by_code: Whether code made the utterance, as no acceptable move came from the model.
        questions_left: How many questions could follow each other when an utterance was made, itself included.
        faults: What code found wrong with it, and what could not be put right within the bounds.
    """

    kind: MoveKind
    text: str
    after: str = ""
    category: SpeechCategory | None = None
    dialogue_act: str | None = None
    by_code: bool = False
    questions_left: int | None = None
    faults: tuple[str, ...] = ()


class WorldStatus(Record):
    """How a world stands after the actions of a thread, in the channel `world`.

    Args:
        beginning: The first observation.
        actions: What can be done now; None where any text may be an action.
        done: Whether the task has ended.
        score: How well it went so far, on the world's own scale; None where it keeps none.
        taken: How many actions were taken.
        invalid: How many actions were refused: by the world, or as they were not among `actions`.
    """

    beginning: str
    actions: tuple[str, ...] | None = None
    done: bool = False
    score: float | None = None
    taken: int = 0
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
