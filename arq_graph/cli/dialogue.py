"""A conversation with a compiled agent in one thread, turn by turn, and the file that keeps threads."""

from __future__ import annotations

import re
import secrets
import shlex
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot
from pydantic import BaseModel

from arq_graph.agent.spec import Agent
from arq_graph.apps.agents import create_guided_agent
from arq_graph.apps.resuming import resume_or_invoke
from arq_graph.apps.settings import StrategyName
from arq_graph.cli.options import ModelChoice
from arq_graph.cli.progress import Progress, leaving_on_ctrl_c
from arq_graph.cli.screen import diagnostics, note, show_command
from arq_graph.cli.turn import Outcome, Turn, customer_messages, last_turn
from arq_graph.errors import InputError, ReasoningError
from arq_graph.milestones.graph_file import read_milestones
from arq_graph.reasoning.blueprint import Mode
from arq_graph.reasoning.sections import clean
from arq_graph.reasoning.usage import track_usage

DEFAULT_FILE = Path(".arq_graph") / "threads.sqlite"
_INSTALL = 'pip install "arq_graph[cli]"'
_NOTE = "arq_graph"

Operator = Callable[[Sequence[Mapping[str, Any]]], Sequence[Mapping[str, Any]]]
"""Decides on calls that wait."""


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
        strategy = self.strategy if self.strategy != "tools" else None
        given = {"--db": self.db, "--milestones": self.milestones, "--strategy": strategy}
        return tuple(word for option, value in given.items() if value for word in (option, str(value)))

    def command(self, thread: str, conversation: Path | None = None) -> tuple[str, ...]:
        """The command that goes on with a thread: a chat, or a run over the rest of a conversation."""
        held = ("run", str(self.file), "--conversation", str(conversation))
        name = held if conversation else ("chat", str(self.file))
        return ("arq-graph", *name, "--thread", thread, *self.options)


class ThreadNote(BaseModel):
    """What is kept about a thread beside its checkpoints: what its last turn was made with."""

    agent: str
    file: str
    model: str
    mode: str
    guidelines: dict[str, tuple[str | None, str | None]]

    @classmethod
    def of(cls, thread: str, threads: BaseCheckpointSaver[Any]) -> ThreadNote | None:
        """What was noted about a thread; None for one of another program."""
        found = threads.get_tuple(_beside(thread))
        return cls.model_validate_json(str(found.metadata.get(_NOTE))) if found else None

    def keep(self, thread: str, threads: BaseCheckpointSaver[Any]) -> None:
        """Note it, in the place of what was noted before."""
        # Not as metadata of a run: LangGraph writes that to every checkpoint, and here are the texts of all guidelines.
        noted: Any = {_NOTE: self.model_dump_json()}
        threads.put(_beside(thread), {**empty_checkpoint(), "id": "0"}, noted, {})


