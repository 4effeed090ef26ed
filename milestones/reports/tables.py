"""A report's tables: a column for each arm, and a row for each group of conversations or each figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from arq_graph.milestones.milestone import END
from arq_graph.milestones.reports.comparison import (
    Difference,
    compare_arms,
    compare_use_cases,
    find_reference_arms,
    pair_runs,
)
from arq_graph.milestones.reports.records import ConversationRecord, Ended, group_by
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.statistics import clipped_mean
from arq_graph.milestones.reports.summary import (
    Summary,
    compute_mean,
    compute_rate,
    get_least_progress,
    get_most_progress,
)
from arq_graph.milestones.reports.table_format import (
    NOT_KNOWN,
    Row,
    Table,
    format_interval,
    format_mean_count,
    format_number,
    format_p_value,
    format_percent,
    format_range,
)

RECORDED = "recorded"
"""The column of conversations that no arm of an evaluation ran."""
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
RecordsByArm = Mapping[str, Records]
Cells = dict[str, str]
Rows = Mapping[str, Mapping[str, str]]
"""Cells by row and arm; under `_CASES`, the number of cases of a row."""

DIFFERENCE = ("difference", "p", "pairs", "better")
"""The columns of a difference."""

_CASES = "n"
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
    arms = {
        arm: records for arm, records in all_arms.items() if arm not in reference_arms
    }  # ablations follow
    summaries = {arm: report.summary.arms.get(arm, report.summary.overall) for arm in arms}
    # Progress and stops are of interest only in conversations, not in single answers.
    conversations = _filter_records(arms, lambda record: not record.expected)
    with_goal = _filter_records(arms, lambda record: record.goal is not None)

    def by_user(record: ConversationRecord) -> str | None:
        return record.user

    def by_use_case(record: ConversationRecord) -> str | None:
        return record.use_case

    completion_notes = [_INTERVAL_NOTE]
    if nothing := report.summary.overall.nothing_to_complete:
        completion_notes.append(
            f"Left out of both rates, because the graph asks for nothing there: {nothing:,}."
        )
    stops = _count_stops(conversations)
    tables: list[tuple[str, Rows, list[str]]] = [
        (CUSTOMERS_GOAL, _group_rows(with_goal, _format_goal_reached, by_user), [_GOAL_NOTE]),
        ("goal completion", _group_rows(arms, _format_goal_completed, _get_part), completion_notes),
        (
            "goal completion by category",
            _drop_single(_group_rows(arms, _format_goal_completed, by_use_case)),
            [],
        ),
        (BY_USER, _drop_single(_group_rows(arms, _format_goal_completed, by_user)), []),
        (PROGRESS, _group_rows(conversations, _format_progress, by_use_case, by_user), []),
        ("pass^k", *_format_pass_hat_k(summaries)),
        ("stopped at", stops, [_END_NOTE] if END in stops else []),
        ("ended by", _count_endings(summaries), []),
        ("outcome in the world, mean", _average_outcomes(arms), []),
        ("moves", _format_moves(arms), [_MOVES_NOTE]),
        ("output tokens of a call", _format_tokens(arms), []),
        ("a conversation, mean", *_format_means(summaries, timed)),
    ]
    for title, rows, notes in tables:
        if rows:
            yield make_table(title, arms, rows, *notes)
    yield from _build_ablation_tables(all_arms, reference_arms, ablated or {})
    yield from _build_pair_table(arms, "arms in pairs", "goal_completion")
    yield from _build_category_tables(arms)
    if any(conversations.values()):
        yield from _build_pair_table(conversations, "arms in pairs, progress rate", "progress_rate")


def make_table(title: str, arms: Iterable[str], rows: Rows, *notes: str) -> Table:
    """Return a table of cells by row and arm, with the number of cases of each row if the rows have it."""
    columns = list(arms)
    if any(_CASES in cells for cells in rows.values()):
        columns.insert(0, _CASES)
    table_rows = []
    for name, cells in rows.items():
        table_rows.append(Row(name=name, cells=tuple(cells.get(column, NOT_KNOWN) for column in columns)))
    return Table(title=title, columns=tuple(columns), rows=tuple(table_rows), notes=notes)


def format_difference(difference: Difference, a: str, b: str, *, is_rate: bool = False) -> Mapping[str, str]:
    """Return the cells of a difference in points, or of a rate: with its interval, p, pairs, and the better side."""
    form, factor = ("+.2f", 1) if is_rate else ("+.0f", 100)
    better = {"a better": a, "b better": b}.get(difference.verdict, "not shown")
    figure = format_number(difference.difference, form, factor)
    interval = format_interval(difference.low, difference.high, form, factor)
    cells = (figure + interval, format_p_value(difference.p), f"{difference.pairs:,}", better)
    return dict(zip(DIFFERENCE, cells, strict=True))


def _filter_records(arms: RecordsByArm, is_included: Callable[[ConversationRecord], bool]) -> RecordsByArm:
    filtered = {}
    for arm, records in arms.items():
        filtered[arm] = [record for record in records if is_included(record)]
    return filtered


def _group_rows(
    arms: RecordsByArm,
    format_cell: Callable[[Records], str],
    *groupings: Callable[[ConversationRecord], str | None],
) -> Rows:
    """Return a row for each group, if a grouping makes several, and one for all."""
    rows: dict[str, Cells] = {}
    for get_group in groupings:
        groups = _group_across_arms(arms, get_group)
        if len(groups) > 1:
            for name, group in groups.items():
                rows[name] = _make_cells(group, format_cell)
    if any(arms.values()):
        rows["all"] = _make_cells(arms, format_cell)
    return rows


def _group_across_arms(
    arms: RecordsByArm, get_group: Callable[[ConversationRecord], str | None]
) -> dict[str, dict[str, Records]]:
    """Return the records by group, in alphabetical order, and by arm."""
    groups: dict[str, dict[str, Records]] = {}
    for arm, records in arms.items():
        for name, group in group_by(records, get_group).items():
            groups.setdefault(name, {})[arm] = group
    return {name: groups[name] for name in sorted(groups)}


def _make_cells(arms: RecordsByArm, format_cell: Callable[[Records], str]) -> Cells:
    cases: set[str | int] = set()
    for records in arms.values():
        cases.update(record.scenario or position for position, record in enumerate(records))
    cells = {_CASES: f"{len(cases):,}"}
    for arm, records in arms.items():
        if records:
            cells[arm] = format_cell(records)
    return cells


def _drop_single(rows: Rows) -> Rows:
    return rows if len(rows) > 1 else {}


def _get_part(record: ConversationRecord) -> str:
    return MATCHER if "active" in record.expected else TURN


def _format_goal_completed(records: Records) -> str:
    return _format_share(records, lambda record: record.goal_completed)


def _format_goal_reached(records: Records) -> str:
    return _format_share(records, lambda record: record.goal_reached)


def _format_share(records: Records, get_value: Callable[[ConversationRecord], bool | None]) -> str:
    """Return a range if something is undecided, and otherwise the share with its interval."""
    counted = [record for record in records if record.progress_range is not None]
    if not counted:
        return NOT_KNOWN
    rate = compute_rate(counted, get_value)
    if rate.unknown:
        least = format_percent(rate.count / len(counted))
        most = format_percent((rate.count + rate.unknown) / len(counted))
        return format_range(least, most)
    return format_percent(rate.rate) + format_interval(rate.low, rate.high, ".0f", 100)


def _format_progress(records: Records) -> str:
    least = compute_mean(records, get_least_progress)
    most = compute_mean(records, get_most_progress)
    if not least.n or least.mean != most.mean:
        return format_range(format_number(least.mean), format_number(most.mean))
    return format_number(least.mean) + format_interval(least.low, least.high, ".2f")


def _average(values: Iterable[float | None]) -> float | None:
    numbers = [float(value) for value in values if value is not None]
    return clipped_mean(numbers) if numbers else None


def _format_pass_hat_k(summaries: Mapping[str, Summary]) -> tuple[Rows, list[str]]:
    run_counts: set[int] = set()
    undecided = []
    for arm, summary in summaries.items():
        run_counts.update(summary.pass_hat_k)
        if summary.pass_hat_k_undecided:
            undecided.append(f"{arm} {summary.pass_hat_k_undecided:,}")
    rows = {}
    for k in sorted(run_counts)[:_MAX_RUNS]:
        rows[f"k = {k}"] = {
            arm: format_percent(summary.pass_hat_k.get(k)) for arm, summary in summaries.items()
        }
    notes = ["How likely it is that k runs of a scenario all complete the goal."]
    if undecided:
        notes.append(f"Scenarios left out, because not every run is decided: {', '.join(undecided)}.")
    return rows, notes


def _count_stops(arms: RecordsByArm) -> Rows:
    counts: dict[str, Counter[str]] = {}
    total: Counter[str] = Counter()
    for arm, records in arms.items():
        counts[arm] = Counter(record.stopped_at for record in records if record.stopped_at)
        total += counts[arm]
    rows = {}
    for milestone, _ in total.most_common(_MAX_STOPS):
        rows[milestone] = {arm: f"{count[milestone]:,}" for arm, count in counts.items()}
    return rows


def _count_endings(summaries: Mapping[str, Summary]) -> Rows:
    rows = {}
    for reason, text in ENDS.items():
        if any(reason in summary.ended for summary in summaries.values()):
            rows[text] = {arm: f"{summary.ended.get(reason, 0):,}" for arm, summary in summaries.items()}
    return {} if list(rows) == [ENDS["user"]] else rows


def _average_outcomes(arms: RecordsByArm) -> Rows:
    rows: dict[str, Cells] = {}
    for records in arms.values():
        for record in records:
            rows.update({name: {} for name in record.outcome if name not in rows})
    for name, cells in rows.items():
        for arm, records in arms.items():
            mean = _average(record.outcome.get(name) for record in records)
            cells[arm] = format_number(mean, ".3f")
    return rows


def _format_moves(arms: RecordsByArm) -> Rows:
    shares = {arm: _compute_move_shares(records) for arm, records in arms.items()}
    rows: dict[str, Cells] = {}
    if any("think" in arm_shares for arm_shares in shares.values()):
        for move in ("think", "speak", "act", "invalid"):
            if any(move in arm_shares for arm_shares in shares.values()):
                rows[move] = {arm: format_percent(arm_shares.get(move)) for arm, arm_shares in shares.items()}
    trials = {arm: [record.trials for record in records] for arm, records in arms.items()}
    if any(max(counts, default=1) > 1 for counts in trials.values()):
        rows["trials"] = {arm: format_number(_average(counts), ".1f") for arm, counts in trials.items()}
    return rows


def _compute_move_shares(records: Iterable[ConversationRecord]) -> dict[str, float]:
    counts = Counter[str]()
    for record in records:
        counts.update(record.moves)  # keeps those that are 0
    done = counts["speak"] + counts["act"]
    totals = {"think": counts["think"] + done, "speak": done, "act": done, "invalid": counts["act"]}
    return {move: counts[move] / total for move, total in totals.items() if total and move in counts}


def _format_tokens(arms: RecordsByArm) -> Rows:
    rows: dict[str, Cells] = {}
    for records in arms.values():
        for record in records:
            rows.update({step: {} for step in record.steps if step not in rows})
    for step, cells in rows.items():
        for arm, records in arms.items():
            cells[arm] = format_number(_average_output_tokens(records, step), ".0f")
    return rows


def _average_output_tokens(records: Records, step: str) -> float | None:
    calls = tokens = 0
    for record in records:
        if step in record.steps:
            calls += record.steps[step].calls
            tokens += record.steps[step].output_tokens
    return tokens / calls if calls else None


def _format_means(summaries: Mapping[str, Summary], timed: bool) -> tuple[Rows, list[str]]:
    """Return the rows in which an arm isn't 0, and a note that names the others."""
    fields = dict(_MEANS)
    if timed:
        fields["seconds of a turn"] = "turn_seconds"
    rows: dict[str, Cells] = {}
    for name, field in fields.items():
        means = {arm: getattr(summary, field) for arm, summary in summaries.items()}
        places = 0 if "tokens" in name else 1
        if any(mean.n for mean in means.values()):
            rows[name] = {arm: format_mean_count(mean.mean, places) for arm, mean in means.items()}
    rows["something forbidden"] = {
        arm: format_percent(summary.forbidden.rate) for arm, summary in summaries.items()
    }
    zeros = [name for name, cells in rows.items() if set(cells.values()) <= {"0", "0.0", "0%", NOT_KNOWN}]
    notes = [f"0 everywhere: {', '.join(zeros)}."] if zeros else []
    return {name: cells for name, cells in rows.items() if name not in zeros}, notes


