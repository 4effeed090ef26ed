"""`arq-graph run`: hold a conversation whose customer turns are in a file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from arq_graph.cli.conversation_file import read_customer_turns
from arq_graph.cli.dialogue import Dialogue, Outcome
from arq_graph.cli.failures import WAITING, note
from arq_graph.cli.json_lines import print_json
from arq_graph.cli.opening import Setup, opened_dialogue
from arq_graph.cli.operator import approve_all
from arq_graph.reasoning.usage import ModuleUsage


def run_conversation(setup: Setup, conversation: Path, *, approve: bool) -> None:
    """Hold a conversation and print one JSON line a turn; go on where an interrupted run of it stopped.

    Args:
        setup: What to converse with.
        conversation: What the customer says; `-` is standard input.
        approve: Whether to approve every call that needs an operator's word.

    Raises:
        Exit: With 4 where a call waits for an operator.
    """
    turns = read_customer_turns(conversation)
    operator = approve_all if approve else None
    with opened_dialogue(setup, operator=operator, conversation=conversation) as dialogue:
        note(f"{dialogue.agent.name} · {setup.choice.name} · thread {dialogue.thread}")
        held = dialogue.said()
        if held and held == turns[: len(held)]:
            note(
                f"The thread already holds the first {len(held)} of the {len(turns)} turns: going on from there."
            )
            turns = turns[len(held) :]
        resumed = dialogue.finish()
        if resumed is not None:
            _report(dialogue, resumed)
        for text in turns:
            _report(dialogue, dialogue.say(text))


def _report(dialogue: Dialogue, outcome: Outcome) -> None:
    record = _record(dialogue.thread, outcome)
    if not outcome.waiting:
        print_json(record)
        note(f"turn {outcome.turn.number}: {outcome.calls} model calls, {outcome.seconds:.1f} s")
        return
    what_to_do = _what_to_do(dialogue)
    print_json({**record, "what_to_do": what_to_do})
    note(what_to_do)
    raise typer.Exit(WAITING)


def _record(thread: str, outcome: Outcome) -> dict[str, Any]:
    turn = outcome.turn
    return {
        "thread": thread,
        "turn": turn.number,
        "customer": turn.customer,
        "reply": turn.reply,
        "active": list(turn.active),
        "tool_calls": [asdict(run) for run in turn.tool_runs],
        "missing": [
            {"tool": each.tool, "argument": each.argument, "problem": each.problem or each.kind}
            for each in turn.of_kind("missing", "invalid")
        ],
        "followed": list(turn.followed),
        "violations": list(turn.violations),
        "usage": {module: _usage(used) for module, used in outcome.usage.items()},
        "progress": turn.progress.model_dump() if turn.progress else None,
        "calls": outcome.calls,
        "waiting": [{"tool": call["name"], "arguments": call["args"]} for call in outcome.waiting],
    }


def _usage(used: ModuleUsage) -> Mapping[str, Any]:
    tokens: Mapping[str, Any] = used.usage or {}
    names = ("input_tokens", "output_tokens", "total_tokens")
    return {"calls": used.calls, **{name: tokens.get(name) for name in names}}


def _what_to_do(dialogue: Dialogue) -> str:
    if dialogue.ways_on is None:
        return "a tool call waits for an operator's word: run again with --approve to approve all of them"
    approve = shlex.join([*dialogue.ways_on.same, "--approve"])
    return (
        f"a tool call waits for an operator's word: decide with `{shlex.join(dialogue.ways_on.chat)}`, or approve "
        f"all with `{approve}`"
    )
