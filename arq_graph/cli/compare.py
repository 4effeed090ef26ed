"""`arq-graph compare`: two reports side by side, and whether a difference is shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from arq_graph.cli.failures import WRONG_INPUT
from arq_graph.cli.figures import (
    columns,
    counted,
    listed,
    number_between,
    one_line,
    percent,
    points,
    probability,
    rate_change,
    with_use_cases,
)
from arq_graph.cli.options import AsJson
from arq_graph.cli.screen import output, print_json, sentence, words
from arq_graph.errors import InputError
from arq_graph.milestones.reports.comparison import Comparison
from arq_graph.milestones.reports.comparison import compare as compared
from arq_graph.milestones.reports.differences import ComparedGroup, Difference
from arq_graph.milestones.reports.report import read_report, stand_in_notice

_NAMED = 5
_NAME_WIDTH = 18

Names = tuple[str, str]


def compare(
    a: Annotated[Path, typer.Argument(metavar="A.json", help="A report that `score --json` wrote.")],
    b: Annotated[Path, typer.Argument(metavar="B.json", help="Another, over the same conversations.")],
    names: Annotated[
        tuple[str, str], typer.Option("--names", metavar="A B", help="What to call the two.")
    ] = ("A", "B"),
    as_json: AsJson = False,
) -> None:
    """See whether one of two reports is better, and how sure that is."""
    shown = (one_line(names[0]), one_line(names[1]))
    if shown[0] == shown[1] or not all(name.strip() for name in names):
        raise InputError("--names takes two names that differ, such as --names before after")
    comparison = compared(read_report(a), read_report(b))
    if as_json:
        files = {"a": {"name": names[0], "file": str(a)}, "b": {"name": names[1], "file": str(b)}}
        print_json({**files, **comparison.model_dump(mode="json")})
    else:
        console = output()
        for part in _parts(comparison, (a, b), shown):
            console.print(part)
    if not comparison.overall.pairs:
        raise typer.Exit(WRONG_INPUT)


def _parts(comparison: Comparison, files: tuple[Path, Path], names: Names) -> Iterator[RenderableType]:
    if notice := stand_in_notice(comparison.stand_ins):
        yield words(notice, "yellow")
    sizes = (comparison.conversations_a, comparison.conversations_b)
    broken = (comparison.broken_a, comparison.broken_b)
    for name, file, size, unread in zip(names, files, sizes, broken, strict=True):
        lost = f", {counted(unread, 'record')} could not be scored" if unread else ""
        yield sentence(words(name, "bold"), f"  {counted(size, 'conversation')}{lost}  {file}")
    yield words(counted(comparison.overall.pairs, "pair"))
    for name, only in zip(names, (comparison.only_a, comparison.only_b), strict=True):
        if only:
            said = f"only in {name}: {counted(len(only), 'conversation')} ({listed(only, _NAMED)})"
            yield words(said, "yellow")
    if comparison.overall.pairs:
        yield from _measured(comparison, names)
    else:
        yield _warning(
            "there is nothing to compare. A pair has the same use case and task, or the same use case and id."
        )
    if comparison.different_graphs:
        differ = listed(comparison.different_graphs, _NAMED)
        yield _warning(f"not measured alike: {differ} differ between the two reports.")


def _warning(text: str) -> Text:
    return sentence(words("warning: ", "yellow"), text)


def _measured(comparison: Comparison, names: Names) -> Iterator[RenderableType]:
    yield ""
    for title, difference in _figures(comparison.overall):
        better = _better(difference, names)
        yield sentence(f"{title}: ", words(f"{better} better" if better else str(difference.verdict), "bold"))
    groups = with_use_cases(comparison.overall, comparison.use_cases)
    goals = [(name, group.goal_completion) for name, group in groups.items()]
    rates = [(name, group.progress_rate) for name, group in groups.items()]
    tables = (
        ("goal completion", goals, percent, points),
        ("progress rate", rates, number_between, rate_change),
    )
    for title, rows, figure, change in tables:
        yield ""
        yield columns(
            title,
            [*names, "difference", "p", "n", "better"],
            (
                (
                    name,
                    [figure(of.a), figure(of.b), change(of.difference, of.low, of.high), *_ends(of, names)],
                )
                for name, of in rows
            ),
            name_width=_NAME_WIDTH,
        )
    yield ""
    yield from (words(line, "dim") for line in _remarks(comparison, names))


def _figures(group: ComparedGroup) -> tuple[tuple[str, Difference], ...]:
    goal = (("customer's goal", group.goal_reached),) if group.goal_reached is not None else ()
    return (*goal, ("goal completion", group.goal_completion), ("progress rate", group.progress_rate))


def _better(difference: Difference, names: Names) -> str | None:
    return {"a better": names[0], "b better": names[1]}.get(difference.verdict)


def _ends(difference: Difference, names: Names) -> list[str]:
    return [probability(difference.p), f"{difference.pairs:,}", _better(difference, names) or "not shown"]


def _remarks(comparison: Comparison, names: Names) -> Iterator[str]:
    overall = comparison.overall
    yield (
        f"Differences are {names[1]} - {names[0]}, in points or in the rate, over the n pairs that both know; […] "
        "are 95% intervals. One is called better where p is below 0.05 and the interval leaves 0 out. Where no "
        "difference is shown there may still be one."
    )
    split = overall.split
    yield (
        f"Goal completed by both {split.both:,}, by neither {split.neither:,}, by {names[0]} alone "
        f"{split.only_a:,}, by {names[1]} alone {split.only_b:,}."
    )
    for title, difference in _figures(overall):
        if difference.left_out:
            yield f"{counted(difference.left_out, 'pair')} left out of {title}: undecided, or nothing to do."
    if comparison.runs > 1:
        yield (
            f"Tasks were run up to {comparison.runs} times. Runs of one task depend on each other, so intervals draw "
            "whole tasks, and p is the share of the ways to swap whole tasks that differ as much."
        )
    else:
        yield "p is McNemar's exact test for goal completion, and turned signs for the progress rate."
    if len(comparison.use_cases) > 1:
        yield f"p of the {len(comparison.use_cases)} use cases is corrected for their number (Holm)."
