"""`arq-graph run`: hold a conversation whose customer turns are in a file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, TypeAdapter, ValidationError

from arq_graph.cli import options
from arq_graph.cli.chat import approve_all
from arq_graph.cli.dialogue import Dialogue, Outcome, Setup, opened_dialogue
from arq_graph.cli.failures import WAITING, note
from arq_graph.cli.files import read_text
from arq_graph.cli.screen import print_json
from arq_graph.cli.settings import choose_model
from arq_graph.errors import InputError
from arq_graph.reasoning.sections import clean
from arq_graph.reasoning.usage import ModuleUsage

_TOKENS = ("input_tokens", "output_tokens", "total_tokens")
_OTHERS = {"agent", "ai", "assistant", "system", "developer", "tool", "function"}


def run(
    agent: options.AgentFile,
    conversation: Annotated[
        Path,
        typer.Option(
            "--conversation",
            "-c",
            metavar="FILE",
            help="What the customer says: a message a line, a JSON list, or JSON Lines with text or content. "
            "- reads standard input.",
        ),
    ],
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    mode: options.ModeOption = "arq",
    strategy: options.StrategyOption = "tools",
    milestones: options.MilestonesOption = None,
    thread: options.Thread = None,
    db: options.Database = None,
    approve: Annotated[
        bool, typer.Option("--approve", help="Approve every call that needs an operator's word.")
    ] = False,
) -> None:
    """Hold a conversation from a file: one JSON line a turn.

    The same command with the --thread that it names goes on where an interrupted run stopped.
    """
    setup = Setup(agent, choose_model(model, base_url), mode, thread, db, strategy, milestones)
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
            _report(dialogue, setup, resumed)
        for text in turns:
            _report(dialogue, setup, dialogue.say(text))


def _report(dialogue: Dialogue, setup: Setup, outcome: Outcome) -> None:
    record = _record(dialogue.thread, outcome)
    if not outcome.waiting:
        print_json(record)
        note(f"turn {outcome.turn.number}: {outcome.calls} model calls, {outcome.seconds:.1f} s")
        return
    what_to_do = _what_to_do(dialogue, setup)
    print_json({**record, "what_to_do": what_to_do})
    note(what_to_do)
    raise typer.Exit(WAITING)


def _record(thread: str, outcome: Outcome) -> dict[str, Any]:
    turn = outcome.turn
    told = turn.as_data()
    return {
        "thread": thread,
        **{name: told[name] for name in ("turn", "customer", "reply")},
        "active": list(turn.active),
        "tool_calls": told["tool_calls"],
        "missing": [
            {"tool": each.tool, "argument": each.argument, "problem": each.problem or each.kind}
            for each in turn.of_kind("missing", "invalid")
        ],
        "followed": told["followed"],
        "violations": list(turn.violations),
        "usage": {module: _usage(used) for module, used in outcome.usage.items()},
        "progress": told["progress"],
        "calls": outcome.calls,
        "waiting": [{"tool": call["name"], "arguments": call["args"]} for call in outcome.waiting],
    }


def _usage(used: ModuleUsage) -> Mapping[str, Any]:
    tokens: Mapping[str, Any] = used.usage or {}
    return {"calls": used.calls, **{name: tokens.get(name) for name in _TOKENS}}


def _what_to_do(dialogue: Dialogue, setup: Setup) -> str:
    if dialogue.way_on is None:
        return "a tool call waits for an operator's word: run again with --approve to approve all of them"
    approve = shlex.join([*dialogue.way_on, "--approve"])
    return (
        f"a tool call waits for an operator's word: decide with `{shlex.join(setup.command(dialogue.thread))}`, or "
        f"approve all with `{approve}`"
    )


class _Said(BaseModel):
    """One entry of a conversation's file."""

    role: str = "customer"
    text: str | None = None
    content: str | None = None


_ENTRY: TypeAdapter[str | _Said] = TypeAdapter(str | _Said)


def read_customer_turns(path: Path) -> list[str]:
    """What the customer says, turn by turn.

    A text file has one turn a line, empty lines aside. JSON is a list, JSON Lines one entry a line; an entry is a
    text, or an object with `text` or `content`. Entries whose `role` is another than the customer's are left out,
    so that a recorded conversation can be held again.
    """
    name = "standard input" if str(path) == "-" else str(path)
    entries = _entries(read_text(path, "conversation"), path.suffix, name)
    turns = [clean(said) for place, entry in entries if (said := _said(entry, place)) is not None]
    if not turns:
        raise InputError(f"{name} holds nothing that a customer says; write one message a line")
    return turns


def _entries(text: str, suffix: str, name: str) -> Iterator[tuple[str, Any]]:
    """What the file holds, each with its place."""
    lines = [
        (f"{name}:{number}", line.strip())
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]
    if suffix in (".jsonl", ".ndjson") or (suffix != ".json" and lines and _holds(lines[0][1], dict)):
        yield from ((place, _parsed(line, place)) for place, line in lines)
    elif suffix == ".json" or _holds(text, list):
        listed = _parsed(text, name)
        if not isinstance(listed, list):
            raise InputError(f"{name}: must be a list of messages")
        yield from ((f"{name}: entry {number}", entry) for number, entry in enumerate(listed, start=1))
    else:
        yield from lines


def _said(entry: Any, place: str) -> str | None:
    """What the customer says in an entry; None in one of somebody else."""
    try:
        said = _ENTRY.validate_python(entry)
    except ValidationError:
        raise InputError(f"{place}: must be a text, or an object with `text` or `content`") from None
    if isinstance(said, str):
        return said
    if said.role.lower() in _OTHERS:
        return None
    words = said.text if said.text is not None else said.content
    if words is None:
        raise InputError(f"{place}: needs `text` or `content` with what the customer says, as a text")
    return words


def _holds(text: str, kind: type) -> bool:
    try:
        return isinstance(_parsed(text, ""), kind)
    except InputError:
        return False


def _parsed(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise InputError(f"{place}: is nested too deeply to be a conversation") from error
    except ValueError as error:
        raise InputError(f"{place}: is not JSON: {error}") from error
