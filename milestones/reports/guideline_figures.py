"""The figures of guidelines over many conversations: how often they were active, followed and broken, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from arq_graph.milestones.reports.records import ConversationRecord, Record
from arq_graph.milestones.turn_note import GuidelineUse

_MAX_REASONS = 3


class GuidelineFigures(Record):
    """The figures of one guideline, or of a step of a journey.

    Args:
        agent: The name of its agent.
        guideline: Its id, or `journey-step`.
        conversations: The number of conversations in which it was active.
        turns: The number of turns in which it was active.
        followed: Of these turns, those whose reply followed it.
        checked: Those whose reply was checked for guidelines that it breaks; the modes without queries don't check.
        broken: Those whose reply broke it; None if no reply was checked.
        broken_conversations: The number of conversations with such a turn.
        excused: The turns whose reply did not follow it for a reason that counts; None if no reply was checked.
        score: The mean of the scores that a model gave it, 1 to 10; None if no model did.
        reasons: Why it was broken, in the model's words, with the number of turns: the three most frequent.
    """

    agent: str
    guideline: str
    conversations: int
    turns: int
    followed: int
    checked: int
    broken: int | None
    broken_conversations: int
    excused: int | None
    score: float | None
    reasons: Mapping[str, int] = {}


def compute_guideline_figures(records: Iterable[ConversationRecord]) -> tuple[GuidelineFigures, ...]:
    """Return the figures of each guideline: those most often broken first, then those most often active."""
    uses: dict[tuple[str, str], list[GuidelineUse]] = {}
    for record in records:
        for use in record.guidelines:
            uses.setdefault((use.agent, use.guideline), []).append(use)
    figures = [_summarize_uses(agent, id, group) for (agent, id), group in uses.items()]
    return tuple(sorted(figures, key=lambda one: (-one.broken_conversations, -one.turns)))


def _summarize_uses(agent: str, id: str, uses: list[GuidelineUse]) -> GuidelineFigures:
    sums: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for use in uses:
        sums.update(use.model_dump(exclude={"agent", "guideline", "reasons"}))
        sums["broken_conversations"] += bool(use.broken)
        reasons.update(use.reasons)
    del reasons[""]
    is_checked = sums["checked"] > 0
    return GuidelineFigures(
        agent=agent,
        guideline=id,
        conversations=len(uses),
        turns=sums["turns"],
        followed=sums["followed"],
        checked=sums["checked"],
        broken=sums["broken"] if is_checked else None,
        broken_conversations=sums["broken_conversations"],
        excused=sums["excused"] if is_checked else None,
        score=sums["score_sum"] / sums["scored"] if sums["scored"] else None,
        reasons=dict(reasons.most_common(_MAX_REASONS)),
    )
