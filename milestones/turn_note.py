"""Notes of what an agent of this library concluded in a turn, kept with the messages of an evaluated conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter, ValidationError

TURN_NOTES = "turn_notes"
"""Key of the `response_metadata` of the reply that ends a turn, in a results file: a list of `TurnNote`."""
MAX_NOTED = 100
"""The most guidelines, verdicts or names in a note."""
MAX_NOTE_CHARACTERS = 200
"""The most characters of each text in a note."""

Outcome = Literal["followed", "broken", "excused"]
"""How a reply treats an active guideline; excused: it is not followed, for a reason that counts."""


class _Part(BaseModel, frozen=True, extra="forbid"):
    pass


class GuidelineNote(_Part):
    """An active guideline, or a step of a journey as `journey-step`.

    `outcome` is None if nobody knows, and `reason` says why the guideline is not followed. The other fields are those
    of a `GuidelineMatch`.
    """

    id: str
    score: int | None = None
    rationale: str = ""
    origin: Literal["model", "code", "relation", "failure"] = "model"
    outcome: Outcome | None = None
    reason: str = ""


class VerdictNote(_Part):
    """The verdict on a proposed call; the fields are those of a `ToolVerdict`."""

    tool: str
    kind: Literal["run", "missing", "invalid", "confirm", "declined"]
    argument: str | None = None
    problem: str = ""
    rationale: str = ""


class TurnNote(_Part):
    """What one agent concluded in one turn.

    Args:
        agent: Its name.
        guidelines: The active guidelines and journey steps, at most 100.
        omitted: The number of further active ones.
        inactive: The number of those that were judged, and are not active.
        is_checked: Whether the sent reply was checked for guidelines that it breaks.
        unlocked: The tools that could be called; None if the specification isn't known.
        verdicts: The verdicts on proposed calls.
        confirmed: The tools of the calls that the customer's message agreed to.
        violations: What code still has against the reply that was sent.
        revisions: The number of candidates for the reply.
    """

    agent: str
    guidelines: tuple[GuidelineNote, ...] = ()
    omitted: int = 0
    inactive: int = 0
    is_checked: bool = False
    unlocked: tuple[str, ...] | None = None
    verdicts: tuple[VerdictNote, ...] = ()
    confirmed: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    revisions: int = 0


_NOTES = TypeAdapter(tuple[TurnNote, ...])


def read_turn_notes(metadata: Mapping[str, Any]) -> tuple[TurnNote, ...]:
    """Return the notes in the metadata of a message; none if there are none, or if they have another form."""
    try:
        return _NOTES.validate_python(metadata.get(TURN_NOTES, ()))
    except ValidationError:
        return ()


class GuidelineUse(_Part):
    """How often a guideline or a journey step was active in a conversation, and what became of it.

    Args:
        agent: The agent's name.
        guideline: The guideline's id, or `journey-step`.
        turns: The turns in which it was active, among the guidelines that are noted.
        followed: Of these, the turns whose reply followed it.
        checked: Those whose reply was checked for guidelines that it breaks; the next two are among them.
        broken: Those whose reply broke it.
        excused: Those whose reply did not follow it for a reason that counts.
        scored: Those in which a model gave it a score.
        score_sum: The sum of these scores, each 1 to 10.
        reasons: Why it was broken, in the model's words, with the number of turns.
    """

    agent: str
    guideline: str
    turns: int = 0
    followed: int = 0
    checked: int = 0
    broken: int = 0
    excused: int = 0
    scored: int = 0
    score_sum: int = 0
    reasons: Mapping[str, int] = {}


def count_guideline_uses(notes: Iterable[TurnNote]) -> tuple[GuidelineUse, ...]:
    """Return how often each guideline was active in these turns, in the order in which they first were."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    reasons: dict[tuple[str, str], Counter[str]] = {}
    for note in notes:
        for guideline in note.guidelines:
            key = (note.agent, guideline.id)
            count = counts.setdefault(key, Counter())
            count["turns"] += 1
            count["checked"] += note.is_checked
            if guideline.outcome is not None:
                count[guideline.outcome] += 1
            if guideline.outcome == "broken":
                reasons.setdefault(key, Counter())[guideline.reason] += 1
            if guideline.score is not None and guideline.origin == "model":
                count["scored"] += 1
                count["score_sum"] += guideline.score
    uses = []
    for key, count in counts.items():
        agent, id = key
        uses.append(GuidelineUse(agent=agent, guideline=id, reasons=reasons.get(key, {}), **count))
    return tuple(uses)
