"""The tables of the airline runs."""

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
    read_runs,
    tools_left_out,
    why,
    writes_are_confirmed,
)
from benchmarks.table import make_table

TRIALS = (1, 2, 4)


def tables(file: Path) -> Iterator[Table | Text]:
    """What the runs of a file achieved, and where goal completion and the reward differ.

    Raises:
        InputError: The file cannot be read, or holds no run.
    """
    read = list(read_runs(file))
    runs = [run for run in read if isinstance(run, Run)]
    if not runs:
        raise InputError("; ".join(str(one.error) for one in read[:3] if isinstance(one, BrokenRecord)))
    for broken in read:
        if isinstance(broken, BrokenRecord):
            yield Text(make_printable(f"left out: {broken.error}"))
    tasks = {run.transcript.task for run in runs}
    yield _figures(runs, f"{len(runs)} conversations on {len(tasks)} tasks (95% intervals, drawn by task)")
    yield _agreement(runs)
    empty = sum(not run.actions for run in runs)
    writing = sum(not run.gold_writes for run in runs)
    yield Text(
        f"{empty} conversations have an empty gold list, and {writing} have no write in it: where nothing is to be "
        "done, GC and PR are not known, and nothing is counted. That no other write was made is asked here, beside "
        "the measure; with that, doing nothing can be right, and all conversations count."
    )
    yield _differences(runs)
    yield _left_out(runs)
    confirmed = {True: "yes", False: "no", None: "not recorded"}[writes_are_confirmed(runs)]
    yield Text(f"The recorded database hashes confirm which tools write: {confirmed}.")


def agreement(runs: Sequence[Run], variant: Variant) -> Fourfold:
    """Goal completion (A) against the reward (B), where both are known."""
    return Fourfold.count((run.goal_completed(variant), run.is_rewarded) for run in runs)


def _figures(runs: Sequence[Run], title: str) -> Table:
    made = make_table(title, "goal", "GC", "", "mean PR", "", *(f"pass^{k}" for k in TRIALS))
    for variant, words in VARIANTS.items():
        known = [(run, done) for run in runs if (done := run.goal_completed(variant)) is not None]
        rated = [(run, rate) for run in runs if (rate := run.scored(variant).progress_rate) is not None]
        mean = progress = ""
        if variant != "only writes":
            rates = [rate for _, rate in rated]
            if rates:
                low, high = share_interval(rates, [run.transcript.task for run, _ in rated])
                mean, progress = f"{sum(rates) / len(rates):.3f}", f"{low:.3f} to {high:.3f}"
        made.add_row(words, *_rate(known), mean, progress, *_passes(known))
    rewarded = [(run, run.is_rewarded) for run in runs]
    made.add_row("the recorded reward", *_rate(rewarded), "", "", *_passes(rewarded))
    return made


def _rate(of: Sequence[tuple[Run, bool]]) -> tuple[str, str]:
    if not of:
        return "", ""
    done = [float(is_done) for _, is_done in of]
    low, high = share_interval(done, [run.transcript.task for run, _ in of])
    return f"{sum(done):.0f} of {len(done)}, {sum(done) / len(done):.1%}", f"{low:.1%} to {high:.1%}"


def _passes(done: Sequence[tuple[Run, bool]]) -> list[str]:
    by_task: dict[str | None, tuple[int, int]] = {}
    for run, completed in done:
        successes, n = by_task.get(run.transcript.task, (0, 0))
        by_task[run.transcript.task] = (successes + completed, n + 1)
    rates = [pass_hat_k(by_task, k) for k in TRIALS]
    return ["" if rate is None else f"{rate:.3f}" for rate in rates]


def _agreement(runs: Sequence[Run]) -> Table:
    made = make_table(
        "Goal completion and the recorded reward",
        "goal",
        "both",
        "goal alone",
        "reward alone",
        "neither",
        "agree",
    )
    for variant, words in VARIANTS.items():
        found = agreement(runs, variant)
        rate = "" if found.rate is None else f"{found.both + found.neither} of {found.n}, {found.rate:.1%}"
        counts = (found.both, found.only_a, found.only_b, found.neither)
        made.add_row(words, *map(str, counts), rate)
    return made


def _differences(runs: Sequence[Run]) -> Table:
    variants: tuple[Variant, ...] = ("unordered", "writes", "only writes")
    made = make_table("Why they differ", "why", *(VARIANTS[variant] for variant in variants))
    found = {variant: Counter(why(run, variant) for run in runs) for variant in variants}
    for reason, words in REASONS.items():
        made.add_row(words, *(str(found[variant][reason]) for variant in variants))
    made.add_section()
    made.add_row("in all", *(str(sum(found[one][reason] for reason in REASONS)) for one in variants))
    return made


def _left_out(runs: Sequence[Run]) -> Table:
    made = make_table("Of which tools the missing calls are that change nothing", "tool", "conversations")
    for tool, count in tools_left_out(runs).most_common():
        made.add_row(Text(make_printable(tool)), str(count))
    return made
