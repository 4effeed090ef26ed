"""Print every figure: `python -m benchmarks`, or `make bench`.

- `python -m benchmarks scoring [FILE]`: how fast conversations are scored, ours and those of a tau-bench file.
- `python -m benchmarks evaluation`: how near to the ideal conversations come that wait for a model.
- `python -m benchmarks recall [FILE]`: how much `max_judged` finds, on a labelled set of yours, too.
- `python -m benchmarks airline FILE`: what the recorded runs of a tau-bench file achieved.
"""

from __future__ import annotations

import os

# Before LangGraph is imported: checkpoints of the state's own types then load without a word.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from arq_graph.errors import ArqGraphError
from benchmarks import counting, evaluation, import_time, many_guidelines, output_tokens, scoring, turn, waves
from benchmarks.table import make_table

PEER = "Parlant 3.3.2"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Print what a turn and a score cost."
    )
    parts = ["all", "recall", "scoring", "evaluation", "airline"]
    parser.add_argument("part", nargs="?", choices=parts, default="all")
    parser.add_argument(
        "file", nargs="?", type=Path, help="a tau-bench result file; for recall, a labelled set"
    )
    arguments = parser.parse_args()
    if arguments.part == "airline" and arguments.file is None:
        parser.error("airline needs a tau-bench result file, such as gpt-4o-airline.json")
    console = Console()
    try:
        if arguments.part == "recall":
            shares = _make_recall_tables(
                arguments.file or many_guidelines.LABELLED, with_missed=bool(arguments.file)
            )
            console.print(*shares)
            return
        if arguments.part == "airline":
            from benchmarks.airline_tables import tables

            for table in tables(arguments.file):
                console.print(table)
            return
        if arguments.part == "all":
            _print_turns(console)
        if arguments.part != "scoring":
            console.print(_make_waiting_table())
            console.print(_make_worker_table())
        if arguments.part != "evaluation":
            _print_scoring(console, arguments.file)
    except ArqGraphError as error:
        sys.exit(str(error))


def _print_turns(console: Console) -> None:
    console.print(_make_calls_table())
    console.print(_make_waves_table())
    console.print(_make_time_table())
    console.print(_make_storage_table())
    console.print(_make_growth_table())
    console.print(*_make_recall_tables(many_guidelines.LABELLED))
    console.print(_make_prefix_table())
    console.print(_make_token_table())
    console.print(_make_import_table())


def _print_scoring(console: Console, file: Path | None) -> None:
    generated = scoring.made()
    console.print(_make_speed_table(f"{len(generated):,} conversations made here, on one core", generated))
    if file is not None:
        recorded = scoring.recorded(file)
        console.print(_make_speed_table(f"{len(recorded):,} recorded conversations, on one core", recorded))
    console.print(_make_graph_size_table())


def _make_calls_table() -> Table:
    table = make_table(
        "A turn with one tool call, counted at an endpoint",
        "guidelines", "calls", "waves", "prompt characters", "and of schemas", f"{PEER}: calls", f"{PEER}: characters",
    )  # fmt: skip
    peer = {20: ("13", "156,224"), 200: ("43", "554,357")}
    for guidelines in (20, 200):
        count = counting.count_turn(guidelines)
        table.add_row(
            str(guidelines),
            str(count.calls),
            str(count.waves),
            f"{count.prompt_characters:,}",
            f"{count.schema_characters:,}",
            *peer[guidelines],
        )
    return table


def _make_waves_table() -> Table:
    name, count = output_tokens.tokenizer()
    table = make_table(
        f"A turn without and with eager=True, at {waves.SECONDS:.0f} s a call; output tokens: {name}",
        "guidelines, tools", "turn", "eager", "calls", "waves", "characters with schemas", "output tokens", "seconds",
    )  # fmt: skip
    for guidelines, tools in waves.SIZES:
        for cost in waves.measure_turns(guidelines, tools, count):
            table.add_row(
                f"{guidelines}, {tools}",
                cost.turn,
                "yes" if cost.eager else "no",
                str(cost.calls),
                str(cost.waves),
                f"{cost.characters:,}",
                f"{cost.tokens:,}",
                f"{cost.seconds:.1f}",
            )
    return table


def _make_time_table() -> Table:
    table = make_table(
        "Our own time in that turn, in-process model at zero latency (median)", "guidelines", "sync", "async"
    )
    for guidelines in (20, 200):
        sync, asynchronous = turn.measure_turn(guidelines)
        table.add_row(str(guidelines), f"{sync:.0f} ms", f"{asynchronous:.0f} ms")
    return table


def _make_storage_table() -> Table:
    table = make_table("What that turn writes into a SQLite checkpointer", "guidelines", "all", "active")
    for guidelines in (20, 200):
        cells = [str(guidelines)]
        for keep_matches in ("all", "active"):
            kilobytes = many_guidelines.measure_storage(guidelines, keep_matches)
            cells.append(f"{kilobytes:,.0f} kB")
        table.add_row(*cells)
    return table


