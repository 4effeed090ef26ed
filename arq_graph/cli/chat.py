"""`arq-graph chat`: talk to an agent in the terminal, as its customer and as its operator."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from arq_graph.cli import options
from arq_graph.cli.dialogue import Dialogue, Outcome, Setup, opened_dialogue
from arq_graph.cli.failures import INTERRUPTED, Left, note, show_error
from arq_graph.cli.screen import ask, is_terminal, labelled, output, printable, sentence, words
from arq_graph.cli.settings import choose_model
from arq_graph.cli.turn_view import customer_said, explanation_of, outcome_of, reply_of
from arq_graph.errors import ArqGraphError

_HINT = "/why explains the last reply. /quit or Ctrl-D leaves; the thread is kept."
_CHOICES = {"a": "approve", "e": "edit", "r": "reject", "s": "respond"}


def chat(
    agent: options.AgentFile,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    mode: options.ModeOption = "arq",
    strategy: options.StrategyOption = "tools",
    milestones: options.MilestonesOption = None,
    thread: options.Thread = None,
    db: options.Database = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show the replies alone.")] = False,
) -> None:
    """Talk to an agent in the terminal.

    Calls that need an operator's word are put to you. Ctrl-C and Ctrl-D leave; the thread can be gone on with, and an
    unfinished turn is finished first.
    """
    setup = Setup(agent, choose_model(model, base_url), mode, thread, db, strategy, milestones)
    with opened_dialogue(setup, operator=ask_operator) as dialogue:
        try:
            _Chat(dialogue, setup, quiet).hold()
        except EOFError:
            output().print()
        except Left:
            raise
        except KeyboardInterrupt:
            output().print()
            dialogue.tell_way_on()
            raise typer.Exit(INTERRUPTED) from None
        dialogue.tell_way_on()


class _Chat:
    """What is asked and printed."""

    def __init__(self, dialogue: Dialogue, setup: Setup, quiet: bool) -> None:
        self._dialogue = dialogue
        self._setup = setup
        self._quiet = quiet
        self._console = output()

    def hold(self) -> None:
        """Talk until somebody leaves."""
        self._begin()
        while (text := self._heard()) not in ("/quit", "/exit"):
            if text == "/why":
                self._explain()
            elif text:
                self._answer(lambda text=text: self._dialogue.say(text))  # type: ignore[misc]
            elif self._dialogue.is_unfinished:
                self._answer(self._dialogue.finish)

    def _begin(self) -> None:
        dialogue = self._dialogue
        title = f" · {self._setup.choice.name} · thread {dialogue.thread}"
        self._console.print(sentence(words(dialogue.agent.name, "bold"), title))
        if is_terminal():
            self._console.print(words(_HINT, "dim"))
        last = dialogue.last_turn()
        if last is None:
            return
        self._console.print()
        self._console.print(customer_said(last.customer))
        if dialogue.is_unfinished:
            note("This turn was left unfinished; it is finished now.")
            self._answer(dialogue.finish)
        elif last.reply is not None:
            self._console.print(reply_of(last))

    def _heard(self) -> str:
        self._console.print()
        return ask("> ").strip()

    def _answer(self, step: Callable[[], Outcome | None]) -> None:
        self._console.print()
        try:
            outcome = step()
        except ArqGraphError as error:
            if not is_terminal():
                raise
            show_error(error)
            note("Press Enter to try again, or write something else to go on without a reply to this.")
            return
        if outcome is None:
            return
        if self._quiet and not outcome.waiting:
            self._console.print(reply_of(outcome.turn))
            return
        for part in outcome_of(outcome, self._dialogue.agent):
            self._console.print(part)

    def _explain(self) -> None:
        turn = self._dialogue.last_turn()
        if turn is None:
            note("There is no reply yet.")
            return
        for part in explanation_of(turn, self._dialogue.about):
            self._console.print(part)


def approve_all(calls: Sequence[Mapping[str, Any]], _problem: str | None) -> list[dict[str, Any]]:
    """Approve every call as it is."""
    return [{"type": "approve"} for _ in calls]


def ask_operator(calls: Sequence[Mapping[str, Any]], problem: str | None) -> list[dict[str, Any]]:
    """Ask whoever sits at the terminal about each call."""
    if problem:
        output().print(words(problem, "yellow"))
    decisions = [_decision(call, f"{number} of {len(calls)}") for number, call in enumerate(calls, start=1)]
    output().print()
    return decisions


def _decision(call: Mapping[str, Any], place: str) -> dict[str, Any]:
    console = output()
    rows = [
        (name, "dim", [words(json.dumps(value, ensure_ascii=False))]) for name, value in call["args"].items()
    ]
    asked = words("Your word, operator: ", "bold yellow")
    console.print()
    console.print(sentence(asked, f"may {call['name']} run? ", words(f"({place})", "dim")))
    if call.get("description"):
        console.print(words(printable(call["description"].strip().split("\n\n")[0], 300), "dim"))
    console.print(labelled(rows))
    kind = _choice()
    if kind == "edit":
        return {"type": "edit", "edited_action": {"name": call["name"], "args": _arguments(call["args"])}}
    if kind == "reject":
        reason = ask("Why not (may be empty)? ").strip()
        return {"type": "reject", "message": reason or None}
    if kind == "respond":
        return {"type": "respond", "message": ask("What to take for its result? ")}
    return {"type": "approve"}


def _choice() -> str:
    while True:
        said = ask("[a]pprove, [e]dit, [r]eject, or re[s]pond in its place? ").strip().lower()
        for key, kind in _CHOICES.items():
            if said in (key, kind):
                return kind
        output().print(words("Answer with a, e, r or s.", "yellow"))


def _arguments(current: Mapping[str, Any]) -> dict[str, Any]:
    while True:
        written = ask("Arguments as JSON: ", prefilled=json.dumps(current, ensure_ascii=False))
        try:
            arguments = json.loads(written)
        except (ValueError, RecursionError) as error:
            output().print(words(f"That is not JSON: {error}", "yellow"))
            continue
        if isinstance(arguments, dict):
            return arguments
        output().print(words('Write an object, like {"name": "value"}.', "yellow"))
