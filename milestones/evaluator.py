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

    It is called with `outputs`: the whole conversation, the user's messages too, as a list of messages or an object
    that holds one, in any format that `read_transcript` reads. `inputs` and `reference_outputs` aren't used.

    It returns a list of two dicts with the keys `key`, `score`, `comment` and `metadata`: `goal_completion` (true or
    false) and `progress_rate` (0 to 1). What is undecided has the score None. The metadata hold the ends of the range
    (`low` and `high`, 0 to 1) and names: `reached`, `next`, `undecided` and `forbidden`. Calling the evaluator raises
    what `read_transcript` and `score` raise.

    Args:
        graph: The milestones.
        judge: Decides what code cannot, as in `score`.
    """

    def evaluate_milestones(
        inputs: Any = None,  # noqa: ARG001
        outputs: Any = None,
        reference_outputs: Any = None,  # noqa: ARG001
    ) -> list[dict[str, Any]]:
        return _make_results(score(graph, read_transcript(outputs), judge=judge))

    return evaluate_milestones


def amilestone_evaluator(graph: MilestoneGraph, judge: Judge | None = None) -> Callable[..., Any]:
    """Return the same evaluator as an async function, for LangSmith's `aevaluate`; the judge may be async, too."""

    async def evaluate_milestones(
        inputs: Any = None,  # noqa: ARG001
        outputs: Any = None,
        reference_outputs: Any = None,  # noqa: ARG001
    ) -> list[dict[str, Any]]:
        return _make_results(await ascore(graph, read_transcript(outputs), judge=judge))

    return evaluate_milestones


def _make_results(measured: Score) -> list[dict[str, Any]]:
    names: dict[str, Any] = {
        "reached": list(measured.reached),
        "next": list(measured.frontier),
        "undecided": list(measured.undecided),
        "forbidden": [str(event.rule) for event in measured.forbidden],
    }
    comment = "; ".join(f"{label}: {', '.join(values)}" for label, values in names.items() if values)
    goal = measured.goal_completed
    goal_range = progress_range = measured.progress_range or (None, None)
    if measured.progress_range is not None:
        goal_range = (0.0, 1.0) if goal is None else (float(goal), float(goal))
    results: list[dict[str, Any]] = []
    for key, value, (low, high) in (
        ("goal_completion", goal, goal_range),
        ("progress_rate", measured.progress_rate, progress_range),
    ):
        metadata = {"low": low, "high": high, **names}
        results.append({"key": key, "score": value, "comment": comment, "metadata": metadata})
    return results
