"""Print every figure: `python -m benchmarks`, or `make bench`.

`python -m benchmarks scoring [FILE]` prints how fast conversations are scored, made ones and those of a tau-bench file;
`python -m benchmarks evaluation` how near to the ideal conversations come that wait for a model;
`python -m benchmarks recall [FILE]` how much `max_judged` finds, on a labelled set of yours, too;
`python -m benchmarks airline FILE` what the recorded runs of a tau-bench file achieved.
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
from benchmarks.table import table

PEER = "Parlant 3.3.2"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Print what a turn and a score cost."
    )
    parts = ["all", "recall", "scoring", "evaluation", "airline"]
    parser.add_argument("what", nargs="?", choices=parts, default="all")
    parser.add_argument(
        "file", nargs="?", type=Path, help="a tau-bench result file; for recall, a labelled set"
    )
    wanted = parser.parse_args()
    if wanted.what == "airline" and wanted.file is None:
        parser.error("airline needs a tau-bench result file, such as gpt-4o-airline.json")
    console = Console()
    try:
        if wanted.what == "recall":
            shares = _recalls(wanted.file or many_guidelines.LABELLED, with_missed=bool(wanted.file))
            console.print(*shares)
            return
        if wanted.what == "airline":
            from benchmarks.airline_tables import tables

            for made in tables(wanted.file):
                console.print(made)
            return
        if wanted.what == "all":
            _print_turns(console)
        if wanted.what != "scoring":
            console.print(_waiting())
            console.print(_workers())
        if wanted.what != "evaluation":
            _print_scoring(console, wanted.file)
    except ArqGraphError as error:
        sys.exit(str(error))


def _print_turns(console: Console) -> None:
    console.print(_calls())
    console.print(_waves())
    console.print(_time())
    console.print(_kept())
    console.print(_many())
    console.print(*_recalls(many_guidelines.LABELLED))
    console.print(_prefixes())
    console.print(_tokens())
    console.print(_imports())


def _print_scoring(console: Console, file: Path | None) -> None:
    made = scoring.made()
    console.print(_speeds(f"{len(made):,} conversations made here, on one core", made))
    if file is not None:
        recorded = scoring.recorded(file)
        console.print(_speeds(f"{len(recorded):,} recorded conversations, on one core", recorded))
    console.print(_growth())


def _calls() -> Table:
    made = table(
        "A turn with one tool call, counted at an endpoint",
        "guidelines", "calls", "waves", "prompt characters", "and of schemas", f"{PEER}: calls", f"{PEER}: characters",
    )  # fmt: skip
    peer = {20: ("13", "156,224"), 200: ("43", "554,357")}
    for guidelines in (20, 200):
        counted = counting.count(guidelines)
        made.add_row(
            str(guidelines),
            str(counted.calls),
            str(counted.waves),
            f"{counted.prompt_characters:,}",
            f"{counted.schema_characters:,}",
            *peer[guidelines],
        )
    return made


def _waves() -> Table:
    name, count = output_tokens.tokenizer()
    made = table(
        f"A turn without and with eager=True, at {waves.SECONDS:.0f} s a call; output tokens: {name}",
        "guidelines, tools", "turn", "eager", "calls", "waves", "characters with schemas", "output tokens", "seconds",
    )  # fmt: skip
    for guidelines, tools in waves.SIZES:
        for cost in waves.costs(guidelines, tools, count):
            which = (f"{guidelines}, {tools}", cost.turn, "yes" if cost.eager else "no")
            figures = (f"{cost.calls}", f"{cost.waves}", f"{cost.characters:,}", f"{cost.tokens:,}")
            made.add_row(*which, *figures, f"{cost.seconds:.1f}")
    return made


def _time() -> Table:
    made = table(
        "Our own time in that turn, in-process model at zero latency (median)", "guidelines", "sync", "async"
    )
    for guidelines in (20, 200):
        sync, asynchronous = turn.milliseconds(guidelines)
        made.add_row(str(guidelines), f"{sync:.0f} ms", f"{asynchronous:.0f} ms")
    return made


def _kept() -> Table:
    made = table("What that turn writes into a SQLite checkpointer", "guidelines", "all", "active")
    for guidelines in (20, 200):
        kept = (many_guidelines.kilobytes_kept(guidelines, keep) for keep in ("all", "active"))
        made.add_row(str(guidelines), *(f"{each:,.0f} kB" for each in kept))
    return made


def _many() -> Table:
    made = table(
        "A turn with one tool call where a look judges some of many guidelines",
        "guidelines", "max_judged", "to compile",
        "calls", "waves", "prompt characters", "and of schemas", "our own time",
    )  # fmt: skip
    for each in many_guidelines.growth():
        counted = each.counted
        characters = (f"{counted.prompt_characters:,}", f"{counted.schema_characters:,}")
        counts = (str(counted.calls), str(counted.waves), *characters)
        which = (f"{each.guidelines:,}", f"{each.max_judged}")
        made.add_row(*which, f"{each.seconds:.1f} s", *counts, f"{each.milliseconds:.0f} ms")
    return made


def _recalls(file: Path, *, with_missed: bool = False) -> list[Table]:
    limits = [f"max_judged={limit}" for limit in many_guidelines.LIMITS]
    made = table(f"Share of the guidelines that must be judged that are: {file.name}", "chosen by", *limits)
    missed = table("What is not judged then, though it must be", "message", "chosen by", *limits)
    for recall in many_guidelines.recalls(file):
        made.add_row(recall.by, *(f"{share:.0%}" for share in recall.shares))
        for message, *ids in zip(recall.messages, *recall.missed, strict=True):
            if any(ids):
                missed.add_row(escape(message.says), recall.by, *(", ".join(each) for each in ids))
    return [made, missed] if with_missed else [made]


def _prefixes() -> Table:
    made = table(
        "Share of a turn's prompt that the next turn's prompt begins with", "asked", "smallest", "mean"
    )
    for name, (smallest, mean) in turn.stable_prefix().items():
        made.add_row(name, f"{smallest:.1%}", f"{mean:.1%}")
    return made


def _tokens() -> Table:
    name, count = output_tokens.tokenizer()
    made = table(
        f"Output tokens ({name})",
        "per", *output_tokens.MODES, "the paper's full keys, same words", "the paper's average (arq)",
    )  # fmt: skip
    for row in output_tokens.rows(count):
        made.add_row(
            row.what,
            *(str(row.ours[mode]) for mode in output_tokens.MODES),
            str(row.paper_keys),
            str(row.paper),
        )
    return made


def _imports() -> Table:
    langgraph, ours, names = import_time.ratio()
    made = table("Import, in a fresh interpreter (median)", "statement", "seconds", "ratio")
    made.add_row("import langgraph.graph", f"{langgraph:.2f}", "1.00")
    made.add_row("import arq_graph", f"{ours:.2f}", f"{ours / langgraph:.2f}")
    made.add_row(
        "from arq_graph import Agent, create_guided_agent", f"{names:.2f}", f"{names / langgraph:.2f}"
    )
    return made


def _waiting() -> Table:
    at_once = f"{evaluation.CONVERSATIONS} conversations at {evaluation.AT_ONCE} at a time"
    made = table(
        f"{at_once}, an endpoint that answers after {evaluation.SECONDS * 1000:.0f} ms",
        "app", "calls", "seconds", "ideal", "ratio", "app alone", "memory of one that waits",
    )  # fmt: skip
    for run in evaluation.runs():
        waiting = evaluation.bytes_per_waiting(run.app) / 1024
        seconds = (f"{run.seconds:.2f}", f"{run.ideal:.2f}", f"{run.ratio:.2f}", f"{run.directly:.2f}")
        made.add_row(run.app, f"{run.calls:,}", *seconds, f"{waiting:,.0f} KB")
    return made


def _workers() -> Table:
    title = "Conversations of the order desk with the offline model"
    made = table(title, "held by", "conversations a second")
    for workers, by in ((0, "this process"), (1, "1 worker"), (2, "2 workers")):
        made.add_row(by, f"{evaluation.guided_per_second(workers):.1f}")
    return made


def _speeds(title: str, tasks: list[scoring.Task]) -> Table:
    made = table(title, "what", "what it gives", "conversations a second", "says as our GC does")
    for speed in scoring.speeds(tasks):
        agree = "" if speed.agree is None else f"{speed.agree:,} of {len(tasks):,}"
        rate = "" if speed.per_second is None else f"{speed.per_second:,.0f}"
        made.add_row(speed.what, escape(speed.gives), rate, agree)
    return made


def _growth() -> Table:
    made = table(
        "Seconds for one graph and a conversation of 900 events",
        "milestones",
        "make",
        "first score",
        "again",
        "sum",
    )
    for one in scoring.growth():
        seconds = (one.make, one.first, one.again, one.make + one.first)
        made.add_row(f"{one.milestones:,}", *(f"{each:.2f}" for each in seconds))
    return made


if __name__ == "__main__":
    main()