def _build_ablation_tables(
    arms: RecordsByArm, reference_arms: Mapping[str, str], ablated: Mapping[str, str]
) -> Iterator[Table]:
    """Yield a table for each reference arm and step: what each query that is left out is worth."""
    ablations: dict[tuple[str, str], list[str]] = {}
    for arm, reference in reference_arms.items():
        ablations.setdefault((reference, ablated.get(arm, "")), []).append(arm)
    for (reference, step), ablation_arms in ablations.items():
        compared: RecordsByArm = {arm: arms[arm] for arm in (*ablation_arms, reference)}
        if step not in ("", "matcher"):  # of other steps, cases of the matcher alone say nothing
            compared = _filter_records(compared, lambda record: _get_part(record) == TURN)
        comparisons = {comparison.a: comparison for comparison in compare_arms(compared)}
        tokens = {arm: _average_output_tokens(records, step) for arm, records in compared.items()}
        rows: dict[str, Mapping[str, str]] = {reference: {"tokens": format_number(tokens[reference], ".0f")}}
        for arm in ablation_arms:
            difference = comparisons[arm].overall.goal_completion
            cells = dict(format_difference(difference, arm, reference))
            cells["gain"] = cells["difference"]
            cells["tokens"] = _format_token_change(tokens[arm], tokens[reference])
            rows[arm.removeprefix(f"{reference} ")] = cells
        scope = " of whole turns" if len(compared[reference]) < len(arms[reference]) else ""
        completion = _format_goal_completed(compared[reference])
        yield make_table(
            f"{reference} without a query of {step}",
            ("gain", "p", "pairs", "tokens"),
            rows,
            f"With all of its queries {reference} completes the goal in {completion}{scope}. "
            f"Gain: goal completion with the query less that without it, in points, with 95% intervals.",
            f"p is corrected for the {len(ablation_arms)} that were left out (Holm). Tokens: written in an answer of "
            f"{step}.",
        )


