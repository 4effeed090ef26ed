"""Make the tables about turns: calls, waves, characters, tokens, and our own time."""

from __future__ import annotations

from pathlib import Path

from rich.markup import escape
from rich.table import Table

from benchmarks import (
    batch_sizes,
    counting,
    import_time,
    journeys,
    many_guidelines,
    output_tokens,
    turn,
    waves,
)
from benchmarks.in_process import make_model, make_worst_case_model
from benchmarks.table import make_table

PEER = "Parlant 3.3.2"


def make_calls_table() -> Table:
    table = make_table(
        "A turn with one tool call, counted at an endpoint",
        "guidelines", "a result could change", "calls", "waves", "prompt characters", "and of schemas",
        f"{PEER}: calls", f"{PEER}: characters",
    )  # fmt: skip
    peer = {20: ("13", "156,224"), 200: ("43", "554,357")}
    models = {"no other condition": make_model, "any condition": make_worst_case_model}
    for guidelines in (20, 200):
        for changeable, make_counted_model in models.items():
            count = counting.count_turn(guidelines, make_counted_model)
            table.add_row(
                str(guidelines),
                changeable,
                str(count.calls),
                str(count.waves),
                f"{count.prompt_characters:,}",
                f"{count.schema_characters:,}",
                *peer[guidelines],
            )
    return table


def make_journeys_table() -> Table:
    table = make_table(
        f"A turn with {journeys.GUIDELINES} guidelines and more, on average over {journeys.STEPS} turns",
        "and", "calls", "at most", "prompt characters", "and of schemas", "steps done",
    )  # fmt: skip
    for cost in journeys.measure_journeys():
        table.add_row(
            cost.agent,
            f"{cost.calls:.1f}",
            str(cost.most_calls),
            f"{cost.prompt_characters:,.0f}",
            f"{cost.schema_characters:,.0f}",
            str(cost.steps_taken),
        )
    return table


def make_waves_table() -> Table:
    name, count_tokens = output_tokens.get_tokenizer()
    table = make_table(
        f"A turn without and with eager=True, at {waves.SECONDS} s a call; output tokens: {name}",
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
                f"{cost.seconds:.2f}",
            )
    return table


def make_time_table() -> Table:
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


def make_long_conversation_table() -> Table:
    table = make_table(
        "Turn 200 of a conversation beside turn 1, 20 guidelines: median milliseconds of processor time",
        "conversation kept by", "messages before", "app", "turn 1", "turn 200", "ratio",
    )  # fmt: skip
    for growth in turn.measure_growth():
        kept_by = "a checkpointer" if growth.has_checkpointer else "the caller"
        rows = [
            (kept_by, str(growth.message_count), "guided agent", growth.first, growth.last),
            ("", "", "bare LangGraph, same calls", growth.floor_first, growth.floor_last),
            ("", "", "the difference", growth.own_first, growth.own_last),
        ]
        for *names, first, last in rows:
            table.add_row(*names, f"{first:.1f}", f"{last:.1f}", f"{last / first:.2f}")
    return table


def make_storage_table() -> Table:
    table = make_table("What that turn writes into a SQLite checkpointer", "guidelines", "all", "active")
    for guidelines in (20, 200):
        cells = [str(guidelines)]
        for keep_matches in ("all", "active"):
            kilobytes = many_guidelines.measure_storage(guidelines, keep_matches)
            cells.append(f"{kilobytes:,.0f} kB")
        table.add_row(*cells)
    return table


def make_growth_table() -> Table:
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


def make_recall_tables(file: Path, *, with_missed: bool = False) -> list[Table]:
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


def make_batch_size_table() -> Table:
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


def make_prefix_table() -> Table:
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


def make_token_table() -> Table:
    name, count_tokens = output_tokens.get_tokenizer()
    table = make_table(
        f"Output tokens ({name})",
        "per", *output_tokens.MODES, "the paper's full keys, same words", "the paper's average (arq)",
    )  # fmt: skip
    for row in output_tokens.count_output_tokens(count_tokens):
        our_counts = [str(row.ours[mode]) for mode in output_tokens.MODES]
        table.add_row(row.unit, *our_counts, str(row.paper_keys or ""), str(row.paper or ""))
    return table


def make_import_table() -> Table:
    langgraph, ours, names = import_time.measure_imports()
    table = make_table("Import, in a fresh interpreter", "statement", "processor seconds", "ratio")
    table.add_row("import langgraph.graph", f"{langgraph:.2f}", "1.00")
    table.add_row("import arq_graph", f"{ours:.2f}", f"{ours / langgraph:.2f}")
    table.add_row(
        "from arq_graph import Agent, create_guided_agent", f"{names:.2f}", f"{names / langgraph:.2f}"
    )
    return table
