"""`arq-graph compare`: two reports side by side, and whether one of them is better."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from rich.text import Text
from typer import Argument, Exit, Option

from arq_graph.cli import options
from arq_graph.cli.exit_codes import THRESHOLD_MISSED, WRONG_INPUT
from arq_graph.cli.report_view import figure_table, format_count, list_names
from arq_graph.cli.screen import join_parts, print_json, safe_text, show, warn, warning_text
from arq_graph.milestones.reports.comparison import Comparison, GraphPair
from arq_graph.milestones.reports.comparison import compare as compare_reports
from arq_graph.milestones.reports.comparison_tables import DIFFERENCE, format_difference
from arq_graph.milestones.reports.report import format_stand_in_notice, read_report
from arq_graph.milestones.reports.table_format import format_number, format_percent

_FIGURES = {
    "customer's goal": "goal_reached",
    "goal completion": "goal_completion",
    "progress rate": "progress_rate",
}


def compare(
    a: Annotated[Path, Argument(metavar="A.json", help="A report of `score --json` or `evaluate --json`.")],
    b: Annotated[Path, Argument(metavar="B.json", help="Another one, over the same conversations.")],
    as_json: options.AsJson = False,
    fail_if_worse: Annotated[
        bool,
        Option("--fail-if-worse", help="End with the exit code 5 if a figure of B is worse than that of A."),
    ] = False,
) -> None:
    """See whether one of two reports is better, and how certain that is.

    With --fail-if-worse, the exit code is 5 if a figure over all pairs is called worse in B: p is below 0.05, and the
    interval of the paired difference lies below 0.
    """
    comparison = compare_reports(read_report(a), read_report(b))
    if as_json:
        print_json({"a": str(a), "b": str(b)} | comparison.model_dump(mode="json"))
    else:
        _show_comparison(comparison, a, b)
    if not comparison.overall.pairs:
        raise Exit(WRONG_INPUT)
    worse: list[str] = []
    for title, figure in _FIGURES.items():
        difference = getattr(comparison.overall, figure)
        if difference and difference.verdict == "a better":
            worse.append(title)
    if fail_if_worse and worse:
        warn(f"B is worse: {', '.join(worse)}")
        raise Exit(THRESHOLD_MISSED)


def _show_comparison(comparison: Comparison, a: Path, b: Path) -> None:
    notice = format_stand_in_notice(comparison.stand_ins)
    if notice:
        show(notice, style="yellow")
    show(_size_line("A", a, comparison.conversations_a, comparison.broken_a))
    show(_size_line("B", b, comparison.conversations_b, comparison.broken_b))
    show(format_count(comparison.overall.pairs, "pair"))
    if comparison.different_graphs:
        differences = list_names([_describe_graphs(graphs) for graphs in comparison.different_graphs])
        show(warning_text(f"the two reports were not measured alike: {differences}."))
    for name, unpaired in (("A", comparison.only_a), ("B", comparison.only_b)):
        if unpaired:
            count = format_count(len(unpaired), "conversation")
            show(f"only in {name}: {count} ({list_names(unpaired)})", style="yellow")
    if comparison.overall.pairs:
        show(*_describe_verdict(comparison), style="bold")
        _show_figures(comparison)
        show("", *_remarks(comparison), style="dim")
    else:
        remark = "A pair has the same use case and task, or the same use case and id."
        show(warning_text(f"there is nothing to compare. {remark}"))


def _describe_verdict(comparison: Comparison) -> Iterator[str]:
    """Yield which report is better in which figures, or that no difference is shown."""
    figures: dict[str, list[str]] = {}
    for title, figure in _FIGURES.items():
        difference = getattr(comparison.overall, figure)
        if difference:
            figures.setdefault(difference.verdict, []).append(title)
    for verdict, titles in figures.items():
        names = ", ".join(titles)
        if verdict == "no difference shown":
            yield f"No difference between A and B is shown in: {names}."
        else:
            yield f"{verdict[0].upper()} is better in: {names}."


def _describe_graphs(graphs: GraphPair) -> str:
    if graphs.a == graphs.b:
        return f"the milestones of {graphs.a!r} are not the same in A and in B"
    return f"A on {graphs.a!r}, B on {graphs.b!r}"


def _size_line(name: str, file: Path, conversations: int, broken: int) -> Text:
    size = format_count(conversations, "conversation")
    if broken:
        size += f", {format_count(broken, 'record')} could not be scored"
    return join_parts(safe_text(name, "bold"), f"  {size}  {file}")


def _show_figures(comparison: Comparison) -> None:
    groups = {"all": comparison.overall}
    if len(comparison.use_cases) > 1:
        groups = dict(comparison.use_cases) | groups
    for title, figure in _FIGURES.items():
        is_rate = figure == "progress_rate"
        format_figure = format_number if is_rate else format_percent
        rows = []
        for name, group in groups.items():
            difference = getattr(group, figure)
            if difference:
                figures = [format_figure(difference.a), format_figure(difference.b)]
                cells = format_difference(difference, "A", "B", is_rate=is_rate)
                rows.append((name, figures + list(cells.values())))
        if rows:
            show("", figure_table(title, ["A", "B", *DIFFERENCE], rows))


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
    are_tasks_repeated = False
    for title, figure in _FIGURES.items():
        difference = getattr(comparison.overall, figure)
        if difference and difference.left_out:
            count = format_count(difference.left_out, "pair")
            yield f"{count} left out of {title}: undecided, or nothing to do."
        if difference and difference.tasks < difference.pairs:
            are_tasks_repeated = True
    if are_tasks_repeated:
        yield "Runs of one task depend on each other: intervals and p are of whole tasks."
    if len(comparison.use_cases) > 1:
        yield f"p of the {len(comparison.use_cases)} use cases is corrected for their number (Holm)."
