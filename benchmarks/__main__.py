"""Print every figure: `python -m benchmarks`, or `make bench`.

- `python -m benchmarks turn`: our own time in a turn, beside a bare LangGraph with the same nodes and model calls.
- `python -m benchmarks scoring [FILE]`: how fast conversations are scored, also those of a tau-bench file.
- `python -m benchmarks evaluation`: how near to the ideal conversations come that wait for a model.
- `python -m benchmarks recall [FILE]`: how much `max_judged` finds, also on a labelled set of yours.
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
from benchmarks import (
    batch_sizes,
    counting,
    evaluation,
    import_time,
    many_guidelines,
    output_tokens,
    scoring,
    turn,
    waves,
)
from benchmarks.table import make_table

PEER = "Parlant 3.3.2"


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
    try:
        if arguments.part == "recall":
            shares = _make_recall_tables(
                arguments.file or many_guidelines.LABELLED, with_missed=bool(arguments.file)
            )
            console.print(*shares)
            return
        if arguments.part == "turn":
            console.print(_make_time_table())
            console.print(_make_long_conversation_table())
            return
        if arguments.part == "airline":
            from benchmarks.airline_tables import make_airline_tables

            for table in make_airline_tables(arguments.file):
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
    console.print(_make_long_conversation_table())
    console.print(_make_storage_table())
    console.print(_make_growth_table())
    console.print(*_make_recall_tables(many_guidelines.LABELLED))
    console.print(_make_batch_size_table())
    console.print(_make_prefix_table())
    console.print(_make_token_table())
    console.print(_make_import_table())


def _print_scoring(console: Console, file: Path | None) -> None:
    generated = scoring.make_tasks()
    console.print(_make_speed_table(f"{len(generated):,} generated conversations, on one core", generated))
    if file is not None:
        recorded = scoring.read_tasks(file)
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
    name, count_tokens = output_tokens.get_tokenizer()
    table = make_table(
        f"A turn without and with eager=True, at {waves.SECONDS:.0f} s a call; output tokens: {name}",
        "guidelines, tools", "turn", "eager", "calls", "waves", "characters with schemas", "output tokens", "seconds",
    )  # fmt: skip
    for guidelines, tools in waves.SIZES:
        for cost in waves.measure_turns(guidelines, tools, count_tokens):
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
        "Our own time in that turn, with an in-process model: median milliseconds of processor time",
        "guidelines", "run with", "guided agent", "bare LangGraph, same calls", "ratio", "create_agent, two calls",
    )  # fmt: skip
    for cost in turn.measure_turns():
        table.add_row(
            str(cost.guideline_count),
            "ainvoke" if cost.is_async else "invoke",
            f"{cost.guided:.1f}",
            f"{cost.floor:.1f}",
            f"{cost.ratio:.2f}",
            f"{cost.langchain:.1f}",
        )
    return table


def _make_long_conversation_table() -> Table:
    table = make_table(
        "Our own time in turn 200 of a conversation, 20 guidelines: median milliseconds of processor time",
        "conversation kept by", "messages before", "turn 1", "turn 200", "ratio", "bare LangGraph: turn 1", "turn 200",
    )  # fmt: skip
    for growth in turn.measure_growth():
        table.add_row(
            "a checkpointer" if growth.has_checkpointer else "the caller",
            str(growth.message_count),
            f"{growth.first:.1f}",
            f"{growth.last:.1f}",
            f"{growth.last / growth.first:.2f}",
            f"{growth.floor_first:.1f}",
            f"{growth.floor_last:.1f}",
        )
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
    for cost in many_guidelines.measure_agent_sizes():
        count = cost.count
        table.add_row(
            f"{cost.guideline_count:,}",
            str(cost.max_judged),
            f"{cost.seconds:.1f} s",
            str(count.calls),
            str(count.waves),
            f"{count.prompt_characters:,}",
            f"{count.schema_characters:,}",
            f"{cost.milliseconds:.0f} ms",
        )
    return table


def _make_recall_tables(file: Path, *, with_missed: bool = False) -> list[Table]:
    limits = [f"max_judged={limit}" for limit in many_guidelines.LIMITS]
    table = make_table(
        f"Share of the guidelines that must be judged that are: {file.name}", "chosen by", *limits
    )
    missed_table = make_table("What is not judged then, though it must be", "message", "chosen by", *limits)
    for recall in many_guidelines.measure_recalls(file):
        shares = [f"{share:.0%}" for share in recall.shares]
        table.add_row(recall.chosen_by, *shares)
        for message, *missed_ids in zip(recall.messages, *recall.missed, strict=True):
            if any(missed_ids):
                missed_table.add_row(escape(message.says), recall.chosen_by, *map(", ".join, missed_ids))
    if with_missed:
        return [table, missed_table]
    return [table]


def _make_batch_size_table() -> Table:
    name, count_tokens = output_tokens.get_tokenizer()
    table = make_table(
        f"A matching pass by the size of its batches; tokens: {name}",
        "guidelines", "batch size", "calls", "input tokens with schemas", "output tokens", "of the longest answer",
    )  # fmt: skip
    for cost in batch_sizes.measure_batch_sizes(count_tokens):
        size = str(cost.batch_size)
        if cost.is_default:
            size += " (default)"
        table.add_row(
            str(cost.guideline_count),
            size,
            str(cost.calls),
            f"{cost.input_tokens:,}",
            f"{cost.output_tokens:,}",
            f"{cost.longest_answer:,}",
        )
    return table


def _make_prefix_table() -> Table:
    name, count_tokens = output_tokens.get_tokenizer()
    table = make_table(
        f"Share of a turn's prompt that the next turn's prompt begins with; tokens: {name}",
        "asked", "smallest", "mean", "tokens of the head", "of the schema",
    )  # fmt: skip
    for prefix in turn.measure_stable_prefixes(count_tokens):
        table.add_row(
            prefix.blueprint,
            f"{prefix.smallest_share:.1%}",
            f"{prefix.mean_share:.1%}",
            f"{prefix.head_tokens:,}",
            f"{prefix.schema_tokens:,}",
        )
    return table


def _make_token_table() -> Table:
    name, count_tokens = output_tokens.get_tokenizer()
    table = make_table(
        f"Output tokens ({name})",
        "per", *output_tokens.MODES, "the paper's full keys, same words", "the paper's average (arq)",
    )  # fmt: skip
    for row in output_tokens.count_output_tokens(count_tokens):
        our_counts = [str(row.ours[mode]) for mode in output_tokens.MODES]
        table.add_row(row.unit, *our_counts, str(row.paper_keys or ""), str(row.paper or ""))
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


def _make_speed_table(title: str, tasks: list[scoring.Task]) -> Table:
    table = make_table(title, "scored by", "figures", "conversations a second", "agrees with our GC")
    for speed in scoring.measure_speeds(tasks):
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
