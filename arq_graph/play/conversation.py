"""A conversation with the agent: one turn at a time, whatever happens on the page meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any
from uuid import uuid4

from ag_ui.core import CustomEvent, RunAgentInput
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import MemorySaver

from arq_graph.agent.spec import Agent
from arq_graph.agui import agui_events
from arq_graph.apps.resuming import App
from arq_graph.errors import InputError, describe_error
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.nodes.takeover import TAKEN_OVER, colleague_message
from arq_graph.play.agent_source import AgentSource, describe_agent
from arq_graph.play.call_recorder import CallRecorder
from arq_graph.play.journal import Journal
from arq_graph.play.scenario_file import find_suite_path, make_entry, save_entry
from arq_graph.reasoning.sections import clean

_IS_RUNNING = "A turn is running: wait for its end."
MAX_ENTRIES = 50_000
"""The most events of one conversation."""

MakeApp = Callable[[Agent, MilestoneGraph | None, Any], App]
"""Compiles an agent, on whose milestones progress is measured, with a checkpointer."""


class Conversation:
    """The conversation that the page shows. A new agent goes on with it, and `restart` begins another.

    Args:
        source: Where the agent comes from.
        make_app: Compiles it.
        model: The name of its model.

    Attributes:
        journal: All that the page shows.
        recorder: The model calls.
        agent: The agent that answers.
    """

    def __init__(self, source: AgentSource, make_app: MakeApp, model: str) -> None:
        self.source = source
        self._make_app = make_app
        self._model = model
        self.recorder = CallRecorder(lambda call: self._note("model_call", call))
        self._checkpointer = MemorySaver()
        self._turn: asyncio.Task[None] | None = None
        self._problem = ""
        self.load()

    def load(self) -> None:
        """Read and compile the agent; if that fails, the agent from before stays.

        Raises:
            ArqGraphError: The agent can't be read or compiled.
        """
        agent, milestones = self.source.load()
        self._app = self._make_app(agent, milestones, self._checkpointer)
        self.agent = agent
        self._description = describe_agent(agent, milestones, self._model)

    def begin(self) -> None:
        """Begin an empty conversation, in a thread of its own."""
        self.journal = Journal()
        self._note("agent_loaded", self._description)
        if self._problem:
            self._note("agent_broken", {"problem": self._problem})

    async def keep_up_to_date(self) -> None:
        """Load the agent again whenever its files change."""
        try:
            async for _ in self.source.watch():
                await self._reload()
        except OSError as error:  # such as too many folders to watch
            self._problem = f"Changes of files are no longer seen: {error}. Start the playground again."
            self._note("agent_broken", {"problem": self._problem})

    async def _reload(self) -> None:
        try:
            await asyncio.to_thread(self.load)
        except Exception as error:
            self._problem = describe_error(error)
            self._note("agent_broken", {"problem": self._problem})
        else:
            self._problem = ""
            self._note("agent_loaded", self._description)

    @property
    def is_running(self) -> bool:
        """True while a turn runs."""
        return self._turn is not None and not self._turn.done()

    def start_turn(self, request: RunAgentInput) -> None:
        """Begin a turn, which runs to its end even if the page is left.

        Raises:
            InputError: A turn is running, or the conversation is too long.
        """
        if self.is_running:
            raise InputError(_IS_RUNNING)
        if len(self.journal.entries) > MAX_ENTRIES:
            raise InputError("This conversation is too long for the page: restart it.")
        request = request.model_copy(update={"thread_id": self.journal.id, "run_id": str(uuid4())})
        self._turn = asyncio.create_task(self._run_turn(request, self.journal))

    async def restart(self) -> None:
        """Stop the turn that runs, if there is one, and begin a new conversation."""
        if self._turn is not None:
            self._turn.cancel()
        self._note("restarted")
        self._checkpointer.delete_thread(self.journal.id)
        self.begin()

    async def write_as_colleague(self, text: str) -> None:
        """Write to the customer as the person who has the conversation.

        Raises:
            InputError: Nobody has taken the conversation over.
        """
        state = await self._app.aget_state(self._thread)
        if state.values.get("takeover") is None:
            raise InputError(
                "The agent has the conversation: only a person who has it can write to the customer."
            )
        await self._update_state({"messages": [colleague_message(clean(text))]})
        self._note("colleague", {"text": text})

    async def give_back(self) -> None:
        """Give the conversation back to the agent."""
        await self._update_state({"takeover": None})
        self._note("given_back")

    async def save(self, file_name: str, scenario_name: str) -> Path:
        """Save the conversation as a scenario of a suite file, and return the file.

        Raises:
            ArqGraphError: There is nothing to save yet, or the file can't take it.
        """
        path = find_suite_path(self.source.folder, file_name)
        state = await self._app.aget_state(self._thread)
        entry = make_entry(scenario_name, self.source, path.parent, state.values)
        await asyncio.to_thread(save_entry, path, entry)
        self.source.written_files.add(path)  # it isn't part of the agent
        return path

    @property
    def _thread(self) -> RunnableConfig:
        return {"configurable": {"thread_id": self.journal.id}, "callbacks": [self.recorder]}

    def _note(self, name: str, value: Any = None) -> None:
        self.journal.write(CustomEvent(name=name, value=value or {}))

    async def _run_turn(self, request: RunAgentInput, journal: Journal) -> None:
        for message in request.messages:
            journal.write(CustomEvent(name="customer", value=message.model_dump(mode="json")))
        options: dict[str, Any] = {"shows_internals": True, "durability": "sync"}
        async with aclosing(agui_events(self._app, request, self._thread, **options)) as events:
            async for event in events:
                journal.write(event)

    async def _update_state(self, values: dict[str, Any]) -> None:
        if self.is_running:
            raise InputError(_IS_RUNNING)
        await self._app.aupdate_state(self._thread, values, as_node=TAKEN_OVER)
