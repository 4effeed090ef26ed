"""What `arq-graph compare` prints: two reports side by side, and whether a difference is shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import typer
from rich.console import RenderableType

from arq_graph.cli.failures import WRONG_INPUT
from arq_graph.cli.figures import (
    columns,
    counted,
    number_between,
    one_line,
    percent,
    points,
    probability,
    rate_change,
)
from arq_graph.cli.screen import output, print_json, sentence, words
from arq_graph.errors import InputError
from arq_graph.milestones.reports.comparison import compare as compared
from arq_graph.milestones.reports.figures import ComparedGroup, Comparison, Difference
from arq_graph.milestones.reports.report import read_report, stand_in_notice

_NAMED = 5
_NAME_WIDTH = 18

Names = tuple[str, str]


def compare_reports(a: Path, b: Path, names: Names, *, as_json: bool) -> None:
    """Read two reports, compare them, and print what came of it."""
    if one_line(names[0]) == one_line(names[1]) or not all(name.strip() for name in names):
        raise InputError("--names takes two names that differ, such as --names before after")
    comparison = compared(read_report(a), read_report(b))
    if as_json:
        files = {"a": {"name": names[0], "file": str(a)}, "b": {"name": names[1], "file": str(b)}}
        print_json({**files, **comparison.model_dump(mode="json")})
    else:
        console = output()
        for part in _parts(comparison, (a, b), (one_line(names[0]), one_line(names[1]))):
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
    overall = comparison.overall
    yield words(counted(overall.pairs, "pair"))
    yield from _unpaired(comparison, names)
    if overall.pairs:
        yield ""
        for title, difference in _figures(overall):
            yield sentence(f"{title}: ", words(_verdict(difference, names), "bold"))
        yield ""
        yield _goals(comparison, names)
        yield ""
        yield _rates(comparison, names)
        yield ""
        yield from (words(line, "dim") for line in _remarks(comparison, names))
    if comparison.different_graphs:
        yield sentence(
            words("warning: ", "yellow"),
            f"not measured alike: {_listed(comparison.different_graphs)} differ between the two reports.",
        )


def _unpaired(comparison: Comparison, names: Names) -> Iterator[RenderableType]:
    for name, only in zip(names, (comparison.only_a, comparison.only_b), strict=True):
        if only:
            yield words(f"only in {name}: {counted(len(only), 'conversation')} ({_listed(only)})", "yellow")
    if not comparison.overall.pairs:
        yield sentence(
            words("warning: ", "yellow"),
            "there is nothing to compare. A pair has the same use case and task, or the same use case and id.",
        )


def _figures(group: ComparedGroup) -> tuple[tuple[str, Difference], ...]:
    goal = (("customer's goal", group.goal_reached),) if group.goal_reached is not None else ()
    return (*goal, ("goal completion", group.goal_completion), ("progress rate", group.progress_rate))


def _verdict(difference: Difference, names: Names) -> str:
    better = {"a better": names[0], "b better": names[1]}.get(difference.verdict)
    return f"{better} better" if better is not None else difference.verdict


def _groups(comparison: Comparison) -> Iterator[tuple[str, ComparedGroup]]:
    yield "all", comparison.overall
    if list(comparison.use_cases.values()) == [comparison.overall]:
        return
    for name, group in comparison.use_cases.items():
        # A use case may be called what the row of all is called.
        yield name if name != "all" else "all (use case)", group


def _headings(names: Names) -> list[str]:
    return [*names, "difference", "p", "n", "better"]


def _goals(comparison: Comparison, names: Names) -> RenderableType:
    return columns(
        "goal completion",
        _headings(names),
        (
            (name, [percent(of.a), percent(of.b), points(of.difference, of.low, of.high), *_ends(of, names)])
            for name, group in _groups(comparison)
            for of in [group.goal_completion]
        ),
        name_width=_NAME_WIDTH,
    )


def _rates(comparison: Comparison, names: Names) -> RenderableType:
    return columns(
        "progress rate",
        _headings(names),
        (
            (
                name,
                [
                    number_between(of.a, None, None),
                    number_between(of.b, None, None),
                    rate_change(of.difference, of.low, of.high),
                    *_ends(of, names),
                ],
            )
            for name, group in _groups(comparison)
            for of in [group.progress_rate]
        ),
        name_width=_NAME_WIDTH,
    )


def _ends(difference: Difference, names: Names) -> list[str]:
    better = {"a better": names[0], "b better": names[1]}.get(difference.verdict, "not shown")
    return [probability(difference.p), f"{difference.pairs:,}", better]


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


def _listed(names: tuple[str, ...]) -> str:
    more = f"; and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return "; ".join(map(one_line, names[:_NAMED])) + more
