"""`arq-graph chat`: talk to an agent in the terminal, as its customer and as its operator."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

from arq_graph.cli import INTERRUPTED, options
from arq_graph.cli.dialogue import Dialogue, Setup, opened_dialogue
from arq_graph.cli.explain import explanation_of
from arq_graph.cli.screen import ask, is_terminal, labelled, note, output, sentence, show_error, words
from arq_graph.cli.turn import Outcome, customer_said, outcome_of, reply_of
from arq_graph.errors import ArqGraphError

_HINT = "/why explains the last reply. /quit or Ctrl-D leaves; the thread is saved."


def chat(
    agent: options.AgentFile,
    model: options.Model = None,
    model_arg: options.ModelArgs = None,
    base_url: options.BaseUrl = None,
    mode: options.ModeOption = "arq",
    strategy: options.StrategyOption = "tools",
    milestones: options.MilestonesOption = None,
    thread: options.Thread = None,
    db: options.Database = None,
) -> None:
    """Talk to an agent in the terminal.

    You are asked to approve calls that wait for an operator. Ctrl-C and Ctrl-D leave; the thread can be continued, and
    an unfinished turn is finished first.
    """
    choice = options.choose_model(model, base_url, model_arg)
    setup = Setup(agent, choice, mode, strategy, milestones, thread, db)
    with opened_dialogue(setup, operator=ask_operator) as dialogue:
        try:
            _begin(dialogue, setup.choice.name)
            while (text := _heard()) not in ("/quit", "/exit"):
                if text == "/why":
                    _explain(dialogue)
                elif text:
                    _answer(dialogue, lambda text=text: dialogue.say(text))  # type: ignore[misc]
                elif dialogue.is_unfinished:
                    _answer(dialogue, dialogue.finish)
        except EOFError:
            output().print()
        except KeyboardInterrupt as error:
            if not error.args:  # at the prompt, where nothing has been said yet
                output().print()
                dialogue.say_way_on()
            raise typer.Exit(INTERRUPTED) from None
        if dialogue.said():
            dialogue.say_way_on()


def _begin(dialogue: Dialogue, model: str) -> None:
    console = output()
    console.print(sentence(words(dialogue.agent.name, "bold"), f" · {model} · thread {dialogue.thread}"))
    if is_terminal():
        console.print(words(_HINT, "dim"))
    last = dialogue.last_turn()
    if last is None:
        return
    console.print()
    console.print(customer_said(last.customer))
    if dialogue.is_unfinished:
        note("This turn was left unfinished; it is finished now.")
        _answer(dialogue, dialogue.finish)
    elif last.reply is not None:
        console.print(reply_of(last))


def _heard() -> str:
    output().print()
    return ask("> ").strip()


def _answer(dialogue: Dialogue, step: Callable[[], Outcome | None]) -> None:
    output().print()
    try:
        outcome = step()
    except ArqGraphError as error:
        if not is_terminal():
            raise
        show_error(error, str(error))
        note("Press Enter to try again, or write something else to continue without a reply.")
        return
    for part in outcome_of(outcome, dialogue.agent) if outcome else ():
        output().print(part)


def _explain(dialogue: Dialogue) -> None:
    turn = dialogue.last_turn()
    if turn is None:
        note("There is no reply yet.")
        return
    for part in explanation_of(turn, dialogue.about):
        output().print(part)


def approve_all(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Approve every call as it is."""
    return [{"type": "approve"} for _ in calls]


def ask_operator(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Ask whoever sits at the terminal about each call."""
    decisions = [_decision(call, f"{number} of {len(calls)}") for number, call in enumerate(calls, start=1)]
    output().print()
    return decisions


def _decision(call: Mapping[str, Any], place: str) -> dict[str, Any]:
    console = output()
    asked = words("Operator, please decide: ", "bold yellow")
    console.print()
    console.print(sentence(asked, f"may {call['name']} run? ", words(f"({place})", "dim")))
    if call.get("description"):
        console.print(words(call["description"].strip().split("\n\n")[0], "dim", 300))
    shown = ((name, json.dumps(value, ensure_ascii=False)) for name, value in call["args"].items())
    console.print(labelled((name, "dim", [words(value)]) for name, value in shown))
    while (said := ask("[a]pprove or [r]eject? ").strip().lower()) not in ("a", "approve", "r", "reject"):
        console.print(words("Answer with a or r.", "yellow"))
    if said.startswith("a"):
        return {"type": "approve"}
    return {"type": "reject", "message": ask("Why not? (may be empty) ").strip() or None}
