"""From a command line to a conversation: the agent read and compiled, one of its threads opened."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from arq_graph.agent.spec import Agent
from arq_graph.apps.guided import create_guided_agent
from arq_graph.apps.planning import Planning
from arq_graph.cli.dialogue import Dialogue, Operator, WaysOn
from arq_graph.cli.failures import note, warn
from arq_graph.cli.settings import ModelChoice
from arq_graph.cli.threads import ThreadStore, note_of, opened_threads, thread_id
from arq_graph.errors import ReasoningError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.reasoning.blueprint import Mode


@dataclass(frozen=True)
class Setup:
    """What to converse with, and where it is kept.

    Args:
        file: The agent's YAML file.
        choice: The model.
        mode: `arq`, `cot` or `direct`.
        thread: The thread's id; None begins a new one.
        db: The file of threads; None takes the default one.
        planning: `react` or `pre-act`; None decides on all tools at once.
        speaking: Whether a speaker decides, one move at a time.
        milestones: The milestone file to measure on; None measures nothing.
    """

    file: Path
    choice: ModelChoice
    mode: Mode = "arq"
    thread: str | None = None
    db: Path | None = None
    planning: Planning | None = None
    speaking: bool = False
    milestones: Path | None = None

    @property
    def graph_options(self) -> tuple[str, ...]:
        """The options that shape the graph: an unfinished turn can be gone on with in the same graph alone."""
        planning = ("--planning", self.planning) if self.planning else ()
        speaking = ("--speaking",) if self.speaking else ()
        return planning + speaking + (("--milestones", str(self.milestones)) if self.milestones else ())

    @property
    def db_option(self) -> tuple[str, ...]:
        """The option that names the file of threads, if one was given."""
        return ("--db", str(self.db)) if self.db else ()


@contextmanager
def opened_dialogue(
    setup: Setup, *, operator: Operator | None = None, conversation: Path | None = None
) -> Iterator[Dialogue]:
    """Read an agent, compile it, and open one of its threads.

    Args:
        setup: What to converse with.
        operator: Decides on calls that need an operator's word; None leaves them waiting.
        conversation: The file that `run` reads; None for a chat.

    Raises:
        ArqGraphError: The agent, the model, the thread's id or the file of threads cannot be used.
    """
    agent = Agent.from_yaml(setup.file)
    milestones = MilestoneGraph.from_yaml(setup.milestones) if setup.milestones else None
    thread = thread_id(setup.thread, agent)
    model = setup.choice.chat_model()
    if setup.choice.notice:
        note(setup.choice.notice)
    with opened_threads(setup.db) as threads:
        app = create_guided_agent(
            model,
            agent,
            planning=setup.planning,
            speaking=setup.speaking,
            mode=setup.mode,
            milestones=milestones,
            checkpointer=threads.checkpointer,
        )
        _warn_of_another_agent(threads, thread, agent)
        about = note_of(agent, setup.choice.name, setup.mode)
        ways_on = _ways_on(setup, thread, conversation) if threads.file else None
        try:
            yield Dialogue(
                app,
                agent,
                thread,
                operator=operator,
                ways_on=ways_on,
                note_use=lambda: threads.note(thread, about),
            )
        except ReasoningError as error:
            if ways_on:
                error.add_note("The thread is kept. Go on with:")
                error.add_note(f"  {shlex.join(ways_on.same)}")
            raise


def _warn_of_another_agent(threads: ThreadStore, thread: str, agent: Agent) -> None:
    known = threads.about(thread)
    if known is not None and known.agent != agent.name:
        warn(f"thread {thread!r} was begun with the agent {known.agent!r}, not with {agent.name!r}")


def _ways_on(setup: Setup, thread: str, conversation: Path | None) -> WaysOn:
    where = ("--thread", thread, *setup.db_option, *setup.graph_options)
    chat = ("arq-graph", "chat", str(setup.file), *where)
    if conversation is None:
        return WaysOn(chat, chat)
    return WaysOn(("arq-graph", "run", str(setup.file), "--conversation", str(conversation), *where), chat)
