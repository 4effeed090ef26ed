"""A report's tables: a column for each arm, and a row for each group of conversations or each figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from arq_graph.milestones.milestone import END
from arq_graph.milestones.reports.cells import (
    Records,
    RecordsByArm,
    average_output_tokens,
    filter_records,
    format_goal_completed,
    format_goal_reached,
    format_progress,
    is_of_matcher_alone,
)
from arq_graph.milestones.reports.comparison import find_reference_arms
from arq_graph.milestones.reports.comparison_tables import (
    build_ablation_tables,
    build_category_tables,
    build_pair_tables,
)
from arq_graph.milestones.reports.records import ConversationRecord, Ended, group_by
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.statistics import clipped_mean
from arq_graph.milestones.reports.summary import Summary
from arq_graph.milestones.reports.table_format import (
    CASES,
    NOT_KNOWN,
    Rows,
    Table,
    format_mean_count,
    format_number,
    format_percent,
    make_table,
)

RECORDED = "recorded"
"""The column of conversations that no arm of an evaluation ran."""
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

GetGroup = Callable[[ConversationRecord], str | None]
"""Returns the name of a conversation's group, or None."""
SummaryByArm = Mapping[str, Summary]
Cells = dict[str, str]

_MAX_STOPS = 8
_MAX_RUNS = 6
_GOAL_NOTE = (
    "The customer's goal is what their scenario came for; goal completion needs it, and a road to the end of the "
    "milestone graph."
)
_INTERVAL_NOTE = (
    "[…] are 95% intervals. A to B is a range: what is undecided counts as missed, and as reached."
)
_MOVES_NOTE = (
    "think: the share of thoughts in all moves; speak and act: the shares of what was said and done, thoughts aside, "
    "as not every arm tells of its thoughts; invalid: the share of the acts that were refused or failed."
)
_END_NOTE = (
    f"Those at {END} reached it, but something forbidden happened, or the world says that it was no success."
)
_MEANS = {
    "turns": "turns",
    "tool calls": "calls",
    "served no milestone": "wasted_calls",
    "repeated an earlier one": "repeated_calls",
    "model calls": "model_calls",
    "tokens read": "input_tokens",
    "tokens written": "output_tokens",
}


def build_tables(
    report: Report, *, ablated: Mapping[str, str] | None = None, timed: bool = False
) -> Iterator[Table]:
    """Yield the tables of a report, without those that would be empty.

    Args:
        report: The report.
        ablated: By arm that leaves queries out, the step that they are left out of.
        timed: True to include the seconds of a turn, which no other run repeats.
    """
    all_arms = group_by(report.conversations, lambda record: record.arm or RECORDED)
    reference_arms = find_reference_arms(all_arms)
    # Ablations are compared with their reference arms, in tables of their own.
    arms = {arm: records for arm, records in all_arms.items() if arm not in reference_arms}
    # Progress and stops are of interest only in conversations, not in single answers.
    conversations = filter_records(arms, lambda record: not record.expected)
    summaries = {arm: report.summary.arms.get(arm, report.summary.overall) for arm in arms}
    tables = [
        _make_customers_goal_table(arms),
        _make_completion_table(arms, report.summary.overall.nothing_to_complete),
        make_table("goal completion by category", arms, _split_goal_completion(arms, _get_use_case)),
        make_table(BY_USER, arms, _split_goal_completion(arms, _get_user)),
        make_table(PROGRESS, arms, _group_rows(conversations, format_progress, _get_use_case, _get_user)),
        _make_pass_hat_k_table(summaries),
        _make_stops_table(conversations),
        make_table("ended by", arms, _count_endings(summaries)),
        make_table("outcome in the world, mean", arms, _average_outcomes(arms)),
        make_table("moves", arms, _format_moves(arms), _MOVES_NOTE),
        make_table("output tokens of a call", arms, _format_output_tokens(arms)),
        _make_means_table(summaries, timed),
    ]
    for table in tables:
        if table.rows:
            yield table
    yield from build_ablation_tables(all_arms, reference_arms, ablated or {})
    yield from build_pair_tables(arms, "arms in pairs", "goal_completion")
    yield from build_category_tables(arms)
    if any(conversations.values()):
        yield from build_pair_tables(conversations, "arms in pairs, progress rate", "progress_rate")


