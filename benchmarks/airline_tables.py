"""Print the tables of the airline runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from arq_graph.cli.screen import make_printable
from arq_graph.errors import InputError
from arq_graph.milestones import BrokenRecord
from arq_graph.milestones.reports.statistics import pass_hat_k, share_interval
from arq_graph.milestones.reports.summary import Fourfold
from benchmarks.airline import (
    REASONS,
    VARIANTS,
    Run,
    Variant,
    are_writes_confirmed,
    count_left_out_tools,
    explain_difference,
    read_runs,
)
from benchmarks.table import make_table

TRIALS = (1, 2, 4)
_CONFIRMED = {True: "yes", False: "no", None: "not recorded"}


def make_airline_tables(file: Path) -> Iterator[Table | Text]:
    """Yield what the runs of a file achieved, and where goal completion and the reward differ.

    Raises:
        InputError: The file can't be read, or holds no run.
    """
    runs: list[Run] = []
    broken_records: list[BrokenRecord] = []
    for record in read_runs(file):
        if isinstance(record, Run):
            runs.append(record)
        else:
            broken_records.append(record)
    if not runs:
        raise InputError("; ".join(str(broken.error) for broken in broken_records[:3]))
    for broken in broken_records:
        yield Text(make_printable(f"left out: {broken.error}"))
    task_count = len({run.transcript.task for run in runs})
    yield _make_figures_table(
        runs, f"{len(runs)} conversations on {task_count} tasks (95% intervals, over tasks)"
    )
    yield _make_agreement_table(runs)
    empty_count = sum(not run.actions for run in runs)
    without_write_count = sum(not run.gold_writes for run in runs)
    yield Text(
        f"{empty_count} conversations have an empty gold list, and {without_write_count} have no write in it: where "
        "nothing is to be done, GC and PR are not known, and nothing is counted. That no other write was made is asked "
        "here, beside the measure; with that, doing nothing can be right, and all conversations count."
    )
    yield _make_differences_table(runs)
    yield _make_left_out_table(runs)
    confirmed = _CONFIRMED[are_writes_confirmed(runs)]
    yield Text(f"The recorded database hashes confirm which tools write: {confirmed}.")


def count_agreement(runs: Sequence[Run], variant: Variant) -> Fourfold:
    """Count goal completion (A) against the reward (B), where both are known."""
    return Fourfold.count((run.is_goal_completed(variant), run.is_rewarded) for run in runs)


def _make_figures_table(runs: Sequence[Run], title: str) -> Table:
    pass_columns = [f"pass^{k}" for k in TRIALS]
    table = make_table(title, "goal", "GC", "", "mean PR", "", *pass_columns)
    for variant, description in VARIANTS.items():
        outcomes: list[tuple[Run, bool]] = []
        for run in runs:
            is_completed = run.is_goal_completed(variant)
            if is_completed is not None:
                outcomes.append((run, is_completed))
        progress_cells = ["", ""]
        if variant != "only writes":
            progress_cells = _format_progress(runs, variant)
        table.add_row(description, *_format_share(outcomes), *progress_cells, *_format_passes(outcomes))
    rewards = [(run, run.is_rewarded) for run in runs]
    table.add_row("the recorded reward", *_format_share(rewards), "", "", *_format_passes(rewards))
    return table


def _format_progress(runs: Sequence[Run], variant: Variant) -> list[str]:
    """Return the mean progress rate and its interval, over the runs where it is known."""
    rates: list[float] = []
    tasks: list[str | None] = []
    for run in runs:
        rate = run.score_variant(variant).progress_rate
        if rate is not None:
            rates.append(rate)
            tasks.append(run.transcript.task)
    if not rates:
        return ["", ""]
    low, high = share_interval(rates, tasks)
    return [f"{sum(rates) / len(rates):.3f}", f"{low:.3f} to {high:.3f}"]


def _format_share(outcomes: Sequence[tuple[Run, bool]]) -> list[str]:
    """Return the share of the outcomes that are a yes, and its interval."""
    if not outcomes:
        return ["", ""]
    values = [float(is_yes) for _, is_yes in outcomes]
    low, high = share_interval(values, [run.transcript.task for run, _ in outcomes])
    share = f"{sum(values):.0f} of {len(values)}, {sum(values) / len(values):.1%}"
    return [share, f"{low:.1%} to {high:.1%}"]


def _format_passes(outcomes: Sequence[tuple[Run, bool]]) -> list[str]:
    """Return pass^k for each number of trials."""
    counts_by_task: dict[str | None, tuple[int, int]] = {}
    for run, is_yes in outcomes:
        successes, trials = counts_by_task.get(run.transcript.task, (0, 0))
        counts_by_task[run.transcript.task] = (successes + is_yes, trials + 1)
    cells: list[str] = []
    for k in TRIALS:
        rate = pass_hat_k(counts_by_task, k)
        cells.append("" if rate is None else f"{rate:.3f}")
    return cells


def _make_agreement_table(runs: Sequence[Run]) -> Table:
    table = make_table(
        "Goal completion and the recorded reward",
        "goal", "both", "goal alone", "reward alone", "neither", "agree",
    )  # fmt: skip
    for variant, description in VARIANTS.items():
        counts = count_agreement(runs, variant)
        rate = ""
        if counts.rate is not None:
            rate = f"{counts.both + counts.neither} of {counts.n}, {counts.rate:.1%}"
        table.add_row(
            description,
            str(counts.both),
            str(counts.only_a),
            str(counts.only_b),
            str(counts.neither),
            rate,
        )
    return table


def _make_differences_table(runs: Sequence[Run]) -> Table:
    variants: tuple[Variant, ...] = ("unordered", "writes", "only writes")
    columns = [VARIANTS[variant] for variant in variants]
    table = make_table("Why they differ", "why", *columns)
    reasons_by_variant = {
        variant: Counter(explain_difference(run, variant) for run in runs) for variant in variants
    }
    totals = [0] * len(variants)
    for reason, description in REASONS.items():
        counts = [reasons_by_variant[variant][reason] for variant in variants]
        table.add_row(description, *map(str, counts))
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
    table.add_section()
    table.add_row("in all", *map(str, totals))
    return table


def _make_left_out_table(runs: Sequence[Run]) -> Table:
    table = make_table("Of which tools the missing calls are that change nothing", "tool", "conversations")
    run_counts = count_left_out_tools(runs)
    for tool in sorted(run_counts, key=lambda tool: (-run_counts[tool], tool)):
        table.add_row(Text(make_printable(tool)), str(run_counts[tool]))
    return table
