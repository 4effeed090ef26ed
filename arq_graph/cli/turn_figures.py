"""The figures of a turn-level evaluation, as data and as tables."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.table import Table

from arq_graph.cli.figures import counted
from arq_graph.cli.screen import output, printable, words
from arq_graph.milestones.turn_level.evaluation import TurnEvaluation
from arq_graph.milestones.turn_level.metrics import TurnMetrics
from arq_graph.milestones.turn_level.similarity import scorer

MOST_PAIRS = 10


def as_data(dataset: Path, asked: str, found: TurnEvaluation) -> dict[str, Any]:
    """The figures as one JSON object.

    Args:
        dataset: The file that was evaluated on.
        asked: What was asked, as it is shown.
        found: What came of it.
    """
    return {
        "dataset": str(dataset),
        "asked": asked,
        "similarity": scorer(None).name,
        "metrics": found.metrics.model_dump(),
        "broken": [broken.model_dump() for broken in found.broken],
    }


def show(asked: str, metrics: TurnMetrics) -> None:
    """Print the figures, each with its n, and what went wrong."""
    console = output()
    said = f"{counted(metrics.steps, 'step')} of {counted(metrics.conversations, 'conversation')} · {asked}"
    console.print(words(said, "bold"), soft_wrap=True)
    console.print(_figures(metrics))
    if wrong := [(kind.replace("_", " "), count) for kind, count in metrics.confusion.items() if count]:
        console.print()
        console.print(words("What went wrong", "bold"))
        console.print(_counted(wrong))
    if metrics.mistaken:
        console.print()
        console.print(words("Taken for another (truth → predicted)", "bold"))
        pairs = [(f"{each.truth} → {each.predicted}", each.count) for each in metrics.mistaken]
        console.print(_counted(pairs[:MOST_PAIRS]))
        if len(pairs) > MOST_PAIRS:
            console.print(words(f"and {len(pairs) - MOST_PAIRS} more kinds (--json shows all)", "dim"))


def _figures(metrics: TurnMetrics) -> Table:
    calls, answers, matches = metrics.tool_calls, metrics.final_answers, metrics.parameter_match
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("figure", "value", "n", "of"):
        table.add_column(name, justify="right" if name in ("value", "n") else "left", overflow="fold")
    for name, value, n, of in (
        ("action recall", metrics.action_recall.rate, metrics.action_recall.n, "steps"),
        ("tool calls: precision", calls.precision, calls.predicted, "calls predicted"),
        ("tool calls: recall", calls.recall, calls.actual, "calls made"),
        ("tool calls: F1", calls.f1, calls.predicted + calls.actual, "both"),
        ("parameter match (full)", matches.rate, matches.n, "steps, tools right"),
        ("final answers: precision", answers.precision, answers.predicted, "answers predicted"),
        ("final answers: recall", answers.recall, answers.actual, "answers given"),
        ("final answers: F1", answers.f1, answers.predicted + answers.actual, "both"),
        ("answer similarity (words)", metrics.similarity.mean, metrics.similarity.n, "steps, both answers"),
    ):
        shown = "-" if value is None else f"{value:.3f}"
        table.add_row(words(name), words(shown, "bold"), words(f"{n:,}"), words(of, "dim"))
    return table


def _counted(rows: Iterable[tuple[str, int]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", min_width=6)
    grid.add_column(overflow="fold")
    for name, count in rows:
        grid.add_row(words(f"{count:,}"), words(printable(name, 120)))
    return grid
