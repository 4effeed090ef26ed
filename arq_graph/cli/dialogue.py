"""A conversation with a compiled agent in one thread, turn by turn."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from arq_graph.agent.spec import Agent
from arq_graph.apps.guided import create_guided_agent
from arq_graph.apps.resuming import resume_or_invoke
from arq_graph.apps.strategies import StrategyName, strategy_of
from arq_graph.cli.failures import leaving_on_ctrl_c
from arq_graph.cli.options import ModelChoice
from arq_graph.cli.progress import Progress
from arq_graph.cli.screen import diagnostics, note, show_command, warn
from arq_graph.cli.threads import ThreadNote, opened_threads, thread_id
from arq_graph.cli.turn import Outcome, Turn, customer_messages, last_turn
from arq_graph.errors import InputError, ReasoningError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.reasoning.blueprint import Mode
from arq_graph.reasoning.sections import clean
from arq_graph.reasoning.transport import watch_waits
from arq_graph.reasoning.usage import track_usage

Operator = Callable[[Sequence[Mapping[str, Any]], str | None], Sequence[Mapping[str, Any]] | None]
"""Decides on calls that wait: takes them and what was wrong with the last answer; None leaves them waiting."""


@dataclass(frozen=True)
class Setup:
    """What to converse with, and where it is kept."""

    file: Path
    choice: ModelChoice
    mode: Mode = "arq"
    strategy: StrategyName = "tools"
    milestones: Path | None = None
    thread: str | None = None
    db: Path | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The options that name the file of threads, and shape the graph: a turn is finished in the one it began in."""
        given = {"--db": self.db, "--milestones": self.milestones}
        if self.strategy != "tools":
            given["--strategy"] = Path(self.strategy)
        return tuple(word for option, value in given.items() if value for word in (option, str(value)))

    def command(self, thread: str, conversation: Path | None = None) -> tuple[str, ...]:
        """The command that goes on with a thread: a chat, or a run over the rest of a conversation."""
        held = ("run", str(self.file), "--conversation", str(conversation))
        name = held if conversation else ("chat", str(self.file))
        return ("arq-graph", *name, "--thread", thread, *self.options)


class Dialogue:
    """One thread of an agent."""

    def __init__(
        self,
        app: CompiledStateGraph[Any, Any, Any, Any],
        agent: Agent,
        thread: str,
        about: ThreadNote,
        operator: Operator | None,
        way_on: tuple[str, ...] | None,
    ) -> None:
        self.agent = agent
        self.thread = thread
        self.about = about
        self.way_on = way_on
        self._app = app
        self._operator = operator
        self._progress = Progress()
        self._config: RunnableConfig = {**about.config(thread), "callbacks": [self._progress]}

    @property
    def is_unfinished(self) -> bool:
        """Whether a turn was begun and not ended."""
        return bool(
            self._app.get_state(self._config).tasks
        )  # `next` leaves out tasks whose results are saved

    def said(self) -> list[str]:
        """What the customer said so far."""
        return [message.text for message in customer_messages(self._app.get_state(self._config).values)]

    def last_turn(self) -> Turn | None:
        """The last turn; None before the first."""
        return last_turn(self._app.get_state(self._config).values, self.agent.name)

    def finish(self) -> Outcome | None:
        """Finish the turn that was left unfinished; None if there is none."""
        if not self.is_unfinished:
            return None
        return self._run(lambda: resume_or_invoke(self._app, None, self._config, durability="sync"))

    def say(self, text: str) -> Outcome:
        """Say something as the customer; an unfinished turn is given up."""
        message = HumanMessage(clean(text), id=str(uuid4()))
        return self._run(lambda: self._invoke({"messages": [message]}))

    def tell_way_on(self) -> None:
        """Say how to go on with the thread, on standard error."""
        if self.way_on:
            note("The thread is kept. Go on with:")
            show_command(diagnostics(), *self.way_on)

    def _invoke(self, input: Any) -> None:
        self._app.invoke(input, self._config, durability="sync")

    def _run(self, step: Callable[[], Any]) -> Outcome:
        started = time.monotonic() - self._progress.seconds_paused
        with (
            leaving_on_ctrl_c(self._leave),
            track_usage() as used,
            self._progress.shown("reading"),
            watch_waits(self._progress.tell_wait),
        ):
            step()
            waiting = self._ask_operator()
        turn = self.last_turn()
        if turn is None:
            raise InputError(f"thread {self.thread!r} holds no message of a customer; name another")
        seconds = time.monotonic() - self._progress.seconds_paused - started
        return Outcome(turn, waiting, used.calls, used.by_module, seconds)

    def _ask_operator(self) -> tuple[Mapping[str, Any], ...]:
        """Ask the operator as long as calls wait; return those that are left waiting."""
        problem: str | None = None
        while calls := self._waiting_calls():
            if self._operator is None:
                return calls
            with self._progress.paused():
                decisions = self._operator(calls, problem)
            try:
                self._invoke(Command(resume={"decisions": decisions}))
                problem = None
            except InputError as error:
                if str(error) == problem or self._waiting_calls() != calls:
                    raise  # the same again, or it was not the answer that did not fit
                problem = str(error)
        return ()

    def _waiting_calls(self) -> tuple[Mapping[str, Any], ...]:
        interrupts = self._app.get_state(self._config).interrupts
        return tuple(interrupts[0].value["action_requests"]) if interrupts else ()

    def _leave(self) -> None:
        note("Interrupted.")
        self.tell_way_on()


@contextmanager
def opened_dialogue(
    setup: Setup, *, operator: Operator | None = None, conversation: Path | None = None
) -> Iterator[Dialogue]:
    """Read an agent, compile it, and open one of its threads."""
    agent = Agent.from_yaml(setup.file)
    milestones = MilestoneGraph.from_yaml(setup.milestones) if setup.milestones else None
    thread = thread_id(setup.thread, agent)
    model = setup.choice.chat_model()
    about = ThreadNote.of(agent, setup.choice.name, setup.mode)
    with opened_threads(setup.db) as threads:
        app = create_guided_agent(
            model,
            agent,
            strategy=strategy_of(setup.strategy),
            mode=setup.mode,
            milestones=milestones,
            checkpointer=threads,
        )
        known = ThreadNote.in_checkpoint(threads.get_tuple({"configurable": {"thread_id": thread}}))
        if known is not None and known.agent != agent.name:
            warn(f"thread {thread!r} was begun with the agent {known.agent!r}, not with {agent.name!r}")
        way_on = None if isinstance(threads, InMemorySaver) else setup.command(thread, conversation)
        try:
            yield Dialogue(app, agent, thread, about, operator, way_on)
        except ReasoningError as error:
            if way_on:
                error.add_note("The thread is kept. Go on with:")
                error.add_note(f"  {shlex.join(way_on)}")
            raise