def _beside(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": _NOTE}}


@dataclass
class Dialogue:
    """One thread of an agent."""

    app: CompiledStateGraph[Any, Any, Any, Any]
    agent: Agent
    thread: str
    about: ThreadNote
    threads: BaseCheckpointSaver[Any]
    operator: Operator | None
    way_on: tuple[str, ...]
    _progress: Progress = field(default_factory=Progress)

    @property
    def _config(self) -> RunnableConfig:
        return {"configurable": {"thread_id": self.thread}, "callbacks": [self._progress]}

    @property
    def _state(self) -> StateSnapshot:
        return self.app.get_state(self._config)

    @property
    def is_unfinished(self) -> bool:
        """Whether a turn was begun and not ended."""
        return bool(self._state.tasks)  # `next` leaves out tasks whose results are saved

    def said(self) -> list[str]:
        """What the customer said so far."""
        return [message.text for message in customer_messages(self._state.values)]

    def last_turn(self) -> Turn | None:
        """The last turn; None before the first."""
        return last_turn(self._state.values, self.agent.name)

    def finish(self) -> Outcome | None:
        """Finish the turn that was left unfinished; None if there is none."""
        if not self.is_unfinished:
            return None
        return self._run(lambda: resume_or_invoke(self.app, None, self._config, durability="sync"))

    def say(self, text: str) -> Outcome:
        """Say something as the customer; an unfinished turn is given up."""
        message = HumanMessage(clean(text), id=str(uuid4()))
        return self._run(lambda: self._invoke({"messages": [message]}))

    def say_way_on(self) -> None:
        """Say how to go on with the thread, on standard error."""
        note("The thread is saved. Continue with:")
        show_command(diagnostics(), *self.way_on)

    def _invoke(self, input: Any) -> None:
        self.app.invoke(input, self._config, durability="sync")

    def _run(self, step: Callable[[], Any]) -> Outcome:
        self.about.keep(self.thread, self.threads)
        started = time.monotonic()
        with leaving_on_ctrl_c(self._leave), track_usage() as used, self._progress.shown("reading"):
            step()
            waiting = self._ask_operator()
        turn = self.last_turn()
        assert turn is not None  # it was begun with a message
        return Outcome(turn, waiting, used, time.monotonic() - started)

    def _ask_operator(self) -> tuple[Mapping[str, Any], ...]:
        while interrupts := self._state.interrupts:
            calls = tuple(interrupts[0].value["action_requests"])
            if self.operator is None:
                return calls
            with self._progress.paused():
                decisions = self.operator(calls)
            self._invoke(Command(resume={"decisions": decisions}))
        return ()

    def _leave(self) -> None:
        note("Interrupted.")
        self.say_way_on()


@contextmanager
def opened_dialogue(
    setup: Setup, *, operator: Operator | None = None, conversation: Path | None = None
) -> Iterator[Dialogue]:
    """Read an agent, compile it, and open one of its threads."""
    agent = Agent.from_yaml(setup.file)
    milestones = read_milestones(setup.milestones) if setup.milestones else None
    name = re.sub("[^a-z0-9]+", "-", agent.name.lower()).strip("-")[:40]
    thread = setup.thread or f"{name or 'thread'}-{secrets.token_hex(3)}"
    model = setup.choice.chat_model()
    about = ThreadNote(
        agent=agent.name,
        file=str(setup.file),
        model=setup.choice.name,
        mode=setup.mode,
        guidelines={rule.id: (rule.condition_text, rule.action) for rule in agent.guidelines},
    )
    with opened_threads(setup.db) as threads:
        app = create_guided_agent(
            model,
            agent,
            strategy=setup.strategy,
            mode=setup.mode,
            milestones=milestones,
            checkpointer=threads,
        )
        way_on = setup.command(thread, conversation)
        try:
            yield Dialogue(app, agent, thread, about, threads, operator, way_on)
        except ReasoningError as error:
            error.add_note("The thread is saved. Continue with:")
            error.add_note(f"  {shlex.join(way_on)}")
            raise


@contextmanager
def opened_threads(file: Path | None) -> Iterator[BaseCheckpointSaver[Any]]:
    """Open the file of threads, which is made if it does not exist."""
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError:
        raise InputError(f"saving conversations needs another package: {_INSTALL}") from None
    path = file or DEFAULT_FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        ignore = path.parent / ".gitignore"
        if file is None and not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")  # what customers write is not for a repository
        # The saver has a lock of its own; nodes that run at the same time write from their threads.
        connection = sqlite3.connect(str(path), check_same_thread=False)
        saver = SqliteSaver(connection)
        saver.setup()
    except (OSError, sqlite3.Error) as error:
        raise InputError(
            f"{path} cannot be used as a file of threads: {error}; name another one with --db"
        ) from error
    with closing(connection):
        yield saver


@contextmanager
def existing_threads(file: Path | None) -> Iterator[BaseCheckpointSaver[Any]]:
    """Open a file of threads to read it."""
    path = file or DEFAULT_FILE
    if not path.is_file():
        raise InputError(
            f"there is no file of threads {path}: run a conversation first with `arq-graph demo` or `arq-graph chat "
            "AGENT.yaml` in this folder, or name the file with --db"
        )
    with opened_threads(path) as threads:
        yield threads
