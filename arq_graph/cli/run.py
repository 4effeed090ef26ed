"""`arq-graph run`: run a conversation whose customer turns are in a file."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

from langchain_core.messages import HumanMessage, convert_to_messages
from typer import Exit, Option

from arq_graph.cli import WAITING, options
from arq_graph.cli.chat import approve_all
from arq_graph.cli.dialogue import Dialogue, Setup, opened_dialogue
from arq_graph.cli.screen import note, print_json
from arq_graph.cli.turn import Outcome
from arq_graph.errors import InputError
from arq_graph.reasoning.sections import clean


def run(
    agent: options.AgentFile,
    conversation: Annotated[
        Path,
        Option(
            "--conversation",
            "-c",
            metavar="FILE",
            help="What the customer says: one message per line, or texts and chat messages as JSON or JSON Lines. "
            "Write - to read standard input.",
        ),
    ],
    model: options.Model = None,
    model_arg: options.ModelArgs = None,
    base_url: options.BaseUrl = None,
    mode: options.ModeOption = "arq",
    strategy: options.StrategyOption = "tools",
    milestones: options.MilestonesOption = None,
    thread: options.Thread = None,
    db: options.Database = None,
    approve: Annotated[
        bool, Option("--approve", help="Approve every call that waits for an operator.")
    ] = False,
) -> None:
    """Run a conversation from a file, and print one JSON line per turn.

    If the run is interrupted, the same command with the --thread that it printed continues it.
    """
    choice = options.choose_model(model, base_url, model_arg)
    setup = Setup(agent, choice, mode, strategy, milestones, thread, db)
    turns = read_customer_turns(conversation)
    operator = approve_all if approve else None
    with opened_dialogue(setup, operator=operator, conversation=conversation) as dialogue:
        note(f"{dialogue.agent.name} · {setup.choice.name} · thread {dialogue.thread}")
        held = dialogue.said()
        if held and held == turns[: len(held)]:
            note(
                f"The thread already holds the first {len(held)} of the {len(turns)} turns: continuing from there."
            )
            turns = turns[len(held) :]
        resumed = dialogue.finish()
        if resumed is not None:
            _report(dialogue, setup, resumed)
        for text in turns:
            _report(dialogue, setup, dialogue.say(text))


def read_customer_turns(path: Path) -> list[str]:
    """What the customer says, turn by turn: a message a line; JSON or JSON Lines hold texts and chat messages."""
    text = options.read_text(path, "conversation")
    turns = [line.strip() for line in text.split("\n") if line.strip()]
    if path.suffix in (".json", ".jsonl"):
        try:
            entries = json.loads(text) if path.suffix == ".json" else map(json.loads, turns)
            messages = convert_to_messages(entries)
        except Exception as error:  # whatever LangChain meets in what is no message
            why = str(error).partition("\n")[0]
            raise InputError(f"{path} is not JSON of texts or chat messages: {why}") from error
        # Those of anybody else are left out, so that a recorded conversation can be held again.
        turns = [message.text for message in messages if isinstance(message, HumanMessage)]
    if not turns:
        raise InputError(f"{path} holds nothing that a customer says; write one message per line")
    return [clean(turn) for turn in turns]


def _report(dialogue: Dialogue, setup: Setup, outcome: Outcome) -> None:
    turn, used = outcome.turn, outcome.used
    usage = {module: {"calls": of.calls, **(of.usage or {})} for module, of in used.by_module.items()}
    told = turn.model_dump(mode="json")
    record = {"thread": dialogue.thread, **told, "calls": used.calls, "usage": usage}
    if not outcome.waiting:
        print_json(record)
        note(f"turn {turn.turn}: {used.calls} model calls, {outcome.seconds:.1f} s")
        return
    approve, decide = [*dialogue.way_on, "--approve"], setup.command(dialogue.thread)
    what_to_do = (
        f"a tool call waits for an operator: approve all of them with `{shlex.join(approve)}`, or decide with "
        f"`{shlex.join(decide)}`"
    )
    print_json({**record, "what_to_do": what_to_do})
    note(what_to_do)
    raise Exit(WAITING)
