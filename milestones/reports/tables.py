"""A report's tables: a column for each arm, and a row for each group of conversations or each figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import combinations
from operator import attrgetter
from typing import TypeVar

from arq_graph.milestones.milestone import END
from arq_graph.milestones.reports.comparison_tables import (
    build_ablation_tables,
    build_category_tables,
    build_pair_table,
    filter_records,
)
from arq_graph.milestones.reports.guideline_tables import build_guideline_tables
from arq_graph.milestones.reports.main_table import INTERVAL_NOTE, RECORDED
from arq_graph.milestones.reports.paired import compare_arms, find_reference_arms
from arq_graph.milestones.reports.records import Ended, group_by
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.statistics import clipped_mean
from arq_graph.milestones.reports.summary import Records, Summary, average_output_tokens
from arq_graph.milestones.reports.table_format import (
    CASES,
    NOT_KNOWN,
    RecordsByArm,
    Table,
    format_goal_completed,
    format_goal_reached,
    format_mean_count,
    format_number,
    format_percent,
    format_progress,
    make_table,
)

T = TypeVar("T")

CUSTOMERS_GOAL = "customer's goal"
BY_USER = "goal completion by kind of user"
PROGRESS = "progress rate"
ENDS: Mapping[Ended, str] = {
    "user": "the user left",
    "turns": "limit of turns",
    "calls": "limit of calls",
    "seconds": "limit of time",
    "takeover": "handed over to a person",
    "error": "an error",
}

FormatCell = Callable[[Records], str]
SummaryByArm = Mapping[str, Summary]
Cells = dict[str, str]

_MAX_STOPS = 8
_MAX_RUNS = 6
_GOAL_NOTE = (
    "The customer's goal is what their scenario came for; goal completion needs it, and a road to the end of the "
    "milestone graph."
)
_MOVES_NOTE = (
    "think: the share of thoughts in all moves; speak and act: the shares of what was said and done, thoughts aside, "
    "as not every arm tells of its thoughts; invalid: the share of the acts that were refused or failed."
)
_END_NOTE = f"Those at {END} reached it, but something forbidden happened"
_MOVES = ("think", "speak", "act", "invalid")
_SECONDS = "seconds of a turn"
_FORBIDDEN = "something forbidden"
_MEANS = {
    "turns": "turns",
    "tool calls": "calls",
    "served no milestone": "wasted_calls",
    "repeated an earlier one": "repeated_calls",
    "model calls": "model_calls",
    "tokens read": "input_tokens",
    "tokens written": "output_tokens",
    _SECONDS: "turn_seconds",
}
"""The field of the summary by the name of its row."""


def build_tables(
    report: Report, *, ablated: Mapping[str, str] | None = None, timed: bool = False
) -> list[Table]:
    """Return the tables of a report, without those that would be empty.

    Args:
        report: The report.
        ablated: By arm that leaves queries out, the step that they are left out of.
        timed: True to include the seconds of a turn, which no other run repeats.
    """
    # Ablations are compared with their reference arms, in tables of their own.
    arms = report.main_arms
    summaries = {arm: report.summary.arms.get(arm, report.summary.overall) for arm in arms}
    # Progress and stops are of interest only in conversations, not in single answers.
    conversations = filter_records(arms, lambda record: not record.expected)
    tables = [
        _make_customers_goal_table(arms),
        _make_completion_table(arms, report.summary.overall.nothing_to_complete),
        _make_group_table("goal completion by category", arms, "use_case"),
        _make_group_table(BY_USER, arms, "user"),
        make_table(PROGRESS, arms, _group_rows(conversations, format_progress, "use_case", "user")),
        _make_pass_hat_k_table(summaries),
        _make_stops_table(conversations),
        _make_endings_table(summaries),
        _make_outcome_table(arms),
        _make_moves_table(arms),
        _make_output_tokens_table(arms),
        _make_means_table(summaries, timed),
    ]
    tables.extend(build_guideline_tables(summaries))
    all_arms = group_by(report.conversations, lambda record: record.arm or RECORDED)
    tables.extend(build_ablation_tables(all_arms, find_reference_arms(all_arms), ablated or {}))
    tables.append(build_pair_table(report.arm_comparisons, "arms in pairs", "goal_completion"))
    tables.extend(build_category_tables(arms))
    if any(conversations.values()):
        comparisons = compare_arms(conversations, combinations(conversations, 2))
        tables.append(build_pair_table(comparisons, "arms in pairs, progress rate", "progress_rate"))
    return [table for table in tables if table.rows]


def _make_customers_goal_table(arms: RecordsByArm) -> Table:
    with_goal = filter_records(arms, lambda record: record.goal is not None)
    rows = _group_rows(with_goal, format_goal_reached, "user")
    return make_table(CUSTOMERS_GOAL, arms, rows, [_GOAL_NOTE])


def _make_completion_table(arms: RecordsByArm, nothing_to_complete: int) -> Table:
    notes = [INTERVAL_NOTE]
    if nothing_to_complete:
        notes.append(
            f"Left out of both rates, because the graph asks for nothing there: {nothing_to_complete:,}."
        )
    rows = _group_rows(arms, format_goal_completed, "tested_part")
    return make_table("goal completion", arms, rows, notes, "chart" if len(rows) == 1 else "figures")


def _make_group_table(title: str, arms: RecordsByArm, field: str) -> Table:
    """Return a table of goal completion by the value of a field, which is empty if there are fewer than two."""
    rows = _group_rows(arms, format_goal_completed, field)
    if len(rows) == 1:
        rows.clear()
    return make_table(title, arms, rows, kind="chart" if field == "user" else "figures")


def _group_rows(arms: RecordsByArm, format_cell: FormatCell, *fields: str) -> dict[str, Cells]:
    """Return a row for each value of these fields of a record, if a field has several, and a row for all records."""
    rows: dict[str, Cells] = {}
    for field in fields:
        groups: dict[str, dict[str, Records]] = {}
        for arm, records in arms.items():
            for name, group in group_by(records, attrgetter(field)).items():
                groups.setdefault(name, {})[arm] = group
        if len(groups) > 1:
            for name in sorted(groups):
                rows[name] = _make_group_row(groups[name], format_cell)
    if any(arms.values()):
        rows["all"] = _make_group_row(arms, format_cell)
    return rows


def _make_group_row(arms: RecordsByArm, format_cell: FormatCell) -> Cells:
    """Return the number of cases of a group, and its figure in each arm."""
    cases: set[str | int] = set()
    figures: Cells = {}
    for arm, records in arms.items():
        for position, record in enumerate(records):
            cases.add(record.scenario or position)
        if records:
            figures[arm] = format_cell(records)
    return {CASES: f"{len(cases):,}"} | figures


def _make_rows(
    arms: Mapping[str, T],
    compute_figures: Callable[[T], Mapping[str, float]],
    format_figure: Callable[[float | None], str],
    names: Iterable[str] = (),
) -> dict[str, Cells]:
    """Return a row for each figure that an arm has, by name; `names` are their order, if it isn't that of the arms."""
    figures = {arm: compute_figures(value) for arm, value in arms.items()}
    known: dict[str, None] = {}
    for figures_of_arm in figures.values():
        known.update(dict.fromkeys(figures_of_arm))
    rows = {}
    for name in names or known:
        if name in known:
            rows[name] = {arm: format_figure(by_name.get(name)) for arm, by_name in figures.items()}
    return rows


