"""What an evaluation adds to a report in the terminal: what each arm cost, and which of two is better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from rich.console import Console, RenderableType

from arq_graph.cli.figures import (
    NOT_KNOWN,
    average,
    columns,
    counted,
    one_line,
    points,
    probability,
    rate_change,
)
from arq_graph.cli.screen import printable, words
from arq_graph.milestones.reports.figures import ArmComparison, Mean, Summary
from arq_graph.milestones.reports.records import Ended
from arq_graph.milestones.reports.report import Report

_NAME_WIDTH = 40
_REASON = 400
_SHORT_REASON = 100
_ARMS_SHOWN = 5
_ENDS: Mapping[Ended, str] = {
    "user": "the user left",
    "turns": "limit of turns",
    "calls": "limit of calls",
    "seconds": "limit of time",
    "error": "an error",
}


def show_comparisons(report: Report, console: Console) -> None:
    """Print what each arm cost, why conversations ended, and the arms in pairs."""
    for part in _parts(report):
        console.print(part)


def _parts(report: Report) -> Iterator[RenderableType]:
    arms = report.summary.arms
    if not arms:
        return
    yield ""
    yield _costs(report)
    if any(reason != "user" for one in arms.values() for reason in one.ended):
        yield ""
        yield _ends(report)
    if report.summary.comparisons:
        yield ""
        yield _pairs(report.summary.comparisons)
        yield ""
        yield words(
            "Differences are the second arm minus the first, over the runs that both have; […] are 95% intervals. p is "
            "corrected for the number of comparisons (Holm). Where no difference is shown there may still be one.",
            "dim",
        )
    yield from _errors(report)


def _errors(report: Report) -> Iterator[RenderableType]:
    """Which arms failed, each with what it was most often; the first whole."""
    failed = [one for one in report.conversations if one.error is not None]
    if not failed:
        return
    reasons: dict[str, Counter[str]] = {}
    for one in failed:
        reasons.setdefault(one.arm or "", Counter())[_first_line(one.error or "")] += 1
    yield ""
    yield words(
        f"{counted(len(failed), 'conversation')} ended in an error, measured as far as it had come. The first: "
        f"{one_line(failed[0].id)}: {printable(_first_line(failed[0].error or ''), _REASON)}",
        "yellow",
    )
    arms = sorted(reasons.items(), key=lambda arm: -arm[1].total())
    if len(arms) == 1 and len(arms[0][1]) == 1:
        return  # the first says it all
    for name, said in arms[:_ARMS_SHOWN]:
        reason, count = said.most_common(1)[0]
        often = "" if len(said) == 1 else f", {count:,} of them"
        yield words(
            f"{one_line(name)}: {said.total():,}{often}: {printable(reason, _SHORT_REASON)}", "yellow"
        )
    if len(arms) > _ARMS_SHOWN:
        yield words(f"and {counted(len(arms) - _ARMS_SHOWN, 'further arm')}", "yellow")


def _first_line(error: str) -> str:
    """The first line of an error, whole: what it begins with does not yet say what was wrong."""
    return next((line for line in error.splitlines() if line.strip()), "")


def _costs(report: Report) -> RenderableType:
    return columns(
        "a conversation",
        ["model calls", "tokens read", "written", "seconds a turn"],
        (
            (name, [*(_mean(each) for each in _spent(one)), _seconds(one.turn_seconds)])
            for name, one in report.summary.arms.items()
        ),
        name_width=_NAME_WIDTH,
    )


def _spent(summary: Summary) -> tuple[Mean | None, ...]:
    return summary.model_calls, summary.input_tokens, summary.output_tokens


def _mean(mean: Mean | None) -> str:
    if mean is None or mean.mean is None:
        return NOT_KNOWN
    return f"{mean.mean:,.0f}" if mean.mean >= 1_000 else average(mean.mean)


def _seconds(mean: Mean | None) -> str:
    return NOT_KNOWN if mean is None or mean.mean is None else f"{mean.mean:.2f}"


def _ends(report: Report) -> RenderableType:
    reasons = [reason for reason in _ENDS if any(reason in one.ended for one in report.summary.arms.values())]
    return columns(
        "ended by",
        [_ENDS[reason] for reason in reasons],
        (
            (name, [f"{one.ended.get(reason, 0):,}" for reason in reasons])
            for name, one in report.summary.arms.items()
        ),
        name_width=_NAME_WIDTH,
    )


def _pairs(comparisons: tuple[ArmComparison, ...]) -> RenderableType:
    return columns(
        "compared",
        ["pairs", "goal completion", "p", "progress rate", "p", "better"],
        (
            (
                f"{one_line(each.a)}, {one_line(each.b)}",
                [
                    f"{overall.pairs:,}",
                    points(goal.difference, goal.low, goal.high),
                    probability(goal.p),
                    rate_change(rate.difference, rate.low, rate.high),
                    probability(rate.p),
                    _better(each),
                ],
            )
            for each in comparisons
            for overall in [each.comparison.overall]
            for goal, rate in [(overall.goal_completion, overall.progress_rate)]
        ),
        name_width=_NAME_WIDTH,
    )


def _better(each: ArmComparison) -> str:
    overall = each.comparison.overall
    names = {"a better": one_line(each.a), "b better": one_line(each.b)}
    for figure, difference in (("goal", overall.goal_completion), ("rate", overall.progress_rate)):
        if name := names.get(difference.verdict):
            return f"{name} ({figure})"
    return "not shown"