def _get_user(record: ConversationRecord) -> str | None:
    return record.user


def _get_use_case(record: ConversationRecord) -> str | None:
    return record.use_case


def _get_tested_part(record: ConversationRecord) -> str:
    return "matcher alone" if is_of_matcher_alone(record) else "whole turn"


def _make_customers_goal_table(arms: RecordsByArm) -> Table:
    with_goal = filter_records(arms, lambda record: record.goal is not None)
    return make_table(
        CUSTOMERS_GOAL, arms, _group_rows(with_goal, format_goal_reached, _get_user), _GOAL_NOTE
    )


def _make_completion_table(arms: RecordsByArm, nothing_to_complete: int) -> Table:
    notes = [_INTERVAL_NOTE]
    if nothing_to_complete:
        notes.append(
            f"Left out of both rates, because the graph asks for nothing there: {nothing_to_complete:,}."
        )
    rows = _group_rows(arms, format_goal_completed, _get_tested_part)
    return make_table("goal completion", arms, rows, *notes)


def _split_goal_completion(arms: RecordsByArm, get_group: GetGroup) -> Rows:
    """Return goal completion by group, or nothing if there are fewer than two groups."""
    rows = _group_rows(arms, format_goal_completed, get_group)
    return rows if len(rows) > 1 else {}


def _group_rows(
    arms: RecordsByArm, format_cell: Callable[[Records], str], *groupings: GetGroup
) -> dict[str, Cells]:
    """Return a row for each group, if a grouping makes several, and one for all."""
    rows: dict[str, Cells] = {}
    for get_group in groupings:
        groups = _group_across_arms(arms, get_group)
        if len(groups) > 1:
            for name in sorted(groups):
                rows[name] = _make_cells(groups[name], format_cell)
    if any(arms.values()):
        rows["all"] = _make_cells(arms, format_cell)
    return rows


def _group_across_arms(arms: RecordsByArm, get_group: GetGroup) -> dict[str, dict[str, Records]]:
    groups: dict[str, dict[str, Records]] = {}
    for arm, records in arms.items():
        for name, group in group_by(records, get_group).items():
            groups.setdefault(name, {})[arm] = group
    return groups


def _make_cells(arms: RecordsByArm, format_cell: Callable[[Records], str]) -> Cells:
    cases: set[str | int] = set()
    for records in arms.values():
        cases.update(record.scenario or position for position, record in enumerate(records))
    cells = {CASES: f"{len(cases):,}"}
    for arm, records in arms.items():
        if records:
            cells[arm] = format_cell(records)
    return cells


def _make_pass_hat_k_table(summaries: SummaryByArm) -> Table:
    run_counts: set[int] = set()
    undecided = []
    for arm, summary in summaries.items():
        run_counts.update(summary.pass_hat_k)
        if summary.pass_hat_k_undecided:
            undecided.append(f"{arm} {summary.pass_hat_k_undecided:,}")
    rows = {}
    for k in sorted(run_counts)[:_MAX_RUNS]:
        shares = {arm: summary.pass_hat_k.get(k) for arm, summary in summaries.items()}
        rows[f"k = {k}"] = _format_percents(shares)
    notes = ["How likely it is that k runs of a scenario all complete the goal."]
    if undecided:
        notes.append(f"Scenarios left out, because not every run is decided: {', '.join(undecided)}.")
    return make_table("pass^k", summaries, rows, *notes)


def _make_stops_table(arms: RecordsByArm) -> Table:
    counts: dict[str, Counter[str]] = {}
    total: Counter[str] = Counter()
    for arm, records in arms.items():
        counts[arm] = Counter(record.stopped_at for record in records if record.stopped_at)
        total += counts[arm]
    rows = {}
    for milestone, _ in total.most_common(_MAX_STOPS):
        rows[milestone] = {arm: f"{count[milestone]:,}" for arm, count in counts.items()}
    notes = [_END_NOTE] if END in rows else []
    return make_table("stopped at", arms, rows, *notes)


