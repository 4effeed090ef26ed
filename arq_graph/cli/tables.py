"""A report in the terminal: its figures, where conversations stopped, what they cost, and what is left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from arq_graph.cli.screen import note, printable, warn, warning, words
from arq_graph.milestones.reports.comparison import ArmComparison
from arq_graph.milestones.reports.figures import Mean, Summary
from arq_graph.milestones.reports.html import write_html
from arq_graph.milestones.reports.records import BrokenConversation, Ended
from arq_graph.milestones.reports.report import Report, stand_in_notice, write_report
from arq_graph.milestones.reports.shown import (
    NOT_KNOWN,
    between,
    change,
    mean,
    number,
    percent,
    points,
    probability,
    share,
)
from arq_graph.milestones.transcript import Transcript

F = TypeVar("F")

_SHOWN = 5
_STOPS_SHOWN = 8
_RUNS_SHOWN = 6
_NAME_WIDTH = 40
_FIGURE_WIDTH = 22
_REASON = 400
_PATH = 300  # a path that is cut leads nowhere
ENDS: Mapping[Ended, str] = {
    "user": "the user left",
    "turns": "limit of turns",
    "calls": "limit of calls",
    "seconds": "limit of time",
    "error": "an error",
}


def columns(title: str, headings: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> Table:
    """Rows of a name and figures; on a narrow terminal they break, names of one word last, and nothing is lost."""
    rows = [(one_line(name), figures) for name, figures in rows]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    most = min(_NAME_WIDTH, get_terminal_size().columns // 2)
    whole = all(" " not in name and len(name) <= most for name, _ in rows)
    title = fill(title, _NAME_WIDTH)
    table.add_column(words(title), max_width=_NAME_WIDTH, no_wrap=whole, overflow="fold", style="cyan")
    for heading in headings:
        table.add_column(words(heading), justify="right", overflow="fold", max_width=_FIGURE_WIDTH)
    for name, figures in rows:
        table.add_row(name, *map(words, figures))
    return table


def one_line(name: str) -> str:
    """A name from a file, on one line and not endless."""
    return printable(name, 60)


def with_use_cases(overall: F, use_cases: Mapping[str, F]) -> dict[str, F]:
    """All, and by use case; a single one that all belong to says the same as the row of all."""
    groups = {} if list(use_cases.values()) == [overall] else use_cases
    return {"all": overall} | {name: group for name, group in groups.items() if name != "all"}


def counted(count: int, one: str) -> str:
    """A count and what is counted: `1 record`, `2 records`."""
    return f"{count:,} {one if count == 1 else one + 's'}"


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f"; and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return "; ".join(map(one_line, names[:_SHOWN])) + more


def show_broken(broken: Sequence[BrokenConversation], done: str) -> None:
    """Warn of the first records that are broken."""
    for one in broken[:_SHOWN]:
        warn(one.error)
    if len(broken) > _SHOWN:
        warn(f"and {len(broken) - _SHOWN:,} more that could not be {done}; the JSON report lists them all")


def show_report(report: Report, console: Console) -> None:
    """Print a report; of an evaluation also what each arm cost, why conversations ended, and the arms in pairs."""
    if notice := stand_in_notice(report.stand_ins):
        console.print(words(notice, "yellow"))
    failed = f", {counted(len(report.failed), 'record')} could not be scored" if report.failed else ""
    count = report.summary.overall.conversations
    console.print(words(f"{counted(count, 'conversation')}{failed}", "bold"))
    if not count:
        return
    for table in _tables(report):
        console.print()
        console.print(table)
    console.print()
    for line in _remarks(report):
        console.print(words(line, "dim"))
    show_errors(report, console)
    unreviewed = [graph.file or name for name, graph in report.graphs.items() if graph.reviewed is False]
    for file in unreviewed[:_SHOWN]:
        console.print(
            warning(
                f"{printable(file, _PATH)}: generated, and reviewed by nobody. What it asks for may not be what "
                "matters; look it over, then write `reviewed: {by: …, date: …}` into it."
            )
        )


def write_outputs(
    report: Report,
    json: Path | None,
    html: Path | None,
    said: Iterable[Transcript | None],
    title: str = "Milestone report",
) -> None:
    """Write the report and the page that were asked for, and say where they are."""
    if json is not None:
        write_report(json, report)
        note(f"The report is in {json}.")
    if html is not None:
        write_html(html, report, said, title=title)
        note(f"The page is in {html}.")


def goals_table(report: Report) -> Table:
    """How far the conversations of each row got."""
    rows = _rows(report)
    # What the customers came for leads, where the scenarios say; End may be reached by another road, too.
    own = any(of.goal_reached is not None for of in rows.values())
    came_for, title = (_reached, "customer's goal") if own else (_completed, "completed")
    figures = {
        name: [f"{of.conversations:,}", came_for(of), _goal(of), _progress(of)] for name, of in rows.items()
    }
    return columns("", ["n", title, "goal completion", "progress rate"], figures.items())


def _tables(report: Report) -> Iterator[Table]:
    arms, rows = report.summary.arms, _rows(report)
    yield goals_table(report)
    if every := sorted({k for of in rows.values() for k in of.pass_hat_k})[:_RUNS_SHOWN]:
        shares = {name: of.pass_hat_k for name, of in rows.items() if of.pass_hat_k}
        cells = ((name, [percent(of.get(k)) for k in every]) for name, of in shares.items())
        yield columns("pass^k", [f"k = {k}" for k in every], cells)
    yield columns(
        "mean of each", ["turns", "calls", "wasted", "repeated", "forbidden"], map(_way, rows.items())
    )
    for arm, of in arms.items() or {"": report.summary.overall}.items():
        if of.stops:
            yield _stops(of, arm)
    if any(of.model_calls.n for of in arms.values()):
        headings = ["model calls", "tokens read", "written", "seconds a turn"]
        yield columns("a conversation", headings, map(_costs, arms.items()))
    reasons = [reason for reason in ENDS if any(reason in of.ended for of in arms.values())]
    if any(reason != "user" for reason in reasons):
        ended = ((arm, [f"{of.ended.get(reason, 0):,}" for reason in reasons]) for arm, of in arms.items())
        yield columns("ended by", [ENDS[reason] for reason in reasons], ended)
    if report.summary.comparisons:
        headings = ["pairs", "goal completion", "p", "progress rate", "p", "better"]
        yield columns("compared", headings, map(_pair, report.summary.comparisons))


def _way(row: tuple[str, Summary]) -> tuple[str, list[str]]:
    name, of = row
    means = map(_mean, (of.turns, of.calls, of.wasted_calls, of.repeated_calls))
    return name, [*means, f"{of.forbidden.count:,} ({percent(of.forbidden.rate)})"]


def _costs(row: tuple[str, Summary]) -> tuple[str, list[str]]:
    arm, of = row
    return arm, [
        *map(_mean, (of.model_calls, of.input_tokens, of.output_tokens)),
        number(of.turn_seconds.mean),
    ]


def _rows(report: Report) -> Mapping[str, Summary]:
    """By use case, or by arm and kind of user: over different arms together no figure means anything."""
    rows: dict[str, Summary] = {}
    if not report.summary.arms:
        return with_use_cases(report.summary.overall, report.summary.use_cases)
    for arm, summary in report.summary.arms.items():
        rows[arm] = summary
        kinds = report.summary.arms_by_user.get(arm, {})
        if len(kinds) > 1:
            rows |= {f"{arm}, {kind}": cell for kind, cell in kinds.items()}
    return rows


def _reached(summary: Summary) -> str:
    goal = summary.goal_reached
    if goal is None:
        return NOT_KNOWN
    unknown = f" (and {goal.unknown:,} undecided)" if goal.unknown else ""
    of = f" of {goal.n:,}" if goal.n < summary.conversations else ""
    return f"{share(goal)}{of}{unknown}"


def _completed(summary: Summary) -> str:
    least, most = summary.goal_at_least, summary.goal_at_most
    return f"{between(f'{least.count:,}', f'{most.count:,}')} of {least.n:,}"


def _goal(summary: Summary) -> str:
    least, most = summary.goal_at_least, summary.goal_at_most
    if most.count > least.count:
        return between(percent(least.rate), percent(most.rate))
    return share(summary.goal_completion)


def _progress(summary: Summary) -> str:
    least, most = summary.progress_at_least, summary.progress_at_most
    if summary.progress_rate.n < least.n:
        return between(number(least.mean), number(most.mean))
    return mean(summary.progress_rate)


def _mean(of: Mean) -> str:
    return number(of.mean, ".1f" if of.mean is None or of.mean < 1_000 else ",.0f")


def _stops(summary: Summary, arm: str) -> Table:
    every = sum(summary.stops.values())
    title = f"{one_line(arm)} stopped at" if arm else "stopped at"
    names = {"End": "End, with something forbidden on the way"}
    shown = list(summary.stops.items())[:_STOPS_SHOWN]
    rows = ((names.get(name, name), [f"{n:,}", percent(n / every)]) for name, n in shown)
    return columns(title, ["n", "share"], rows)


def _pair(each: ArmComparison) -> tuple[str, list[str]]:
    overall = each.overall
    goal, rate = overall.goal_completion, overall.progress_rate
    names = {"a better": one_line(each.a), "b better": one_line(each.b)}
    verdicts = ((figure, names.get(of.verdict)) for figure, of in (("goal", goal), ("rate", rate)))
    better = next((f"{name} ({figure})" for figure, name in verdicts if name), "not shown")
    figures = [points(goal), probability(goal.p), change(rate), probability(rate.p), better]
    return f"{one_line(each.a)}, {one_line(each.b)}", [f"{overall.pairs:,}", *figures]


def _remarks(report: Report) -> Iterator[str]:
    overall, arms = report.summary.overall, report.summary.arms
    if any(summary.goal_reached is not None for summary in arms.values()):
        yield (
            "The customer's goal is what their scenario came for; goal completion counts every road to the end of the "
            "milestone graph."
        )
    yield "[…] are 95% intervals. Wasted calls served no milestone; forbidden counts conversations."
    if overall.nothing_to_complete:
        left_out = counted(overall.nothing_to_complete, "conversation")
        yield f"{left_out} left out of both rates: the graph asks for nothing there."
    for arm, summary in (arms or {"all": overall}).items():
        if summary.pass_hat_k_undecided:
            left_out = counted(summary.pass_hat_k_undecided, "task")
            yield f"pass^k of {one_line(arm)} leaves out {left_out} of which not every run is decided."
    if any(summary.pass_hat_k for summary in arms.values() or [overall]):
        yield (
            "pass^k: how likely k runs of a task all complete the goal. Runs of one task depend on each other, which "
            "the intervals do not know: they are too narrow."
        )
    if overall.agreement.mean is not None:
        yield f"Judge: {percent(overall.agreement.mean)} of the votes agree with the verdict."
    if report.summary.comparisons:
        yield (
            "Differences are the second arm minus the first, over the runs that both have. p is corrected for the "
            "number of comparisons (Holm). Where no difference is shown there may still be one."
        )


def show_errors(report: Report, console: Console) -> None:
    """Say which conversations ended in an error, and in which; those of one arm with the same error stand together."""
    wrong: dict[tuple[str, str], list[str]] = {}
    for one in report.conversations:
        if one.error is not None:
            reason = one.error.strip().partition("\n")[0]
            wrong.setdefault((one.arm or "all", reason), []).append(one.id)
    if wrong:
        every = counted(sum(map(len, wrong.values())), "conversation")
        console.print(words(f"{every} ended in an error, measured as far as it had come:", "yellow"))
    for (arm, reason), ids in sorted(wrong.items(), key=lambda each: -len(each[1]))[:_SHOWN]:
        line = f"{one_line(arm)}: {len(ids):,}: {printable(reason, _REASON)} ({listed(ids)})"
        console.print(words(line, "yellow"))
