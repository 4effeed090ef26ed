"""Run a conversation with a compiled agent in one of its threads: the loop of `chat`, `run` and `demo`."""

from __future__ import annotations

import re
import secrets
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StateSnapshot
from typer import Option

from arq_graph.agent.spec import Agent
from arq_graph.agent.takeover import Takeover
from arq_graph.apps.agents import create_guided_agent
from arq_graph.apps.resuming import App, resume_or_invoke
from arq_graph.apps.settings import StrategyName
from arq_graph.cli.model_choice import ModelChoice
from arq_graph.cli.progress_display import StepDisplay
from arq_graph.cli.screen import note, show_command, stderr_console
from arq_graph.cli.threads import ThreadNote, Threads, open_threads
from arq_graph.cli.turn import Turn, TurnOutcome, customer_messages, read_last_turn
from arq_graph.errors import ArqGraphError, ReasoningError
from arq_graph.milestones.graph_file import read_milestones
from arq_graph.nodes.takeover import TAKEN_OVER, colleague_message
from arq_graph.reasoning.blueprint import Mode
from arq_graph.reasoning.sections import clean
from arq_graph.reasoning.usage import track_usage

_CONTINUE = "The thread is saved. Continue with:"
_NAME_LENGTH = 40

StrategyOption = Annotated[
    StrategyName,
    Option(
        "--strategy",
        metavar="tools|pre-act|react|respact",
        help="How the agent acts. Default: tools.",
    ),
]

Operator = Callable[[Sequence[Mapping[str, Any]]], Sequence[Mapping[str, Any]]]
"""Decides on the calls that wait for an operator, in their order."""


@dataclass(frozen=True)
class DialogueOptions:
    """The options of `chat` and `run`."""

    agent_file: Path
    model: ModelChoice
    mode: Mode = "arq"
    strategy: StrategyName = "tools"
    milestones_file: Path | None = None
    thread: str | None = None
    threads_file: Path | None = None

    @property
    def resume_options(self) -> list[str]:
        """The options that name the file of threads or shape the graph: a turn is finished in the graph it began in."""
        words: list[str] = []
        if self.threads_file:
            words += ["--db", str(self.threads_file)]
        if self.milestones_file:
            words += ["--milestones", str(self.milestones_file)]
        if self.strategy != "tools":
            words += ["--strategy", self.strategy]
        return words

    def resume_command(self, thread: str, conversation: Path | None = None) -> list[str]:
        """Return the command that continues a thread in a chat, or with the rest of a conversation."""
        command = ["arq-graph", "chat", str(self.agent_file)]
        if conversation:
            command = ["arq-graph", "run", str(self.agent_file), "--conversation", str(conversation)]
        command += ["--thread", thread]
        return command + self.resume_options