def _make_growth_table() -> Table:
    table = make_table(
        "A turn with one tool call where a matching pass judges some of many guidelines",
        "guidelines", "max_judged", "to compile",
        "calls", "waves", "prompt characters", "and of schemas", "our own time",
    )  # fmt: skip
    for growth in many_guidelines.growth():
        count = growth.counted
        table.add_row(
            f"{growth.guidelines:,}",
            str(growth.max_judged),
            f"{growth.seconds:.1f} s",
            str(count.calls),
            str(count.waves),
            f"{count.prompt_characters:,}",
            f"{count.schema_characters:,}",
            f"{growth.milliseconds:.0f} ms",
        )
    return table


def _make_recall_tables(file: Path, *, with_missed: bool = False) -> list[Table]:
    limits = [f"max_judged={limit}" for limit in many_guidelines.LIMITS]
    table = make_table(
        f"Share of the guidelines that must be judged that are: {file.name}", "chosen by", *limits
    )
    missed = make_table("What is not judged then, though it must be", "message", "chosen by", *limits)
    for recall in many_guidelines.recalls(file):
        table.add_row(recall.by, *(f"{share:.0%}" for share in recall.shares))
        for message, *ids in zip(recall.messages, *recall.missed, strict=True):
            if any(ids):
                missed.add_row(escape(message.says), recall.by, *map(", ".join, ids))
    return [table, missed] if with_missed else [table]


def _make_prefix_table() -> Table:
    table = make_table(
        "Share of a turn's prompt that the next turn's prompt begins with", "asked", "smallest", "mean"
    )
    for name, (smallest, mean) in turn.measure_stable_prefixes().items():
        table.add_row(name, f"{smallest:.1%}", f"{mean:.1%}")
    return table


def _make_token_table() -> Table:
    name, count = output_tokens.tokenizer()
    table = make_table(
        f"Output tokens ({name})",
        "per", *output_tokens.MODES, "the paper's full keys, same words", "the paper's average (arq)",
    )  # fmt: skip
    for row in output_tokens.rows(count):
        table.add_row(
            row.what,
            *(str(row.ours[mode]) for mode in output_tokens.MODES),
            str(row.paper_keys),
            str(row.paper),
        )
    return table


def _make_import_table() -> Table:
    langgraph, ours, names = import_time.measure_imports()
    table = make_table("Import, in a fresh interpreter (median)", "statement", "seconds", "ratio")
    table.add_row("import langgraph.graph", f"{langgraph:.2f}", "1.00")
    table.add_row("import arq_graph", f"{ours:.2f}", f"{ours / langgraph:.2f}")
    table.add_row(
        "from arq_graph import Agent, create_guided_agent", f"{names:.2f}", f"{names / langgraph:.2f}"
    )
    return table


def _make_waiting_table() -> Table:
    at_once = f"{evaluation.CONVERSATIONS} conversations at {evaluation.AT_ONCE} at a time"
    table = make_table(
        f"{at_once}, an endpoint that answers after {evaluation.SECONDS * 1000:.0f} ms",
        "app", "calls", "seconds", "ideal", "ratio", "app alone", "memory of one that waits",
    )  # fmt: skip
    for run in evaluation.runs():
        waiting = evaluation.bytes_per_waiting(run.app) / 1024
        seconds = (f"{run.seconds:.2f}", f"{run.ideal:.2f}", f"{run.ratio:.2f}", f"{run.directly:.2f}")
        table.add_row(run.app, f"{run.calls:,}", *seconds, f"{waiting:,.0f} KB")
    return table


def _make_worker_table() -> Table:
    title = "Conversations of the order desk with the offline model"
    table = make_table(title, "held by", "conversations a second")
    for workers, by in ((0, "this process"), (1, "1 worker"), (2, "2 workers")):
        table.add_row(by, f"{evaluation.guided_per_second(workers):.1f}")
    return table


def _make_speed_table(title: str, tasks: list[scoring.Task]) -> Table:
    table = make_table(title, "what", "what it gives", "conversations a second", "says as our GC does")
    for speed in scoring.speeds(tasks):
        agree = "" if speed.agree is None else f"{speed.agree:,} of {len(tasks):,}"
        rate = "" if speed.per_second is None else f"{speed.per_second:,.0f}"
        table.add_row(speed.what, escape(speed.gives), rate, agree)
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
    for growth in scoring.growth():
        seconds = (growth.make, growth.first, growth.again, growth.make + growth.first)
        table.add_row(f"{growth.milestones:,}", *map("{:.2f}".format, seconds))
    return table


if __name__ == "__main__":
    main()
