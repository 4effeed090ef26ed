"""Print every figure: `python -m benchmarks`, or `make bench`."""

from __future__ import annotations

import os

# Before LangGraph is imported: checkpoints of the state's own types then load without a word.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

from rich.console import Console
from rich.table import Table

from benchmarks import counting, import_time, output_tokens, turn

PEER = "Parlant 3.3.2"


def main() -> None:
    """Measure and print."""
    console = Console()
    console.print(_calls())
    console.print(_time())
    console.print(_prefixes())
    console.print(_tokens())
    console.print(_imports())


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", min_width=len(title))
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    return table


def _calls() -> Table:
    table = _table(
        "A turn with one tool call, counted at an endpoint",
        "guidelines", "calls", "waves", "prompt characters", "and of schemas", f"{PEER}: calls", f"{PEER}: characters",
    )  # fmt: skip
    peer = {20: ("13", "156,224"), 200: ("43", "554,357")}
    for guidelines in (20, 200):
        counted = counting.count(guidelines)
        table.add_row(
            str(guidelines),
            str(counted.calls),
            str(counted.waves),
            f"{counted.prompt_characters:,}",
            f"{counted.schema_characters:,}",
            *peer[guidelines],
        )
    return table


def _time() -> Table:
    table = _table(
        "Our own time in that turn, in-process model at zero latency (median)", "guidelines", "sync", "async"
    )
    for guidelines in (20, 200):
        sync, asynchronous = turn.milliseconds(guidelines)
        table.add_row(str(guidelines), f"{sync:.0f} ms", f"{asynchronous:.0f} ms")
    return table


def _prefixes() -> Table:
    table = _table(
        "Share of a turn's prompt that the next turn's prompt begins with", "asked", "smallest", "mean"
    )
    for name, (smallest, mean) in turn.stable_prefix().items():
        table.add_row(name, f"{smallest:.1%}", f"{mean:.1%}")
    return table


def _tokens() -> Table:
    name, count = output_tokens.tokenizer()
    table = _table(
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


def _imports() -> Table:
    langgraph, ours, names = import_time.ratio()
    table = _table("Import, in a fresh interpreter (median)", "statement", "seconds", "ratio")
    table.add_row("import langgraph.graph", f"{langgraph:.2f}", "1.00")
    table.add_row("import arq_graph", f"{ours:.2f}", f"{ours / langgraph:.2f}")
    table.add_row(
        "from arq_graph import Agent, create_guided_agent", f"{names:.2f}", f"{names / langgraph:.2f}"
    )
    return table


if __name__ == "__main__":
    main()
