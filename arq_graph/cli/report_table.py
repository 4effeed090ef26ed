"""A report in the terminal: the figures, where conversations stop, and what they do not say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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
    share_between,
)
from arq_graph.cli.screen import printable, sentence, words
from arq_graph.milestones.reports.figures import Rate, Summary
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.reports.report import Report, stand_in_notice

_BROKEN_SHOWN = 5
_STOPS_SHOWN = 8
_STOP_WIDTH = 50
_NAMED = 5
_PATH = 300  # a path that is cut leads nowhere
_RUNS_SHOWN = 6


def show_report(report: Report, console: Console) -> None:
    """Print a report."""
    for part in _parts(report):
        console.print(part)


def show_broken(broken: Sequence[BrokenConversation], done: str) -> None:
    """Warn of the first records that are broken."""
    for one in broken[:_BROKEN_SHOWN]:
        warn(one.error)
    if len(broken) > _BROKEN_SHOWN:
        warn(f"and {len(broken) - _BROKEN_SHOWN:,} more that could not be {done}; --json lists them all")


def _parts(report: Report) -> Iterator[RenderableType]:
    overall = report.summary.overall
    rows = _arms(report) or {"all": overall, **_use_cases(report)}
    if notice := stand_in_notice(report.stand_ins):
        yield words(notice, "yellow")
    yield words(_head(report), "bold")
    if not overall.conversations:
        return
    yield ""
    yield _goals(rows)
    if overall.pass_hat_k:
        yield ""
        yield _pass_hat_k(rows)
    yield ""
    yield _on_the_way(rows)
    for title, summary in report.summary.arms.items() or {"": overall}.items():
        if summary.stops:
            yield ""
            yield _stops(summary, title)
    yield ""
    yield from (words(line, "dim") for line in _remarks(report))
    for warning in _warnings(report):
        yield sentence(words("warning: ", "yellow"), warning)


def _arms(report: Report) -> dict[str, Summary]:
    """By arm and kind of user, in an evaluation: over different arms together no figure means anything."""
    rows: dict[str, Summary] = {}
    for arm, summary in report.summary.arms.items():
        rows[arm] = summary
        kinds = report.summary.arms_by_user.get(arm, {})
        if len(kinds) > 1:
            rows |= {f"{arm}, {kind} user": cell for kind, cell in kinds.items()}
    return rows


def _use_cases(report: Report) -> dict[str, Summary]:
    """By use case; a single one that all belong to says the same as the row of all."""
    groups = report.summary.use_cases
    if list(groups.values()) == [report.summary.overall]:
        return {}
    # A use case may be called what the row of all is called.
    return {name if name != "all" else "all (use case)": group for name, group in groups.items()}


def _head(report: Report) -> str:
    said = [counted(report.summary.overall.conversations, "conversation")]
    if report.failed:
        said.append(f"{counted(len(report.failed), 'record')} could not be scored")
    return ", ".join(said)


def _goals(rows: Mapping[str, Summary]) -> RenderableType:
    """What the customers came for leads, where the scenarios say; End may be reached by another road, too."""
    has_goals = any(summary.goal_reached is not None for summary in rows.values())
    return columns(
        "",
        ["n", *(["customer's goal"] if has_goals else ["completed"]), "goal completion", "progress rate"],
        (
            (
                name,
                [
                    f"{summary.conversations:,}",
                    _reached(summary.goal_reached) if has_goals else _completed(summary),
                    _goal(summary),
                    _progress(summary),
                ],
            )
            for name, summary in rows.items()
        ),
    )


def _reached(goal: Rate | None) -> str:
    if goal is None:
        return NOT_KNOWN
    unknown = f" (and {goal.unknown:,} undecided)" if goal.unknown else ""
    return f"{goal.count:,} of {goal.n:,}{unknown}, {_rate(goal)}"


def _undecided(summary: Summary) -> int:
    return summary.goal_completion.unknown - summary.nothing_to_complete


def _completed(summary: Summary) -> str:
    least, most = summary.goal_at_least, summary.goal_at_most
    between = f" to {most.count:,}" if most.count > least.count else ""
    return f"{least.count:,}{between} of {least.n:,}"


def _goal(summary: Summary) -> str:
    least, most = summary.goal_at_least, summary.goal_at_most
    if most.count > least.count:
        return f"{percent(least.rate)} to {percent(most.rate)}"
    return _rate(summary.goal_completion)


def _progress(summary: Summary) -> str:
    rate, least, most = summary.progress_rate, summary.progress_at_least, summary.progress_at_most
    if least.mean is not None and most.mean is not None and rate.n < least.n:
        return f"{least.mean:.2f} to {most.mean:.2f}"
    return number_between(rate.mean, rate.low, rate.high)


def _rate(rate: Rate) -> str:
    return share_between(rate.rate, rate.low, rate.high)


def _pass_hat_k(rows: Mapping[str, Summary]) -> RenderableType:
    every = sorted({k for summary in rows.values() for k in summary.pass_hat_k})
    shown = every if len(every) <= _RUNS_SHOWN else [*every[: _RUNS_SHOWN - 1], every[-1]]
    return columns(
        "pass^k",
        [f"k = {k}" for k in shown],
        (
            (name, [percent(summary.pass_hat_k.get(k)) for k in shown])
            for name, summary in rows.items()
            if summary.pass_hat_k
        ),
    )


def _on_the_way(rows: Mapping[str, Summary]) -> RenderableType:
    return columns(
        "mean of each",
        ["turns", "calls", "wasted", "repeated", "forbidden"],
        (
            (
                name,
                [
                    average(summary.turns.mean),
                    average(summary.calls.mean),
                    average(summary.wasted_calls.mean),
                    average(summary.repeated_calls.mean),
                    f"{summary.forbidden.count:,} ({percent(summary.forbidden.rate)})",
                ],
            )
            for name, summary in rows.items()
        ),
    )


def _stops(summary: Summary, arm: str = "") -> RenderableType:
    stops = list(summary.stops.items())
    every = sum(count for _, count in stops)
    rows = [
        (
            name if name != "End" else "End, with something forbidden on the way",
            [f"{count:,}", percent(count / every)],
        )
        for name, count in stops[:_STOPS_SHOWN]
    ]
    if rest := stops[_STOPS_SHOWN:]:
        left = sum(count for _, count in rest)
        rows.append((f"{len(rest)} others", [f"{left:,}", percent(left / every)]))
    title = f"{one_line(arm)} stopped at" if arm else "stopped at"
    return columns(title, ["n", "share"], rows, name_width=_STOP_WIDTH)


def _remarks(report: Report) -> Iterator[str]:
    overall = report.summary.overall
    if any(summary.goal_reached is not None for summary in report.summary.arms.values()):
        yield (
            "The customer's goal is what their scenario came for; goal completion counts every road to the end of the "
            "milestone graph."
        )
    yield "[…] are 95% intervals. Wasted calls served no milestone; forbidden counts conversations."
    if undecided := _undecided(overall):
        yield (
            f"Undecided: nothing says of {counted(undecided, 'conversation')} whether the goal was completed. "
            "Goal completion from … to … takes all of them for not completed, and for completed."
        )
    if unanswered := sum(bool(one.unanswered_calls) for one in report.conversations):
        yield (
            f"In {counted(unanswered, 'conversation')} a call has no result in the record: nobody knows whether it "
            "succeeded, and it reaches no milestone."
        )
    if overall.progress_rate.n < overall.progress_at_least.n:
        yield (
            "A progress rate from … to … is over all conversations, the undecided milestones taken as not "
            "observed and as observed."
        )
    if overall.nothing_to_complete:
        yield (
            f"{counted(overall.nothing_to_complete, 'conversation')} left out of both rates: the graph asks "
            "for nothing there."
        )
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
    yield from _about_reward(overall)


def _about_runs(rows: Mapping[str, Summary]) -> Iterator[str]:
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
                f"pass^k{whose} leaves out {left_out}: not every run is decided, and the decided ones alone may be "
                "the failures."
                if summary.pass_hat_k
                else f"No pass^k{whose}: of {left_out} not every run is decided, the decided ones alone may be the "
                "failures, and no other task was run several times."
            )


def _about_reward(overall: Summary) -> Iterator[str]:
    reward = overall.reward
    if reward is not None and reward.n:
        yield (
            f"Recorded reward: agrees with the goal in {percent(reward.rate)} of "
            f"{counted(reward.n, 'conversation')} (both {reward.both:,}, neither {reward.neither:,}, goal alone "
            f"{reward.only_goal:,}, reward alone {reward.only_reward:,})."
        )


def _warnings(report: Report) -> Iterator[str]:
    unreviewed = [name for name, graph in report.graphs.items() if graph.reviewed is False]
    if unreviewed:
        named = ", ".join(printable(report.graphs[name].file or name, _PATH) for name in unreviewed[:_NAMED])
        more = f" and {len(unreviewed) - _NAMED} more" if len(unreviewed) > _NAMED else ""
        only = report.graphs[unreviewed[0]].file if len(unreviewed) == 1 else None
        file = only if only and printable(only, _PATH) == only else "FILE"
        yield (
            f"{named}{more}: generated, and reviewed by nobody. What it asks for may not be what matters; "
            f"look over {file}, then write `reviewed: {{by: …, date: …}}` into it."
        )
