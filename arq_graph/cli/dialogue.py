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
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from arq_graph.agent.spec import Agent
from arq_graph.apps.guided import create_guided_agent
from arq_graph.apps.resuming import resume_or_invoke
from arq_graph.apps.strategies import StrategyName, strategy_of
from arq_graph.cli.failures import leaving_on_ctrl_c, note, warn
from arq_graph.cli.progress import Progress
from arq_graph.cli.screen import command, diagnostics
from arq_graph.cli.settings import ModelChoice
from arq_graph.cli.threads import ThreadNote, ThreadStore, note_of, opened_threads, thread_id
from arq_graph.cli.turn import Turn, customer_messages, last_turn
from arq_graph.errors import InputError, ReasoningError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.reasoning.blueprint import Mode
from arq_graph.reasoning.sections import clean
from arq_graph.reasoning.transport import watch_waits
from arq_graph.reasoning.usage import ModuleUsage, track_usage

Operator = Callable[[Sequence[Mapping[str, Any]], str | None], Sequence[Mapping[str, Any]] | None]
"""Decides on calls that wait: takes them and what was wrong with the last answer; None leaves them waiting."""


@dataclass(frozen=True)
class Setup:
    """What to converse with, and where it is kept."""

    file: Path
    choice: ModelChoice
    mode: Mode = "arq"
    thread: str | None = None
    db: Path | None = None
    strategy: StrategyName = "tools"
    milestones: Path | None = None

    @property
    def graph_options(self) -> tuple[str, ...]:
        """The options that shape the graph: an unfinished turn can only be finished in the same graph."""
        strategy = ("--strategy", self.strategy) if self.strategy != "tools" else ()
        return strategy + (("--milestones", str(self.milestones)) if self.milestones else ())

    @property
    def db_option(self) -> tuple[str, ...]:
        """The option that names the file of threads, if one was given."""
        return ("--db", str(self.db)) if self.db else ()

    def command(self, thread: str, conversation: Path | None = None) -> tuple[str, ...]:
        """The command that goes on with a thread: a chat, or a run over the rest of a conversation."""
        held = ("--conversation", str(conversation)) if conversation else ()
        name = "run" if conversation else "chat"
        where = ("--thread", thread, *self.db_option, *self.graph_options)
        return ("arq-graph", name, str(self.file), *held, *where)


@dataclass(frozen=True)
class Outcome:
    """What came of running a thread once."""

    turn: Turn
    waiting: tuple[Mapping[str, Any], ...]
    calls: int
    usage: Mapping[str, ModuleUsage]
    seconds: float


class Dialogue:
    """One thread of an agent."""

    def __init__(
        self,
        app: CompiledStateGraph[Any, Any, Any, Any],
        agent: Agent,
        thread: str,
        about: ThreadNote,
        *,
        threads: ThreadStore,
        operator: Operator | None,
        way_on: tuple[str, ...] | None,
    ) -> None:
        self.app = app
        self.agent = agent
        self.thread = thread
        self.about = about
        self.operator = operator
        self.way_on = way_on
        self._threads = threads
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
        return last_turn(self._values(), self.agent.name)

    def finish(self) -> Outcome | None:
        """Finish the turn that was left unfinished; None if there is none."""
        if not self.is_unfinished:
            return None
        return self._run(lambda: resume_or_invoke(self.app, None, self._config, durability="sync"))

    def say(self, text: str) -> Outcome:
        """Say something as the customer; an unfinished turn is given up."""
        message = HumanMessage(clean(text), id=str(uuid4()))
        return self._run(lambda: self.app.invoke({"messages": [message]}, self._config, durability="sync"))

    def tell_way_on(self) -> None:
        """Say how to go on with the thread, on standard error."""
        if self.way_on:
            note("The thread is kept. Go on with:")
            diagnostics().print(command(*self.way_on), soft_wrap=True)

    def _run(self, step: Callable[[], Any]) -> Outcome:
        started = time.monotonic() - self._progress.seconds_paused
        self._threads.note(self.thread, self.about)
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
    if setup.choice.notice:
        note(setup.choice.notice)
    about = note_of(agent, setup.choice.name, setup.mode)
    with opened_threads(setup.db) as threads:
        app = create_guided_agent(
            model,
            agent,
            strategy=strategy_of(setup.strategy),
            mode=setup.mode,
            milestones=milestones,
            checkpointer=threads.checkpointer,
        )
        known = threads.about(thread)
        if known is not None and known.agent != agent.name:
            warn(f"thread {thread!r} was begun with the agent {known.agent!r}, not with {agent.name!r}")
        way_on = setup.command(thread, conversation) if threads.file else None
        try:
            yield Dialogue(app, agent, thread, about, threads=threads, operator=operator, way_on=way_on)
        except ReasoningError as error:
            if way_on:
                error.add_note("The thread is kept. Go on with:")
                error.add_note(f"  {shlex.join(way_on)}")
            raise
