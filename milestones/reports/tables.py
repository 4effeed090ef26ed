"""A report's tables: a column for each arm, and a row for each group of conversations or each figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from operator import attrgetter
from typing import Any

from arq_graph.milestones.milestone import END
from arq_graph.milestones.reports.comparison import Difference, compare, compare_arms, references
from arq_graph.milestones.reports.figures import Summary, mean_of, progress_end, rate_of
from arq_graph.milestones.reports.records import ConversationRecord, Ended, grouped
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.shown import (
    NOT_KNOWN,
    Row,
    Table,
    average,
    between,
    interval,
    number,
    percent,
    probability,
)
from arq_graph.milestones.reports.statistics import mean_within

RECORDED = "recorded"
"""The column of conversations that no arm of an evaluation held."""
MATCHER, TURN = "matcher alone", "whole turn"
CUSTOMERS_GOAL = "customer's goal"
BY_USER = "goal completion by kind of user"
PROGRESS = "progress rate"
ENDS: Mapping[Ended, str] = {
    "user": "the user left",
    "turns": "limit of turns",
    "calls": "limit of calls",
    "seconds": "limit of time",
    "error": "an error",
}

Records = Sequence[ConversationRecord]
Rows = Mapping[str, Mapping[str, str]]
"""Cells by row and arm; under `_CASES`, how many cases a row is of."""

DIFFERENCE = ("difference", "p", "pairs", "better")
"""The columns of a difference."""

_CASES = "n"
_STOPS_SHOWN = 8
_RUNS_SHOWN = 6
_ROADS = (
    "The customer's goal is what their scenario came for; goal completion needs it, and a road to the end of the "
    "milestone graph."
)
_INTERVALS = "[…] are 95% intervals. A to B is a range: what is undecided counts as missed, and as reached."
_SHARES = (
    "think: the share of thoughts in all moves; speak and act: the shares of what was said and done, thoughts aside, "
    "as not every arm tells of its thoughts; invalid: the share of the acts that were refused or failed."
)
_AT_END = (
    f"Those at {END} reached it, but something forbidden happened, or the world says that it was no success."
)
_USE_CASE, _USER = attrgetter("use_case"), attrgetter("user")
_MEANS = {
    "turns": "turns",
    "tool calls": "calls",
    "served no milestone": "wasted_calls",
    "repeated an earlier one": "repeated_calls",
    "model calls": "model_calls",
    "tokens read": "input_tokens",
    "tokens written": "output_tokens",
}


def tables_of(
    report: Report, *, ablated: Mapping[str, str] | None = None, timed: bool = False
) -> Iterator[Table]:
    """The tables of a report; those that would be empty are left out.

    Args:
        report: What was measured.
        ablated: By arm that leaves queries out, the step that they are left out of.
        timed: Whether to include the seconds of a turn, which no other run repeats.
    """
    every = grouped(report.conversations, lambda one: one.arm or RECORDED)
    lacking = references(every)  # which have tables of their own
    arms = {name: records for name, records in every.items() if name not in lacking}
    summaries = {arm: report.summary.arms.get(arm, report.summary.overall) for arm in arms}
    # Progress and stops are of interest only in conversations, not in single answers.
    walked = _only(arms, lambda one: not one.expected)
    stops = _stops(walked)
    nothing = report.summary.overall.nothing_to_complete
    left_out = f"Left out of both rates, because the graph asks for nothing there: {nothing:,}."
    tables: list[tuple[str, Rows, Iterable[str]]] = [
        (CUSTOMERS_GOAL, _by(_only(arms, lambda one: one.goal), _reached, _USER), [_ROADS]),
        (
            "goal completion",
            _by(arms, _completed, _part),
            [_INTERVALS, left_out] if nothing else [_INTERVALS],
        ),
        ("goal completion by category", _several(_by(arms, _completed, _USE_CASE)), ()),
        (BY_USER, _several(_by(arms, _completed, _USER)), ()),
        (PROGRESS, _by(walked, _progress, _USE_CASE, _USER), ()),
        ("pass^k", *_pass_hat_k(summaries)),
        ("stopped at", stops, [_AT_END] if END in stops else ()),
        ("ended by", _ended(summaries), ()),
        ("outcome in the world, mean", _outcomes(arms), ()),
        ("moves", _moves(arms), [_SHARES]),
        ("output tokens of a call", _tokens(arms), ()),
        ("a conversation, mean", *_means(summaries, timed)),
    ]
    yield from (table(title, arms, rows, *notes) for title, rows, notes in tables if rows)
    yield from _worth(every, lacking, ablated or {})
    yield from _in_pairs(arms, "arms in pairs", "goal_completion")
    yield from _differing(arms)
    if any(walked.values()):
        yield from _in_pairs(walked, "arms in pairs, progress rate", "progress_rate")


def table(title: str, arms: Iterable[str], rows: Rows, *notes: str) -> Table:
    """A table of cells by row and arm, and how many cases each row is of where that is told."""
    columns = (*([_CASES] if any(_CASES in cells for cells in rows.values()) else []), *arms)
    found = [
        Row(name=name, cells=tuple(cells.get(column, NOT_KNOWN) for column in columns))
        for name, cells in rows.items()
    ]
    return Table(title=title, columns=columns, rows=tuple(found), notes=notes)


def difference_cells(of: Difference, a: str, b: str, *, is_rate: bool = False) -> Mapping[str, str]:
    """A difference, in points or as a rate, with its interval, p, the number of pairs, and which side is better."""
    form, times = ("+.2f", 1) if is_rate else ("+.0f", 100)
    better = {"a better": a, "b better": b}.get(of.verdict, "not shown")
    difference = number(of.difference, form, times) + interval(of.low, of.high, form, times)
    return dict(zip(DIFFERENCE, (difference, probability(of.p), f"{of.pairs:,}", better), strict=True))


def _only(arms: Mapping[str, Records], wanted: Callable[[ConversationRecord], Any]) -> Mapping[str, Records]:
    return {arm: [one for one in records if wanted(one)] for arm, records in arms.items()}


def _by(
    arms: Mapping[str, Records],
    cell: Callable[[Records], str],
    *groupings: Callable[[ConversationRecord], str | None],
) -> Rows:
    """A row for each group, where a grouping makes several, and one for all."""
    groups: dict[str, Mapping[str, Records]] = {}
    for group_of in groupings:
        found = {arm: grouped(records, group_of) for arm, records in arms.items()}
        names = sorted({name for of in found.values() for name in of})
        if len(names) > 1:
            groups |= {name: {arm: of[name] for arm, of in found.items() if name in of} for name in names}
    return {
        name: {_CASES: _cases(group)} | {arm: cell(of) for arm, of in group.items() if of}
        for name, group in (groups | {"all": arms}).items()
        if any(group.values())
    }


def _cases(group: Mapping[str, Records]) -> str:
    return f"{len({one.scenario or at for of in group.values() for at, one in enumerate(of)}):,}"


def _several(rows: Rows) -> Rows:
    return rows if len(rows) > 1 else {}


def _part(one: ConversationRecord) -> str:
    return MATCHER if "active" in one.expected else TURN


def _share(figure: str, records: Records) -> str:
    """A range if something is undecided, and otherwise the share with its interval."""
    counted = [one for one in records if one.progress_range is not None]
    of = rate_of(counted, attrgetter(figure))
    if of.unknown or not of.n:
        least, most = of.count, of.count + of.unknown
        return between(*(percent(each / len(counted)) for each in (least, most))) if counted else NOT_KNOWN
    return percent(of.rate) + interval(of.low, of.high, ".0f", 100)


_completed, _reached = partial(_share, "goal_completed"), partial(_share, "goal_reached")


def _progress(records: Records) -> str:
    least, most = (mean_of(records, partial(progress_end, side)) for side in (0, 1))
    if not least.n or least.mean != most.mean:
        return between(number(least.mean), number(most.mean))
    return number(least.mean) + interval(least.low, least.high, ".2f")


def _mean_of(values: Iterable[float | None]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return mean_within(known) if known else None


def _pass_hat_k(summaries: Mapping[str, Summary]) -> tuple[Rows, list[str]]:
    every = sorted({k for of in summaries.values() for k in of.pass_hat_k})[:_RUNS_SHOWN]
    rows = {f"k = {k}": {arm: percent(of.pass_hat_k.get(k)) for arm, of in summaries.items()} for k in every}
    notes = ["How likely it is that k runs of a scenario all complete the goal."]
    left_out = [f"{arm} {n:,}" for arm, of in summaries.items() if (n := of.pass_hat_k_undecided)]
    if left_out:
        notes.append(f"Scenarios left out, because not every run is decided: {', '.join(left_out)}.")
    return rows, notes


def _stops(arms: Mapping[str, Records]) -> Rows:
    counts = {arm: Counter(one.stopped_at for one in of if one.stopped_at) for arm, of in arms.items()}
    every = sum(counts.values(), Counter[str]()).most_common(_STOPS_SHOWN)
    return {name: {arm: f"{of[name]:,}" for arm, of in counts.items()} for name, _ in every}


def _ended(summaries: Mapping[str, Summary]) -> Rows:
    told = [why for why in ENDS if any(why in of.ended for of in summaries.values())]
    rows = {ENDS[why]: {arm: f"{of.ended.get(why, 0):,}" for arm, of in summaries.items()} for why in told}
    return {} if told == ["user"] else rows


def _outcomes(arms: Mapping[str, Records]) -> Rows:
    names = dict.fromkeys(name for records in arms.values() for one in records for name in one.outcome)
    return {
        name: {arm: number(_mean_of(one.outcome.get(name) for one in of), ".3f") for arm, of in arms.items()}
        for name in names
    }


def _moves(arms: Mapping[str, Records]) -> Rows:
    found = {arm: _shares_of(records) for arm, records in arms.items()}
    told = {name for shares in found.values() for name in shares}
    names = [name for name in ("think", "speak", "act", "invalid") if "think" in told and name in told]
    rows: dict[str, Mapping[str, str]] = {
        name: {arm: percent(of.get(name)) for arm, of in found.items()} for name in names
    }
    if any(one.trials > 1 for records in arms.values() for one in records):
        rows["trials"] = {arm: number(_mean_of(one.trials for one in of), ".1f") for arm, of in arms.items()}
    return rows


def _shares_of(records: Iterable[ConversationRecord]) -> dict[str, float]:
    counts = Counter[str]()
    for one in records:
        counts.update(one.moves)  # keeps those that are 0
    done = counts["speak"] + counts["act"]
    of = {"think": counts["think"] + done, "speak": done, "act": done, "invalid": counts["act"]}
    return {name: counts[name] / all_of for name, all_of in of.items() if all_of and name in counts}


def _tokens(arms: Mapping[str, Records]) -> Rows:
    names = dict.fromkeys(name for records in arms.values() for one in records for name in one.steps)
    return {name: {arm: number(_tokens_of(of, name), ".0f") for arm, of in arms.items()} for name in names}


def _tokens_of(records: Records, step: str) -> float | None:
    used = [one.steps[step] for one in records if step in one.steps]
    calls = sum(one.calls for one in used)
    return sum(one.output_tokens for one in used) / calls if calls else None


def _means(summaries: Mapping[str, Summary], timed: bool) -> tuple[Rows, list[str]]:
    fields = _MEANS | ({"seconds of a turn": "turn_seconds"} if timed else {})
    rows = {
        name: {
            arm: average(getattr(of, field).mean, places=0 if "tokens" in name else 1)
            for arm, of in summaries.items()
        }
        for name, field in fields.items()
        if any(getattr(of, field).n for of in summaries.values())
    }
    rows["something forbidden"] = {arm: percent(of.forbidden.rate) for arm, of in summaries.items()}
    zero = [name for name, cells in rows.items() if {*cells.values()} <= {"0", "0.0", "0%", NOT_KNOWN}]
    note = [f"0 everywhere: {', '.join(zero)}."] if zero else []
    return {name: rows[name] for name in rows if name not in zero}, note


def _worth(
    arms: Mapping[str, Records], lacking: Mapping[str, str], ablated: Mapping[str, str]
) -> Iterator[Table]:
    steps = {arm: (whole, ablated.get(arm, "")) for arm, whole in lacking.items()}
    for whole, step in dict.fromkeys(steps.values()):
        without = [arm for arm, of in steps.items() if of == (whole, step)]
        of: Mapping[str, Records] = {arm: arms[arm] for arm in (*without, whole)}
        if step not in ("", "matcher"):  # of other steps, cases of the matcher alone say nothing
            of = _only(of, lambda one: _part(one) == TURN)
        gained = {each.a: each for each in compare_arms(of)}
        tokens = {arm: _tokens_of(records, step) for arm, records in of.items()}
        rows = {whole: {"tokens": number(tokens[whole], ".0f")}}
        for arm in without:
            gain = difference_cells(gained[arm].overall.goal_completion, arm, whole)
            fewer, most = tokens[arm], tokens[whole]
            costs = NOT_KNOWN if fewer is None or most is None else f"{fewer:.0f} ({fewer - most:+.0f})"
            rows[arm.removeprefix(f"{whole} ")] = {**gain, "gain": gain["difference"], "tokens": costs}
        turns = " of whole turns" if len(of[whole]) < len(arms[whole]) else ""
        notes = (
            f"With all of its queries {whole} completes the goal in {_completed(of[whole])}{turns}. "
            f"Gain: goal completion with the query less that without it, in points, with 95% intervals.",
            f"p is corrected for the {len(without)} that were left out (Holm). Tokens: written in an answer of {step}.",
        )
        yield table(f"{whole} without a query of {step}", ("gain", "p", "pairs", "tokens"), rows, *notes)


def _differing(arms: Mapping[str, Records]) -> Iterator[Table]:
    """The categories in which two arms differ, beginning with the largest difference."""
    for a, b in combinations(arms, 2):
        found = compare(*(Report(conversations=tuple(arms[arm])) for arm in (a, b))).use_cases
        differing = {name: of.goal_completion for name, of in found.items() if of.goal_completion.difference}
        order = sorted(differing, key=lambda name: -abs(differing[name].difference or 0))
        rows = {name: difference_cells(differing[name], a, b) for name in order}
        note = f"p is corrected for the {len(found)} categories (Holm); categories without a difference are left out."
        if rows and len(found) > 1:
            yield table(f"where {a} and {b} differ", DIFFERENCE, rows, note)


def _in_pairs(arms: Mapping[str, Records], title: str, figure: str) -> Iterator[Table]:
    is_rate = figure == "progress_rate"
    rows = {
        f"{of.a} → {of.b}": difference_cells(getattr(of.overall, figure), of.a, of.b, is_rate=is_rate)
        for of in compare_arms(arms)
    }
    what = "of the progress rate" if is_rate else "of goal completion in points"
    note = f"Differences {what}, with 95% intervals; p is corrected for the number of pairs (Holm)."
    if rows:
        yield table(title, DIFFERENCE, rows, note)
