"""`arq-graph run`: run a conversation whose customer messages are in a file."""

from __future__ import annotations

import json
import shlex
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from langchain_core.messages import HumanMessage, convert_to_messages
from typer import Exit, Option

from arq_graph.cli import options
from arq_graph.cli.chat import approve_all
from arq_graph.cli.dialogue import Dialogue, DialogueOptions, StrategyOption, open_dialogue
from arq_graph.cli.exit_codes import WAITING
from arq_graph.cli.input_files import read_text
from arq_graph.cli.model_choice import choose_model
from arq_graph.cli.screen import note, print_json
from arq_graph.cli.turn import TurnOutcome
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
            help="The customer's messages, one per line or as JSON (Lines); - reads standard input.",
        ),
    ],
    model: options.Model = None,
    model_arg: options.ModelArgs = None,
    base_url: options.BaseUrl = None,
    mode: options.ModeOption = "arq",
    strategy: StrategyOption = "tools",
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
    model_choice = choose_model(model, base_url, model_arg)
    settings = DialogueOptions(agent, model_choice, mode, strategy, milestones, thread, db)
    messages = read_customer_messages(conversation)
    operator = approve_all if approve else None
    with open_dialogue(settings, operator=operator, conversation=conversation) as dialogue:
        note(f"{dialogue.agent.name} · {model_choice.name} · thread {dialogue.thread}")
        chat_command = settings.resume_command(dialogue.thread)
        if dialogue.takeover is not None:
            note(_explain_takeover(chat_command))
            raise Exit(WAITING)
        remaining = _skip_sent_messages(messages, dialogue.customer_texts)
        dialogue.run(
            chain([None], remaining), lambda outcome: _print_outcome(outcome, dialogue, chat_command)
        )


def read_customer_messages(path: Path) -> list[str]:
    """Read the customer's messages from a file: one per line, or texts and chat messages as JSON or JSON Lines."""
    text = read_text(path, "conversation")
    if path.suffix in (".json", ".jsonl"):
        messages = _parse_messages(path, text)
    else:
        messages = _nonempty_lines(text)
    if not messages:
        raise InputError(f"{path} holds no message of a customer: write one message per line")
    return [clean(message) for message in messages]


def _parse_messages(path: Path, text: str) -> list[str]:
    try:
        if path.suffix == ".json":
            entries = json.loads(text)
        else:
            entries = [json.loads(line) for line in _nonempty_lines(text)]
        messages = convert_to_messages(entries)
    except Exception as error:  # LangChain raises errors of several kinds
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path} is not JSON of texts or chat messages: {reason}") from error
    # The messages of others are left out, so that a recorded conversation can be run again.
    return [message.text for message in messages if isinstance(message, HumanMessage)]


def _nonempty_lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def _skip_sent_messages(messages: list[str], sent: list[str]) -> list[str]:
    if not sent or sent != messages[: len(sent)]:
        return messages
    note(f"The thread already holds the first {len(sent)} of {len(messages)} turns: continuing from there.")
    return messages[len(sent) :]


def _print_outcome(outcome: TurnOutcome, dialogue: Dialogue, chat_command: list[str]) -> None:
    usage = {}
    for module, module_usage in outcome.usage.by_module.items():
        usage[module] = {"calls": module_usage.calls} | dict(module_usage.usage or {})
    calls = outcome.usage.calls
    record: dict[str, Any] = {"thread": dialogue.thread} | outcome.turn.model_dump(mode="json")
    record |= {"calls": calls, "usage": usage}
    if outcome.pending_calls:
        approve = f"`{shlex.join(dialogue.resume_command)} --approve`"
        decide = f"`{shlex.join(chat_command)}`"
        what_to_do = (
            f"a tool call waits for an operator: approve all of them with {approve}, or decide with {decide}"
        )
    elif outcome.turn.takeover is not None:
        what_to_do = _explain_takeover(chat_command)
    else:
        print_json(record)
        note(f"turn {outcome.turn.turn}: {calls} model calls, {outcome.seconds:.1f} s")
        return
    print_json(record | {"what_to_do": what_to_do})
    note(what_to_do)
    raise Exit(WAITING)


def _explain_takeover(chat_command: list[str]) -> str:
    return (
        "the conversation was handed over to a person: write as that person, or give it back, with "
        f"`{shlex.join(chat_command)}`"
    )
