"""`arq-graph chat`: talk to an agent in the terminal."""

from __future__ import annotations

from collections.abc import Callable

import typer

from arq_graph.cli.dialogue import Dialogue, Outcome
from arq_graph.cli.explanation import explanation_of
from arq_graph.cli.failures import INTERRUPTED, note, show_error
from arq_graph.cli.leaving import Left
from arq_graph.cli.opening import Setup, opened_dialogue
from arq_graph.cli.operator import ask_operator
from arq_graph.cli.prompting import ask, is_terminal
from arq_graph.cli.screen import output, sentence, words
from arq_graph.cli.threads import note_of
from arq_graph.cli.turn_view import customer_said, outcome_of, reply_of
from arq_graph.errors import ArqGraphError

_HINT = "/why explains the last reply. /quit or Ctrl-D leaves; the thread is kept."


def chat_with(setup: Setup, *, quiet: bool = False) -> None:
    """Talk to an agent until the input ends; a turn that was left unfinished is finished first.

    Args:
        setup: What to converse with.
        quiet: Whether to show the replies alone.

    Raises:
        Exit: With 130 on Ctrl-C.
    """
    with opened_dialogue(setup, operator=ask_operator) as dialogue:
        try:
            _Chat(dialogue, setup, quiet).hold()
        except EOFError:
            output().print()
        except Left:
            raise
        except KeyboardInterrupt:
            output().print()
            dialogue.tell_ways_on()
            raise typer.Exit(INTERRUPTED) from None
        dialogue.tell_ways_on()


class _Chat:
    """What is asked and printed."""

    def __init__(self, dialogue: Dialogue, setup: Setup, quiet: bool) -> None:
        self._dialogue = dialogue
        self._setup = setup
        self._quiet = quiet
        self._console = output()

    def hold(self) -> None:
        """Talk until somebody leaves.

        Raises:
            EOFError: The input ended.
        """
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
        agent = self._dialogue.agent
        for part in explanation_of(turn, note_of(agent, self._setup.choice.name, self._setup.mode)):
            self._console.print(part)