def _make_pass_hat_k_table(summaries: SummaryByArm) -> Table:
    rows = _make_rows(summaries, _get_pass_hat_k, format_percent)
    notes = ["How likely it is that k runs of a scenario all complete the goal."]
    undecided = []
    for arm, summary in summaries.items():
        if summary.pass_hat_k_undecided:
            undecided.append(f"{arm} {summary.pass_hat_k_undecided:,}")
    if undecided:
        notes.append(f"Scenarios left out, because not every run is decided: {', '.join(undecided)}.")
    return make_table("pass^k", summaries, rows, notes)


def _get_pass_hat_k(summary: Summary) -> dict[str, float]:
    return {f"k = {k}": share for k, share in summary.pass_hat_k.items() if k <= _MAX_RUNS}


def _make_stops_table(arms: RecordsByArm) -> Table:
    total: Counter[str] = Counter()
    for records in arms.values():
        total += _count_stops(records)
    milestones = [milestone for milestone, _ in total.most_common(_MAX_STOPS)]
    rows = _make_rows(arms, _count_stops, _format_count, milestones)
    notes = []
    if END in rows:
        has_outcomes = any(record.outcome for records in arms.values() for record in records)
        rest = ", or the world that the scenario names reports no success." if has_outcomes else "."
        notes.append(_END_NOTE + rest)
    return make_table("stopped at", arms, rows, notes, "chart")


