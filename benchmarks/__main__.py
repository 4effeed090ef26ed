"""Print every figure: `python -m benchmarks`, or `make bench`.

- `python -m benchmarks turn`: our own time in a turn, beside a bare LangGraph with the same nodes and model calls.
- `python -m benchmarks scoring [FILE]`: how fast conversations are scored, also those of a tau-bench file.
- `python -m benchmarks evaluation`: how near to the ideal many conversations come that wait for a model.
- `python -m benchmarks recall [FILE]`: how much `max_judged` finds, also on a labelled set of yours.
- `python -m benchmarks airline FILE`: what the recorded runs of a tau-bench file achieved.
"""

from __future__ import annotations

import os

# Before LangGraph is imported: checkpoints of the state's own types then load without a word.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

import argparse
import sys
import time
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from arq_graph.errors import ArqGraphError
from benchmarks import (
    evaluation,
    load,
    many_guidelines,
    scoring,
    turn_tables,
)
from benchmarks.table import make_table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Print what a turn and a score cost."
    )
    parts = ["all", "turn", "recall", "scoring", "evaluation", "airline"]
    parser.add_argument("part", nargs="?", choices=parts, default="all")
    parser.add_argument(
        "file", nargs="?", type=Path, help="a tau-bench result file; for recall, a labelled set"
    )
    arguments = parser.parse_args()
    if arguments.part == "airline" and arguments.file is None:
        parser.error("airline needs a tau-bench result file, such as gpt-4o-airline.json")
    console = Console()
    start = time.perf_counter()
    try:
        _print_part(arguments.part, arguments.file, console)
    except ArqGraphError as error:
        sys.exit(str(error))
    minutes = (time.perf_counter() - start) / 60
    processor_minutes = (time.process_time() + scoring.read_child_seconds()) / 60
    console.print(f"This took {minutes:.1f} minutes, with {processor_minutes:.1f} minutes of processor time.")


def _print_part(part: str, file: Path | None, console: Console) -> None:
    match part:
        case "turn":
            console.print(turn_tables.make_time_table())
            console.print(turn_tables.make_long_conversation_table())
        case "recall":
            labelled = file or many_guidelines.LABELLED
            console.print(*turn_tables.make_recall_tables(labelled, with_missed=file is not None))
        case "scoring":
            _print_scoring(console, file)
        case "evaluation":
            _print_evaluation(console)
        case "airline" if file:
            from benchmarks.airline_tables import make_airline_tables

            console.print(*make_airline_tables(file))
        case _:
            _print_turns(console)
            _print_evaluation(console)
            _print_scoring(console, file)


def _print_turns(console: Console) -> None:
    console.print(turn_tables.make_calls_table())
    console.print(turn_tables.make_journeys_table())
    console.print(turn_tables.make_waves_table())
    console.print(turn_tables.make_time_table())
    console.print(turn_tables.make_long_conversation_table())
    console.print(turn_tables.make_storage_table())
    console.print(turn_tables.make_growth_table())
    console.print(*turn_tables.make_recall_tables(many_guidelines.LABELLED))
    console.print(turn_tables.make_batch_size_table())
    console.print(turn_tables.make_prefix_table())
    console.print(turn_tables.make_token_table())
    console.print(turn_tables.make_import_table())


def _print_evaluation(console: Console) -> None:
    console.print(_make_load_table())
    console.print(_make_waiting_table())
    console.print(_make_worker_table())


def _print_scoring(console: Console, file: Path | None) -> None:
    generated = scoring.make_tasks()
    title = f"{len(generated):,} generated conversations, on one core"
    console.print(_make_speed_table(title, generated, scoring.measure_command()))
    if file is not None:
        recorded = scoring.read_tasks(file)
        console.print(_make_speed_table(f"{len(recorded):,} recorded conversations, on one core", recorded))
    console.print(_make_graph_size_table())


def _make_load_table() -> Table:
    table = make_table(
        f"{load.CONVERSATIONS} conversations at once, a model of this process that answers after "
        f"{load.SECONDS * 1000:.0f} ms: one turn with a tool call each",
        "app", "calls", "waves", "seconds", "ideal", "ratio", "processor seconds",
    )  # fmt: skip
    for run in load.measure_loads():
        table.add_row(
            run.app,
            f"{run.calls:,}",
            str(run.waves),
            f"{run.seconds:.2f}",
            f"{run.ideal:.2f}",
            f"{run.seconds / run.ideal:.2f}",
            f"{run.processor_seconds:.2f}",
        )
    return table


def _make_waiting_table() -> Table:
    at_once = f"{evaluation.CONVERSATIONS} conversations at {evaluation.AT_ONCE} at a time"
    table = make_table(
        f"{at_once}, an endpoint that answers after {evaluation.SECONDS * 1000:.0f} ms",
        "app", "calls", "seconds", "ideal", "ratio", "app alone", "memory of one that waits",
    )  # fmt: skip
    for run in evaluation.measure_runs():
        waiting = evaluation.measure_waiting_bytes(run.app) / 1024
        table.add_row(
            run.app,
            f"{run.calls:,}",
            f"{run.seconds:.2f}",
            f"{run.ideal:.2f}",
            f"{run.ratio:.2f}",
            f"{run.app_alone:.2f}",
            f"{waiting:,.0f} KB",
        )
    return table


def _make_worker_table() -> Table:
    title = "Conversations of the order desk with the offline model"
    table = make_table(title, "run by", "conversations a second")
    for workers, name in ((0, "this process"), (1, "1 worker"), (2, "2 workers")):
        table.add_row(name, f"{evaluation.measure_guided_rate(workers):.1f}")
    return table


def _make_speed_table(
    title: str, tasks: list[scoring.Task], further_speeds: Iterable[scoring.Speed] = ()
) -> Table:
    table = make_table(title, "scored by", "figures", "conversations a second", "agrees with our GC")
    for speed in chain(scoring.measure_speeds(tasks), further_speeds):
        agreeing = "" if speed.agreeing is None else f"{speed.agreeing:,} of {len(tasks):,}"
        rate = "" if speed.per_second is None else f"{speed.per_second:,.0f}"
        table.add_row(speed.name, escape(speed.figures), rate, agreeing)
    return table


def _make_graph_size_table() -> Table:
    table = make_table(
        "Seconds for one graph and a conversation of 900 events",
        "milestones",
        "make",
        "first score",
        "again",
        "sum",
    )
    for times in scoring.measure_graph_sizes():
        table.add_row(
            f"{times.milestone_count:,}",
            f"{times.make:.2f}",
            f"{times.first_score:.2f}",
            f"{times.next_score:.2f}",
            f"{times.make + times.first_score:.2f}",
        )
    return table


if __name__ == "__main__":
    main()