@dataclass
class Dialogue:
    """A conversation with an agent in one thread; `resume_command` continues it."""

    app: App
    agent: Agent
    thread: str
    thread_note: ThreadNote
    threads: Threads
    operator: Operator | None
    resume_command: list[str]
    _display: StepDisplay = field(default_factory=StepDisplay)

    def run(
        self,
        messages: Iterable[str | None],
        show: Callable[[TurnOutcome], None],
        *,
        show_failure: Callable[[ArqGraphError], None] | None = None,
    ) -> None:
        """Send the customer's messages one after the other, and show the outcome of each turn.

        Args:
            messages: The messages; None in the place of one finishes the turn that was left unfinished.
            show: Called with the outcome of each turn.
            show_failure: Called with the error of a turn before the next message; without it the error is raised.
        """
        for message in messages:
            try:
                outcome = self._run_turn(message)
            except ArqGraphError as error:
                if show_failure is None:
                    raise
                show_failure(error)
                continue
            if outcome is not None:
                show(outcome)

    @property
    def is_turn_unfinished(self) -> bool:
        """True if a turn was begun and not ended."""
        return bool(self._state.tasks)  # `next` leaves out tasks whose results are saved

    @property
    def customer_texts(self) -> list[str]:
        """The texts of the customer's messages so far."""
        return [message.text for message in customer_messages(self._state.values)]

    @property
    def last_turn(self) -> Turn | None:
        """The last turn, or None before the first."""
        return read_last_turn(self._state.values, self.agent.name)

    @property
    def takeover(self) -> Takeover | None:
        """The takeover of the conversation by a person, or None."""
        turn = self.last_turn
        return turn.takeover if turn else None

    def write_as_colleague(self, text: str) -> None:
        """Write to the customer as the person who has the conversation; who hasn't yet takes it over."""
        values: dict[str, Any] = {"messages": [colleague_message(clean(text))]}
        if self.takeover is None:
            values["takeover"] = {"by": "a colleague"}
        self.app.update_state(self._config, values, as_node=TAKEN_OVER)

    def give_back(self) -> None:
        """Give the conversation back to the agent."""
        self.app.update_state(self._config, {"takeover": None}, as_node=TAKEN_OVER)

    def show_resume_command(self) -> None:
        """Print on standard error how to continue the thread."""
        note(_CONTINUE)
        show_command(self.resume_command, console=stderr_console())

    @property
    def _config(self) -> RunnableConfig:
        return {"configurable": {"thread_id": self.thread}, "callbacks": [self._display]}

    @property
    def _state(self) -> StateSnapshot:
        return self.app.get_state(self._config)

    def _run_turn(self, message: str | None) -> TurnOutcome | None:
        """Send a message, which abandons an unfinished turn; without one, finish that turn if there is one."""
        if message is None and not self.is_turn_unfinished:
            return None
        self.thread_note.save(self.thread, self.threads)
        start = time.monotonic()
        with self._display.show("reading", self._announce_interrupt), track_usage() as usage:
            if message is None:
                resume_or_invoke(self.app, None, self._config, durability="sync")
            else:
                self._invoke({"messages": [HumanMessage(clean(message), id=str(uuid4()))]})
            pending_calls = self._ask_operator()
        turn = self.last_turn
        assert turn is not None  # it was begun with a message
        return TurnOutcome(turn, pending_calls, usage, time.monotonic() - start)

    def _ask_operator(self) -> Sequence[Mapping[str, Any]]:
        """Resume the turn with the operator's decisions; return the calls that still wait if there is no operator."""
        while interrupts := self._state.interrupts:
            calls: list[Mapping[str, Any]] = interrupts[0].value["action_requests"]
            if self.operator is None:
                return calls
            with self._display.pause():
                decisions = self.operator(calls)
            self._invoke(Command(resume={"decisions": decisions}))
        return []

    def _invoke(self, input: Any) -> None:
        self.app.invoke(input, self._config, durability="sync")

    def _announce_interrupt(self) -> None:
        note("Interrupted.")
        self.show_resume_command()


@contextmanager
def open_dialogue(
    options: DialogueOptions, *, operator: Operator | None = None, conversation: Path | None = None
) -> Iterator[Dialogue]:
    """Read an agent, compile it, and open one of its threads.

    Calls that wait for an operator stay pending without one. The command that continues the thread names the file of
    the conversation, if the customer's messages come from one.
    """
    agent = Agent.from_yaml(options.agent_file)
    milestones = None
    if options.milestones_file:
        milestones = read_milestones(options.milestones_file)
    thread = options.thread or _new_thread_id(agent.name)
    resume_command = options.resume_command(thread, conversation)
    model = options.model.chat_model()
    thread_note = ThreadNote(
        agent=agent.name,
        file=str(options.agent_file),
        model=options.model.name,
        mode=options.mode,
        guidelines={rule.id: (rule.condition_text, rule.action) for rule in agent.rules},
        journeys={journey.id: tuple(journey.by_id) for journey in agent.journeys},
    )
    with open_threads(options.threads_file) as threads:
        app = create_guided_agent(
            model,
            agent,
            strategy=options.strategy,
            mode=options.mode,
            milestones=milestones,
            checkpointer=threads,
        )
        try:
            yield Dialogue(app, agent, thread, thread_note, threads, operator, resume_command)
        except ReasoningError as error:
            error.add_note(_CONTINUE)
            error.add_note(f"  {shlex.join(resume_command)}")
            raise


def _new_thread_id(agent_name: str) -> str:
    name = re.sub("[^a-z0-9]+", "-", agent_name.lower()).strip("-")[:_NAME_LENGTH]
    return f"{name or 'thread'}-{secrets.token_hex(3)}"