def _count_endings(summaries: SummaryByArm) -> Rows:
    """Return how often conversations ended for each reason, or nothing if the user always left."""
    rows = {}
    for reason, text in ENDS.items():
        if any(reason in summary.ended for summary in summaries.values()):
            rows[text] = {arm: f"{summary.ended.get(reason, 0):,}" for arm, summary in summaries.items()}
    return {} if list(rows) == [ENDS["user"]] else rows


def _average_outcomes(arms: RecordsByArm) -> Rows:
    rows = {}
    for name in _collect_names(arms, lambda record: record.outcome):
        cells = {}
        for arm, records in arms.items():
            mean = _average([record.outcome[name] for record in records if name in record.outcome])
            cells[arm] = format_number(mean, ".3f")
        rows[name] = cells
    return rows


def _collect_names(
    arms: RecordsByArm, get_names: Callable[[ConversationRecord], Iterable[str]]
) -> Iterable[str]:
    names: dict[str, None] = {}
    for records in arms.values():
        for record in records:
            names.update(dict.fromkeys(get_names(record)))
    return names


def _average(values: Sequence[float]) -> float | None:
    return clipped_mean(values) if values else None


def _format_moves(arms: RecordsByArm) -> Rows:
    shares = {arm: _compute_move_shares(records) for arm, records in arms.items()}
    known_moves = set[str]().union(*shares.values())
    rows: dict[str, Cells] = {}
    if "think" in known_moves:
        for move in ("think", "speak", "act", "invalid"):
            if move in known_moves:
                rows[move] = _format_percents({arm: shares[arm].get(move) for arm in arms})
    trials = {arm: [record.trials for record in records] for arm, records in arms.items()}
    if any(max(counts) > 1 for counts in trials.values()):
        rows["trials"] = {arm: format_number(_average(counts), ".1f") for arm, counts in trials.items()}
    return rows


def _compute_move_shares(records: Records) -> dict[str, float]:
    counts = Counter[str]()
    for record in records:
        counts.update(record.moves)  # keeps those that are 0
    done = counts["speak"] + counts["act"]
    totals = {"think": counts["think"] + done, "speak": done, "act": done, "invalid": counts["act"]}
    return {move: counts[move] / total for move, total in totals.items() if total and move in counts}


def _format_output_tokens(arms: RecordsByArm) -> Rows:
    rows = {}
    for step in _collect_names(arms, lambda record: record.steps):
        means = {arm: average_output_tokens(records, step) for arm, records in arms.items()}
        rows[step] = {arm: format_number(mean, ".0f") for arm, mean in means.items()}
    return rows


def _make_means_table(summaries: SummaryByArm, timed: bool) -> Table:
    """Return the means that aren't 0 in every arm; a note names the others."""
    fields = dict(_MEANS)
    if timed:
        fields["seconds of a turn"] = "turn_seconds"
    rows: dict[str, Cells] = {}
    for name, field in fields.items():
        means = {arm: getattr(summary, field) for arm, summary in summaries.items()}
        places = 0 if "tokens" in name else 1
        if any(mean.n for mean in means.values()):
            rows[name] = {arm: format_mean_count(mean.mean, places) for arm, mean in means.items()}
    forbidden_rates = {arm: summary.forbidden.rate for arm, summary in summaries.items()}
    rows["something forbidden"] = _format_percents(forbidden_rates)
    zeros = [name for name, cells in rows.items() if set(cells.values()) <= {"0", "0.0", "0%", NOT_KNOWN}]
    for name in zeros:
        del rows[name]
    notes = [f"0 everywhere: {', '.join(zeros)}."] if zeros else []
    return make_table("a conversation, mean", summaries, rows, *notes)


def _format_percents(shares: Mapping[str, float | None]) -> Cells:
    return {arm: format_percent(share) for arm, share in shares.items()}
