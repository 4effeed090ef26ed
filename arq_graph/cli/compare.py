"""`arq-graph compare`: two reports side by side, and whether a difference is shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from rich.console import RenderableType
from typer import Argument, Exit

from arq_graph.cli import tables
from arq_graph.cli.exit_codes import WRONG_INPUT
from arq_graph.cli.options import AsJson
from arq_graph.cli.screen import join_parts, print_json, safe_text, stdout_console, warning_text
from arq_graph.milestones.reports import shown
from arq_graph.milestones.reports.comparison import Comparison
from arq_graph.milestones.reports.comparison import compare as compared
from arq_graph.milestones.reports.report import read_report, stand_in_notice
from arq_graph.milestones.reports.tables import DIFFERENCE, difference_cells

_FIGURES = {
    "customer's goal": "goal_reached",
    "goal completion": "goal_completion",
    "progress rate": "progress_rate",
}


def compare(
    a: Annotated[Path, Argument(metavar="A.json", help="A report of `score --json` or `evaluate --json`.")],
    b: Annotated[Path, Argument(metavar="B.json", help="Another one, over the same conversations.")],
    as_json: AsJson = False,
) -> None:
    """See whether one of two reports is better, and how certain that is."""
    comparison = compared(read_report(a), read_report(b))
    if as_json:
        print_json({"a": str(a), "b": str(b), **comparison.model_dump(mode="json")})
    else:
        console = stdout_console()
        for part in _parts(comparison, (a, b)):
            console.print(part)
    if not comparison.overall.pairs:
        raise Exit(WRONG_INPUT)


def _parts(comparison: Comparison, files: tuple[Path, Path]) -> Iterator[RenderableType]:
    if notice := stand_in_notice(comparison.stand_ins):
        yield safe_text(notice, "yellow")
    sizes = (comparison.conversations_a, comparison.conversations_b)
    broken = (comparison.broken_a, comparison.broken_b)
    for name, file, size, unread in zip("AB", files, sizes, broken, strict=True):
        lost = f", {tables.counted(unread, 'record')} could not be scored" if unread else ""
        yield join_parts(safe_text(name, "bold"), f"  {tables.counted(size, 'conversation')}{lost}  {file}")
    yield safe_text(tables.counted(comparison.overall.pairs, "pair"))
    for name, only in zip("AB", (comparison.only_a, comparison.only_b), strict=True):
        if only:
            yield safe_text(
                f"only in {name}: {tables.counted(len(only), 'conversation')} ({tables.listed(only)})",
                "yellow",
            )
    if comparison.overall.pairs:
        yield from _measured(comparison)
    else:
        yield warning_text(
            "there is nothing to compare. A pair has the same use case and task, or the same use case and id."
        )
    if comparison.different_graphs:
        differ = tables.listed(comparison.different_graphs)
        yield warning_text(f"the two reports were not measured alike: {differ} differ.")


def _measured(comparison: Comparison) -> Iterator[RenderableType]:
    groups = {"all": comparison.overall}
    if len(comparison.use_cases) > 1:
        groups = dict(comparison.use_cases) | groups
    for title, figure in _FIGURES.items():
        is_rate = figure == "progress_rate"
        told = shown.number if is_rate else shown.percent
        differences = {name: of for name, group in groups.items() if (of := getattr(group, figure))}
        rows = (
            (name, [told(of.a), told(of.b), *difference_cells(of, "A", "B", is_rate=is_rate).values()])
            for name, of in differences.items()
        )
        if differences:
            yield ""
            yield tables.columns(title, ("A", "B", *DIFFERENCE), rows)
    yield ""
    yield from (safe_text(line, "dim") for line in _remarks(comparison))


def _remarks(comparison: Comparison) -> Iterator[str]:
    yield (
        "Differences are B - A, in points or in the rate, over the pairs that are decided in both; […] are 95% "
        "intervals. One report is called better if p is below 0.05 and the interval does not include 0. There may be a "
        "difference even if none is shown."
    )
    split = comparison.overall.split
    yield (
        f"Goal completed by both {split.both:,}, by neither {split.neither:,}, by A alone {split.only_a:,}, by B alone "
        f"{split.only_b:,}."
    )
    overall = {title: getattr(comparison.overall, figure) for title, figure in _FIGURES.items()}
    for title, of in overall.items():
        if of and of.left_out:
            yield f"{tables.counted(of.left_out, 'pair')} left out of {title}: undecided, or nothing to do."
    if any(of and of.tasks < of.pairs for of in overall.values()):
        yield "Runs of one task depend on each other: intervals and p are of whole tasks."
    if len(comparison.use_cases) > 1:
        yield f"p of the {len(comparison.use_cases)} use cases is corrected for their number (Holm)."
