"""The measure as an evaluator of other frameworks, in the shape of openevals, agentevals and LangSmith's `evaluate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judge import Judge
from arq_graph.milestones.scoring import Score, ascore, score
from arq_graph.milestones.transcripts.formats import read_transcript


def milestone_evaluator(graph: MilestoneGraph, judge: Judge | None = None) -> Callable[..., Any]:
    """Return an evaluator of conversations for openevals, agentevals and LangSmith's `evaluate`.

    Its argument `outputs` is the whole conversation, with the user's messages, as `read_transcript` reads it; others
    aren't used. It returns a list of two dicts with the keys `key`, `score`, `comment` and `metadata`:
    `goal_completion` (true or false) and `progress_rate` (0 to 1). What is undecided has the score None. The metadata
    hold the ends of the range (`low` and `high`, 0 to 1) and names: `reached`, `next`, `undecided` and `forbidden`.
    Calling it raises what `read_transcript` and `score` raise.

    Args:
        graph: The milestones.
        judge: Decides what code cannot, as in `score`.
    """

    def evaluate_milestones(*, outputs: Any, **_: Any) -> list[dict[str, Any]]:
        return _make_results(score(graph, read_transcript(outputs), judge=judge))

    return evaluate_milestones


def amilestone_evaluator(graph: MilestoneGraph, judge: Judge | None = None) -> Callable[..., Any]:
    """Return the same evaluator as an async function, for LangSmith's `aevaluate`; the judge may be async, too."""

    async def evaluate_milestones(*, outputs: Any, **_: Any) -> list[dict[str, Any]]:
        return _make_results(await ascore(graph, read_transcript(outputs), judge=judge))

    return evaluate_milestones


def _make_results(measured: Score) -> list[dict[str, Any]]:
    names: dict[str, Any] = {
        "reached": list(measured.reached),
        "next": list(measured.frontier),
        "undecided": list(measured.undecided),
        "forbidden": [str(event.rule) for event in measured.forbidden],
    }
    remarks: list[str] = []
    for label, values in names.items():
        if values:
            remarks.append(f"{label}: {', '.join(values)}")
    comment = "; ".join(remarks)
    low, high = measured.progress_range or (None, None)
    progress = {"low": low, "high": high, **names}
    goal = progress.copy()
    if measured.progress_range is not None:
        goal["low"] = float(measured.goal_completed is True)
        goal["high"] = float(measured.goal_completed is not False)
    return [
        {"key": "goal_completion", "score": measured.goal_completed, "comment": comment, "metadata": goal},
        {"key": "progress_rate", "score": measured.progress_rate, "comment": comment, "metadata": progress},
    ]
