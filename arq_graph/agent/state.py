"""What a guided agent keeps in a LangGraph thread.

Tool calls and their results are ordinary messages. Everything else is a list of small records in a channel
of its own. A record that belongs to one turn carries `turn`, the id of the customer message that began it:
nodes ignore records of other turns, so nothing has to be reset between them.
"""

from __future__ import annotations

from typing import Any, Literal

from langgraph.graph import MessagesState
from pydantic import BaseModel, ConfigDict, Field


class Record(BaseModel):
    """A value in the state: immutable, and strict about its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class GuidelineMatch(Record):
    """One guideline's judgement in one turn, active or not (ARQ paper, 5.1.1).

    Args:
        guideline: The guideline's id.
        turn: Id of the customer message that began the turn.
        active: Whether the action is to be taken now, relations considered.
        matched: Whether the judgement alone made it active, before relations.
        score: 1 to 10; 6 and more activates. None where no model was asked.
        rationale: Why the condition does or does not apply, in the model's words or the code's.
        origin: Who decided: the model, the code (a condition that is a function, or always true and
            continuous), a relation that entailed it, or a batch that failed and is activated or skipped.
        continuous: Whether the action is to be kept up rather than done once; None if nobody asked.
        previously_applied: To what degree the action was taken before; None if nobody asked.
        remarks: What code settled: contradictions, disagreements, relations that added or removed it.
    """

    guideline: str
    turn: str
    active: bool
    matched: bool
    score: int | None = None
    rationale: str = ""
    origin: Literal["model", "code", "relation", "failure"] = "model"
    continuous: bool | None = None
    previously_applied: Literal["no", "partially", "fully"] | None = None
    remarks: tuple[str, ...] = ()


class AppliedGuideline(Record):
    """The last reply in which a guideline's action was taken; kept across turns.

    Args:
        guideline: The guideline's id.
        turn: Id of the customer message that began that turn.
        message: Id of the reply.
        times: In how many replies it was taken so far.
    """

    guideline: str
    turn: str
    message: str
    times: int = 1


class ToolInsight(Record):
    """What was decided about one proposed tool call, and what the reply has to say about it (5.1.2).

    Args:
        turn: Id of the customer message that began the turn.
        tool: The tool's name.
        kind: `run` (called), `missing` or `invalid` (an argument), `confirm` (waits for the customer's
            word), `declined` (not called; the rationale says why).
        argument: The argument that is missing or invalid.
        description: What the argument means, for a question to the customer.
        problem: Why the argument is invalid, in the tool's own words.
        arguments: The arguments of the proposed call as far as they are known.
        score: Applicability, 1 to 10.
        rationale: Why.
    """

    turn: str
    tool: str
    kind: Literal["run", "missing", "invalid", "confirm", "declined"]
    argument: str | None = None
    description: str = ""
    problem: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)
    score: int | None = None
    rationale: str = ""


class Revision(Record):
    """One candidate reply, and what was found wrong with it (5.1.3).

    Args:
        turn: Id of the customer message that began the turn.
        content: The whole reply.
        followed: Ids of the guidelines and insights it follows.
        violations: What code found, each beginning with the query that failed.
        sent: Whether this is the reply the customer got.
    """

    turn: str
    content: str
    followed: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    sent: bool = False


class AgentState(MessagesState, total=False):
    """State of a guided agent: messages, and what each step concluded.

    Subclass it to add channels of your own, and pass the subclass as `state_schema`.
    """

    guideline_matches: list[GuidelineMatch]
    applied_guidelines: list[AppliedGuideline]
    tool_insights: list[ToolInsight]
    revisions: list[Revision]
    variables: dict[str, Any]
