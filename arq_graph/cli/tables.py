"""A report in the terminal: its figures, where conversations stopped, what they cost, and what is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Console, RenderableType

from arq_graph.cli.failures import warn
from arq_graph.cli.figures import (
    NOT_KNOWN,
    average,
    columns,
    counted,
    number_between,
    one_line,
    percent,
    points,
    probability,
    rate_change,
    share_between,
    with_use_cases,
)
from arq_graph.cli.screen import printable, sentence, words
from arq_graph.milestones.reports.differences import ArmComparison
from arq_graph.milestones.reports.figures import Mean, Summary
from arq_graph.milestones.reports.records import BrokenConversation, Ended
from arq_graph.milestones.reports.report import Report, stand_in_notice

_SHOWN = 5
_STOPS_SHOWN = 8
_RUNS_SHOWN = 6
_WIDE = 50
_REASON = 400
_PATH = 300  # a path that is cut leads nowhere
ENDS: Mapping[Ended, str] = {
    "user": "the user left",
    "turns": "limit of turns",
    "calls": "limit of calls",
    "seconds": "limit of time",
    "error": "an error",
}

Rows = Mapping[str, Summary]
Column = tuple[str, Callable[[Summary], str]]


def show_broken(broken: Sequence[BrokenConversation], done: str) -> None:
    """Warn of the first records that are broken."""
    for one in broken[:_SHOWN]:
        warn(one.error)
    if len(broken) > _SHOWN:
        warn(f"and {len(broken) - _SHOWN:,} more that could not be {done}; --json lists them all")


def show_report(report: Report, console: Console) -> None:
    """Print a report; of an evaluation also what each arm cost, why conversations ended, and the arms in pairs."""
    if notice := stand_in_notice(report.stand_ins):
        console.print(words(notice, "yellow"))
    console.print(words(_head(report), "bold"))
    if report.summary.overall.conversations:
        for table in _tables(report):
            console.print()
            console.print(table)
        console.print()
        for line in _remarks(report):
            console.print(words(line, "dim"))
        for line in _errors(report):
            console.print(words(line, "yellow"))
        for line in _warnings(report):
            console.print(sentence(words("warning: ", "yellow"), line))


def _head(report: Report) -> str:
    said = [counted(report.summary.overall.conversations, "conversation")]
    if report.failed:
        said.append(f"{counted(len(report.failed), 'record')} could not be scored")
    return ", ".join(said)


def _tables(report: Report) -> Iterator[RenderableType]:
    arms = report.summary.arms
    rows = _arms(report) if arms else with_use_cases(report.summary.overall, report.summary.use_cases)
    yield _table("", _goals(rows), rows)
    if repeated := {name: summary for name, summary in rows.items() if summary.pass_hat_k}:
        yield _table("pass^k", _pass_hat_k(repeated), repeated)
    yield _table("mean of each", _WAY, rows)
    for arm, summary in arms.items() or {"": report.summary.overall}.items():
        if summary.stops:
            yield _stops(summary, arm)
    if arms:
        yield _table("a conversation", _COSTS, arms, _WIDE)
    reasons = [reason for reason in ENDS if any(reason in one.ended for one in arms.values())]
    if any(reason != "user" for reason in reasons):
        yield _table("ended by", [_ended_by(reason) for reason in reasons], arms, _WIDE)
    if report.summary.comparisons:
        yield _pairs(report.summary.comparisons)


def _table(title: str, shown: Sequence[Column], rows: Rows, name_width: int = 22) -> RenderableType:
    return columns(
        title,
        [heading for heading, _ in shown],
        ((name, [figure(summary) for _, figure in shown]) for name, summary in rows.items()),
        name_width=name_width,
    )


def _arms(report: Report) -> Rows:
    """By arm and kind of user: over different arms together no figure means anything."""
    rows: dict[str, Summary] = {}
    for arm, summary in report.summary.arms.items():
        rows[arm] = summary
        kinds = report.summary.arms_by_user.get(arm, {})
        if len(kinds) > 1:
            rows |= {f"{arm}, {kind} user": cell for kind, cell in kinds.items()}
    return rows


def _goals(rows: Rows) -> list[Column]:
    """What the customers came for leads, where the scenarios say; End may be reached by another road, too."""
    own = any(summary.goal_reached is not None for summary in rows.values())
    return [
        ("n", lambda summary: f"{summary.conversations:,}"),
        ("customer's goal", _reached) if own else ("completed", _completed),
        ("goal completion", _goal),
        ("progress rate", _progress),
    ]


def _reached(summary: Summary) -> str:
    goal = summary.goal_reached
    if goal is None:
        return NOT_KNOWN
    unknown = f" (and {goal.unknown:,} undecided)" if goal.unknown else ""
    return f"{goal.count:,} of {goal.n:,}{unknown}, {share_between(goal.rate, goal.low, goal.high)}"


def _completed(summary: Summary) -> str:
    least, most = summary.goal_at_least, summary.goal_at_most
    between = f" to {most.count:,}" if most.count > least.count else ""
    return f"{least.count:,}{between} of {least.n:,}"


def _goal(summary: Summary) -> str:
    least, most, rate = summary.goal_at_least, summary.goal_at_most, summary.goal_completion
    if most.count > least.count:
        return f"{percent(least.rate)} to {percent(most.rate)}"
    return share_between(rate.rate, rate.low, rate.high)


def _progress(summary: Summary) -> str:
    rate, least, most = summary.progress_rate, summary.progress_at_least, summary.progress_at_most
    if least.mean is not None and most.mean is not None and rate.n < least.n:
        return f"{least.mean:.2f} to {most.mean:.2f}"
    return number_between(rate.mean, rate.low, rate.high)


def _pass_hat_k(rows: Rows) -> list[Column]:
    every = sorted({k for summary in rows.values() for k in summary.pass_hat_k})
    shown = every if len(every) <= _RUNS_SHOWN else [*every[: _RUNS_SHOWN - 1], every[-1]]
    return [(f"k = {k}", lambda summary, k=k: percent(summary.pass_hat_k.get(k))) for k in shown]  # type: ignore[misc]


def _mean(mean: Mean | None) -> str:
    return average(mean.mean if mean is not None else None)


def _seconds(mean: Mean | None) -> str:
    return number_between(mean.mean if mean is not None else None)


_WAY: list[Column] = [
    ("turns", lambda summary: _mean(summary.turns)),
    ("calls", lambda summary: _mean(summary.calls)),
    ("wasted", lambda summary: _mean(summary.wasted_calls)),
    ("repeated", lambda summary: _mean(summary.repeated_calls)),
    ("forbidden", lambda summary: f"{summary.forbidden.count:,} ({percent(summary.forbidden.rate)})"),
]
_COSTS: list[Column] = [
    ("model calls", lambda summary: _mean(summary.model_calls)),
    ("tokens read", lambda summary: _mean(summary.input_tokens)),
    ("written", lambda summary: _mean(summary.output_tokens)),
    ("seconds a turn", lambda summary: _seconds(summary.turn_seconds)),
]


def _ended_by(reason: Ended) -> Column:
    return ENDS[reason], lambda summary: f"{summary.ended.get(reason, 0):,}"


def _stops(summary: Summary, arm: str) -> RenderableType:
    every = sum(summary.stops.values())
    stops = [
        (name if name != "End" else "End, with something forbidden on the way", count)
        for name, count in summary.stops.items()
    ]
    if rest := stops[_STOPS_SHOWN:]:
        stops = [*stops[:_STOPS_SHOWN], (f"{len(rest)} others", sum(count for _, count in rest))]
    title = f"{one_line(arm)} stopped at" if arm else "stopped at"
    rows = ((name, [f"{count:,}", percent(count / every)]) for name, count in stops)
    return columns(title, ["n", "share"], rows, name_width=_WIDE)


def _pairs(comparisons: Sequence[ArmComparison]) -> RenderableType:
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
            for overall in [each.overall]
            for goal, rate in [(overall.goal_completion, overall.progress_rate)]
        ),
        name_width=_WIDE,
    )


def _better(each: ArmComparison) -> str:
    overall = each.overall
    names = {"a better": one_line(each.a), "b better": one_line(each.b)}
    for figure, difference in (("goal", overall.goal_completion), ("rate", overall.progress_rate)):
        if name := names.get(difference.verdict):
            return f"{name} ({figure})"
    return "not shown"


def _remarks(report: Report) -> Iterator[str]:
    """What the tables mean, and what they leave out."""
    overall = report.summary.overall
    if any(summary.goal_reached is not None for summary in report.summary.arms.values()):
        yield (
            "The customer's goal is what their scenario came for; goal completion counts every road to the end of the "
            "milestone graph."
        )
    yield "[…] are 95% intervals. Wasted calls served no milestone; forbidden counts conversations."
    if overall.goal_completion.unknown > overall.nothing_to_complete or (
        overall.progress_rate.n < overall.progress_at_least.n
    ):
        yield "Figures from … to …: what nothing decides is taken for not observed, and for observed."
    if unanswered := sum(bool(one.unanswered_calls) for one in report.conversations):
        yield (
            f"In {counted(unanswered, 'conversation')} a call has no result in the record: nobody knows whether it "
            "succeeded, and it reaches no milestone."
        )
    if overall.nothing_to_complete:
        left_out = counted(overall.nothing_to_complete, "conversation")
        yield f"{left_out} left out of both rates: the graph asks for nothing there."
    named = sum(group.conversations for group in report.summary.use_cases.values())
    if 0 < named < overall.conversations:
        nameless = counted(overall.conversations - named, "conversation")
        yield f"{nameless} without a use case: in the row of all alone."
    yield from _about_runs(report.summary.arms or {"": overall})
    if overall.agreement.mean is not None:
        yield (
            f"Judge: {percent(overall.agreement.mean)} of the votes agree with the verdict, over "
            f"{counted(overall.agreement.n, 'verdict')}."
        )
    if (reward := overall.reward) is not None and reward.n:
        yield (
            f"Recorded reward: agrees with the goal in {percent(reward.rate)} of "
            f"{counted(reward.n, 'conversation')} (both {reward.both:,}, neither {reward.neither:,}, goal alone "
            f"{reward.only_goal:,}, reward alone {reward.only_reward:,})."
        )
    if report.summary.comparisons:
        yield (
            "Differences are the second arm minus the first, over the runs that both have. p is corrected for the "
            "number of comparisons (Holm). Where no difference is shown there may still be one."
        )


def _about_runs(rows: Rows) -> Iterator[str]:
    told = next((summary for summary in rows.values() if summary.pass_hat_k), None)
    if told is not None:
        tasks = told.pass_hat_k_tasks
        fewer = [f"{tasks[k]:,} for k = {k}" for k in tasks if tasks[k] < tasks[min(tasks)]]
        yield (
            f"pass^k: how likely k runs of a task all complete the goal, over {counted(tasks[min(tasks)], 'task')}"
            + (f" ({', '.join(fewer)})" if fewer else "")
            + ". Runs of one task depend on each other, which the intervals do not know: they are too narrow."
        )
    for arm, summary in rows.items():
        if summary.pass_hat_k_undecided:
            whose = f" of {one_line(arm)}" if arm else ""
            left_out = counted(summary.pass_hat_k_undecided, "task")
            yield (
                f"pass^k{whose} leaves out {left_out} of which not every run is decided: the decided runs alone may be "
                "the failures."
            )


def _errors(report: Report) -> Iterator[str]:
    """What conversations ended in: the first error whole, and each arm's most frequent one."""
    failed = [one for one in report.conversations if one.error is not None]
    if not failed:
        return
    yield (
        f"{counted(len(failed), 'conversation')} ended in an error, measured as far as it had come. The first: "
        f"{one_line(failed[0].id)}: {printable(_first_line(failed[0].error), _REASON)}"
    )
    reasons: dict[str, Counter[str]] = {}
    for one in failed:
        reasons.setdefault(one.arm or "", Counter())[_first_line(one.error)] += 1
    if len(reasons) == 1 and len(next(iter(reasons.values()))) == 1:
        return  # the first says it all
    for arm, said in sorted(reasons.items(), key=lambda each: -each[1].total())[:_SHOWN]:
        reason, count = said.most_common(1)[0]
        often = "" if len(said) == 1 else f", {count:,} of them"
        yield f"{one_line(arm)}: {said.total():,}{often}: {printable(reason, _REASON)}"
    if len(reasons) > _SHOWN:
        yield f"and {counted(len(reasons) - _SHOWN, 'further arm')}"


def _first_line(error: str | None) -> str:
    return next((line for line in (error or "").splitlines() if line.strip()), "")


def _warnings(report: Report) -> Iterator[str]:
    unreviewed = [name for name, graph in report.graphs.items() if graph.reviewed is False]
    if unreviewed:
        named = ", ".join(printable(report.graphs[name].file or name, _PATH) for name in unreviewed[:_SHOWN])
        more = f" and {len(unreviewed) - _SHOWN} more" if len(unreviewed) > _SHOWN else ""
        yield (
            f"{named}{more}: generated, and reviewed by nobody. What it asks for may not be what matters; look it "
            "over, then write `reviewed: {by: …, date: …}` into it."
        )
