"""A conversation with a compiled agent in one thread, turn by turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from arq_graph.agent.spec import Agent
from arq_graph.apps.resuming import resume_or_invoke
from arq_graph.cli.failures import note
from arq_graph.cli.leaving import leaving_on_ctrl_c
from arq_graph.cli.progress import Progress
from arq_graph.cli.screen import command, diagnostics
from arq_graph.cli.turns import Turn, customer_messages, last_turn
from arq_graph.errors import InputError
from arq_graph.reasoning.sections import clean
from arq_graph.reasoning.usage import ModuleUsage, track_usage

Operator = Callable[[Sequence[Mapping[str, Any]], str | None], Sequence[Mapping[str, Any]] | None]
"""Decides on calls that wait: takes them and what was wrong with the last answer; None leaves them waiting."""


@dataclass(frozen=True)
class WaysOn:
    """Commands that go on with a thread.

    Args:
        same: The command that was begun, on this thread.
        chat: A chat on this thread.
    """

    same: tuple[str, ...]
    chat: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What came of running a thread once.

    Args:
        turn: The turn as it stands now.
        waiting: Calls that wait for an operator's word; empty where none do.
        calls: How many model calls it took.
        usage: Calls and tokens by module.
        seconds: How long it took, without the time that an operator took.
    """

    turn: Turn
    waiting: tuple[Mapping[str, Any], ...]
    calls: int
    usage: Mapping[str, ModuleUsage]
    seconds: float


class Dialogue:
    """One thread of an agent.

    Args:
        app: The compiled agent, with a checkpointer.
        agent: Its specification.
        thread: The thread's id.
        operator: Decides on calls that need an operator's word; None leaves them waiting.
        ways_on: Commands that go on with the thread; None where it is not kept.
        note_use: Notes that the thread is used; called before each turn.
    """

    def __init__(
        self,
        app: CompiledStateGraph[Any, Any, Any, Any],
        agent: Agent,
        thread: str,
        *,
        operator: Operator | None = None,
        ways_on: WaysOn | None = None,
        note_use: Callable[[], None] = lambda: None,
    ) -> None:
        self.app = app
        self.agent = agent
        self.thread = thread
        self.operator = operator
        self.ways_on = ways_on
        self._note_use = note_use
        self._progress = Progress()
        self._config: RunnableConfig = {
            "configurable": {"thread_id": thread},
            "callbacks": [self._progress],
        }

    @property
    def is_unfinished(self) -> bool:
        """Whether a turn was begun and not ended."""
        return bool(self.app.get_state(self._config).tasks)  # `next` leaves out tasks whose results are saved

    def said(self) -> list[str]:
        """What the customer said so far."""
        return [message.text for message in customer_messages(self._values())]

    def last_turn(self) -> Turn | None:
        """The last turn; None before the first."""
        return last_turn(self._values())

    def finish(self) -> Outcome | None:
        """Finish the turn that was left unfinished; None if there is none.

        Raises:
            ReasoningError: The model gave no answer; the turn stays unfinished.
        """
        if not self.is_unfinished:
            return None
        return self._run(lambda: resume_or_invoke(self.app, None, self._config, durability="sync"))

    def say(self, text: str) -> Outcome:
        """Say something as the customer; an unfinished turn is given up.

        Raises:
            ReasoningError: The model gave no answer; the turn stays unfinished.
        """
        message = HumanMessage(clean(text), id=str(uuid4()))
        return self._run(lambda: self.app.invoke({"messages": [message]}, self._config, durability="sync"))

    def tell_ways_on(self) -> None:
        """Say how to go on with the thread, on standard error."""
        if self.ways_on:
            note("The thread is kept. Go on with:")
            diagnostics().print(command(*self.ways_on.same), soft_wrap=True)

    def _run(self, step: Callable[[], Any]) -> Outcome:
        started = time.monotonic() - self._progress.seconds_paused
        self._note_use()
        with leaving_on_ctrl_c(self._leave), track_usage() as used, self._progress.shown("reading"):
            step()
            waiting = self._ask_operator()
        turn = self.last_turn()
        if turn is None:
            raise InputError(
                f"thread {self.thread!r} holds no message of a customer; begin another with --thread"
            )
        seconds = time.monotonic() - self._progress.seconds_paused - started
        return Outcome(turn, waiting, used.calls, used.by_module, seconds)

    def _ask_operator(self) -> tuple[Mapping[str, Any], ...]:
        """Ask the operator as long as calls wait; return those that are left waiting."""
        problem: str | None = None
        while calls := self._waiting_calls():
            decisions = None
            if self.operator is not None:
                with self._progress.paused():
                    decisions = self.operator(calls, problem)
            if decisions is None:
                return calls
            answer: Command[Any] = Command(resume={"decisions": list(decisions)})
            try:
                self.app.invoke(answer, self._config, durability="sync")
                problem = None
            except InputError as error:
                if str(error) == problem or self._waiting_calls() != calls:
                    raise  # the same again, or it was not the answer that did not fit
                problem = str(error)
        return ()

    def _waiting_calls(self) -> tuple[Mapping[str, Any], ...]:
        interrupts = self.app.get_state(self._config).interrupts
        return tuple(interrupts[0].value["action_requests"]) if interrupts else ()

    def _values(self) -> Mapping[str, Any]:
        values: Mapping[str, Any] = self.app.get_state(self._config).values
        return values

    def _leave(self) -> None:
        self._progress.hide()
        note("Interrupted.")
        self.tell_ways_on()
