"""Notes of what an agent of this library concluded in a turn, kept with the messages of an evaluated conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, TypeAdapter, ValidationError

from arq_graph.errors import shorten

TURN_NOTES = "turn_notes"
"""Key of the `response_metadata` of the reply that ends a turn, in a results file: a list of `TurnNote`."""
_MAX_CHARACTERS = 200

_Text = Annotated[str, AfterValidator(lambda text: shorten(text, _MAX_CHARACTERS))]


class _Part(BaseModel, frozen=True, extra="forbid", from_attributes=True):
    pass


class GuidelineNote(_Part):
    """An active guideline, or a step of a journey as `journey-step`, with fields of its `GuidelineMatch`.

    `outcome` is None if nobody knows, and `reason` says why the reply broke it.
    """

    id: str
    score: int | None = None
    rationale: _Text = ""
    origin: Literal["model", "code", "relation", "failure"] = "model"
    outcome: Literal["followed", "broken"] | None = None
    reason: _Text = ""


class VerdictNote(_Part):
    """The verdict on a proposed call; the fields are those of a `ToolVerdict`."""

    tool: str
    kind: Literal["run", "missing", "invalid", "confirm", "declined"]
    argument: str | None = None
    problem: _Text = ""
    rationale: _Text = ""


class TurnNote(_Part):
    """What one agent concluded in one turn; lists have at most 100 entries, and texts 200 characters.

    Args:
        agent: Its name.
        guidelines: The active guidelines and journey steps; those that the reply broke come first.
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
    inactive: int = 0
    is_checked: bool = False
    unlocked: tuple[str, ...] | None = None
    verdicts: tuple[VerdictNote, ...] = ()
    confirmed: tuple[str, ...] = ()
    violations: tuple[_Text, ...] = ()
    revisions: int = 0


_NOTES = TypeAdapter(tuple[TurnNote, ...])


def read_turn_notes(metadata: Mapping[str, Any]) -> tuple[TurnNote, ...]:
    """Return the notes in the metadata of a message; none if there are none, or if they have another form."""
    try:
        return _NOTES.validate_python(metadata.get(TURN_NOTES, ()))
    except ValidationError:
        return ()


class GuidelineUse(_Part):
    """How often a guideline, or a step of a journey, was active in conversations, and what became of it.

    Args:
        agent: The name of its agent.
        guideline: Its id, or `journey-step`.
        conversations: The conversations in which it was active, among the guidelines that are noted.
        broken_conversations: Those of them with a reply that broke it.
        turns: The turns in which it was active. The next three count some of them.
        followed: Those whose reply followed it.
        checked: Those whose reply was checked for guidelines that it breaks; the modes without queries don't check.
        broken: Those whose reply broke it.
        scored: Those in which a model gave it a score; `score_sum` is the sum of these scores, each 1 to 10.
        reasons: Why it was broken, in the model's words, with the number of turns.
    """

    agent: str
    guideline: str
    conversations: int = 1
    broken_conversations: int = 0
    turns: int = 1
    followed: int = 0
    checked: int = 0
    broken: int = 0
    scored: int = 0
    score_sum: int = 0
    reasons: Mapping[str, int] = {}

    @property
    def score(self) -> float | None:
        """The mean of the scores that a model gave it, 1 to 10; None if no model did."""
        return self.score_sum / self.scored if self.scored else None


def count_guideline_uses(notes: Iterable[TurnNote]) -> tuple[GuidelineUse, ...]:
    """Return how often each guideline was active in the turns of a conversation."""
    uses = []
    for note in notes:
        for guideline in note.guidelines:
            is_broken = guideline.outcome == "broken"
            is_scored = guideline.score is not None and guideline.origin == "model"
            use = GuidelineUse(
                agent=note.agent,
                guideline=guideline.id,
                followed=guideline.outcome == "followed",
                checked=note.is_checked,
                broken=is_broken,
                scored=is_scored,
                score_sum=(guideline.score or 0) * is_scored,
                reasons={guideline.reason: 1} if is_broken else {},
            )
            uses.append(use)
    added = []
    for use in add_guideline_uses(uses):
        added.append(use.model_copy(update={"conversations": 1, "broken_conversations": min(use.broken, 1)}))
    return tuple(added)


def add_guideline_uses(uses: Iterable[GuidelineUse]) -> tuple[GuidelineUse, ...]:
    """Return one record for each guideline: those most often broken first, then those most often active."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    reasons: dict[tuple[str, str], Counter[str]] = {}
    for use in uses:
        key = (use.agent, use.guideline)
        sums.setdefault(key, Counter()).update(use.model_dump(exclude={"agent", "guideline", "reasons"}))
        reasons.setdefault(key, Counter()).update(use.reasons)
    added = []
    for (agent, id), counts in sums.items():
        sorted_reasons = dict(reasons[agent, id].most_common())
        added.append(GuidelineUse(agent=agent, guideline=id, reasons=sorted_reasons, **counts))
    return tuple(sorted(added, key=lambda use: (-use.broken_conversations, -use.broken, -use.turns)))