def _count_stops(records: Records) -> Counter[str]:
    return Counter(record.stopped_at for record in records if record.stopped_at)


def _make_endings_table(summaries: SummaryByArm) -> Table:
    """Return a table of why conversations ended, which is empty if the user always left."""
    rows = _make_rows(summaries, _count_endings, _format_count, ENDS.values())
    if list(rows) == [ENDS["user"]]:
        rows.clear()
    return make_table("ended by", summaries, rows)


def _count_endings(summary: Summary) -> dict[str, int]:
    return {ENDS[reason]: count for reason, count in summary.ended.items() if reason in ENDS}


def _format_count(count: float | None) -> str:
    return f"{count or 0:,}"


def _make_outcome_table(arms: RecordsByArm) -> Table:
    rows = _make_rows(arms, _average_outcomes, partial(format_number, form=".3f"))
    return make_table("outcome in the world, mean", arms, rows)


def _average_outcomes(records: Records) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for record in records:
        for name, value in record.outcome.items():
            values.setdefault(name, []).append(value)
    return {name: clipped_mean(numbers) for name, numbers in values.items()}


def _make_moves_table(arms: RecordsByArm) -> Table:
    rows = _make_rows(arms, _compute_move_shares, format_percent, _MOVES)
    if "think" not in rows:
        rows.clear()
    rows |= _make_rows(arms, _average_trials, _format_trials)
    return make_table("moves", arms, rows, [_MOVES_NOTE])


def _compute_move_shares(records: Records) -> dict[str, float]:
    counts = Counter[str]()
    for record in records:
        counts.update(record.moves)  # keeps those that are 0
    done = counts["speak"] + counts["act"]
    totals = {"think": counts["think"] + done, "speak": done, "act": done, "invalid": counts["act"]}
    return {move: counts[move] / total for move, total in totals.items() if total and move in counts}


def _average_trials(records: Records) -> dict[str, float]:
    """Return the mean of trials; nothing if each task was tried once."""
    mean = clipped_mean([record.trials for record in records])
    return {"trials": mean} if mean > 1 else {}


def _format_trials(mean: float | None) -> str:
    return format_number(mean or 1, ".1f")


def _make_output_tokens_table(arms: RecordsByArm) -> Table:
    rows = _make_rows(arms, average_output_tokens, partial(format_number, form=".0f"))
    return make_table("output tokens of a call", arms, rows)


def _make_means_table(summaries: SummaryByArm, timed: bool) -> Table:
    """Return the means that aren't 0 in every arm; a note names the others."""
    rows: dict[str, Cells] = {}
    zeros = []
    for name in (*_MEANS, _FORBIDDEN):
        cells = {arm: _format_mean(summary, name) for arm, summary in summaries.items()}
        texts = set(cells.values())
        if texts == {NOT_KNOWN} or (name == _SECONDS and not timed):
            continue
        if texts <= {"0", "0.0", "0%", NOT_KNOWN}:
            zeros.append(name)
        else:
            rows[name] = cells
    notes = []
    if zeros:
        notes.append(f"0 everywhere: {', '.join(zeros)}.")
    return make_table("a conversation, mean", summaries, rows, notes)


def _format_mean(summary: Summary, name: str) -> str:
    if name == _FORBIDDEN:
        return format_percent(summary.forbidden.rate)
    places = 0 if "tokens" in name else 1
    return format_mean_count(getattr(summary, _MEANS[name]).mean, places)