def _format_token_change(tokens: float | None, reference_tokens: float | None) -> str:
    if tokens is None or reference_tokens is None:
        return NOT_KNOWN
    return f"{tokens:.0f} ({tokens - reference_tokens:+.0f})"


def _build_category_tables(arms: RecordsByArm) -> Iterator[Table]:
    """Yield the categories in which two arms differ, beginning with the largest difference."""
    for a, b in combinations(arms, 2):
        use_cases = compare_use_cases(pair_runs(arms[a], arms[b]))
        differences = {name: group.goal_completion for name, group in use_cases.items()}
        differing = [name for name, difference in differences.items() if difference.difference]
        differing.sort(key=lambda name: -abs(differences[name].difference or 0))
        rows = {name: format_difference(differences[name], a, b) for name in differing}
        if rows and len(use_cases) > 1:
            note = (
                f"p is corrected for the {len(use_cases)} categories (Holm); categories without a difference are left "
                "out."
            )
            yield make_table(f"where {a} and {b} differ", DIFFERENCE, rows, note)


def _build_pair_table(arms: RecordsByArm, title: str, figure: str) -> Iterator[Table]:
    is_rate = figure == "progress_rate"
    rows = {}
    for comparison in compare_arms(arms):
        difference = getattr(comparison.overall, figure)
        cells = format_difference(difference, comparison.a, comparison.b, is_rate=is_rate)
        rows[f"{comparison.a} → {comparison.b}"] = cells
    unit = "of the progress rate" if is_rate else "of goal completion in points"
    note = f"Differences {unit}, with 95% intervals; p is corrected for the number of pairs (Holm)."
    if rows:
        yield make_table(title, DIFFERENCE, rows, note)
