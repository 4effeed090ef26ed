"""A conversation with the agent: one turn at a time, whatever happens on the page meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from ag_ui.core import BaseEvent, CustomEvent, RunAgentInput
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import MemorySaver

from arq_graph.agui import agui_events
from arq_graph.apps.resuming import App
from arq_graph.errors import InputError, describe_error
from arq_graph.nodes.takeover import TAKEN_OVER, colleague_message
from arq_graph.play.agent_source import AgentSource, describe_agent
from arq_graph.play.call_recorder import CallRecorder
from arq_graph.play.scenario_file import find_suite_path, make_entry, save_entry
from arq_graph.reasoning.sections import clean

_WAIT_SECONDS = 1.5  # the server waits for it when it ends


class Journal:
    """All that the page shows of the thread `id`: events of AG-UI as JSON, with a `timestamp` in milliseconds."""

    def __init__(self) -> None:
        self.id = str(uuid4())
        self.entries: list[dict[str, Any]] = []
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    def write(self, event: BaseEvent) -> None:
        """Append an event; from any thread."""
        entry = event.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.entries.append(entry | {"timestamp": round(time.time() * 1000)})
        with suppress(RuntimeError):  # the loop may have ended
            self._loop.call_soon_threadsafe(self._changed.set)

    def note(self, name: str, value: Any) -> None:
        """Append an event of the playground's own; from any thread."""
        self.write(CustomEvent(name=name, value=value))

    async def read(self, after: int) -> list[dict[str, Any]]:
        """Return what follows the first entries; if nothing does, wait for it, and return nothing if it takes long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_SECONDS):
                while len(self.entries) <= after:
                    self._changed.clear()
                    await self._changed.wait()
        return self.entries[after:]


class Conversation:
    """The conversation that the page shows. A new agent goes on with it, and `restart` begins another."""

    def __init__(self, source: AgentSource, make_app: Callable[..., App], model: str) -> None:
        self.source = source
        self.calls: dict[str, dict[str, Any]] = {}  # those of all turns
        self._make_app = make_app
        self._model = model
        self._checkpointer = MemorySaver()
        self._turn: asyncio.Task[None] | None = None
        self._saving = asyncio.Lock()
        self._loading = asyncio.Lock()
        self._problem = ""
        self.load()

    def load(self) -> None:
        """Read and compile the agent; if that raises an error, the agent from before stays."""
        agent, milestones = self.source.load()
        self._app = self._make_app(agent, milestones=milestones, checkpointer=self._checkpointer)
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
            watchers = (self.source.watch(), self.source.watch_milestones())
            await asyncio.gather(*map(self._reload_after, watchers))
        except OSError as error:  # such as too many folders to watch
            self._note_problem(f"Changes of files are no longer seen, start the playground again: {error}")

    def start_turn(self, request: RunAgentInput) -> None:
        """Begin a turn, which runs to its end even if the page is left."""
        self._require_rest()
        request = request.model_copy(update={"thread_id": self.journal.id, "run_id": str(uuid4())})
        self._turn = asyncio.create_task(self._run_turn(request, self.journal))

    def restart(self) -> None:
        """Stop the turn that runs, if there is one, and begin a new conversation."""
        if self._turn is not None:
            self._turn.cancel()
        self._note("restarted")  # so that who waits for this journal's next entry sees the new one
        self._checkpointer.delete_thread(self.journal.id)
        self.begin()

    async def write_as_colleague(self, text: str) -> None:
        """Write to the customer as the person who has the conversation."""
        await self._update_state({"messages": [colleague_message(clean(text))]})
        self._note("colleague", {"text": text})

    async def give_back(self) -> None:
        """Give the conversation back to the agent."""
        await self._update_state({"takeover": None})
        self._note("given_back")

    async def save(self, file_name: str, scenario_name: str) -> Path:
        """Save the conversation as a scenario of a suite file, and return the file."""
        path = find_suite_path(self.source.folder, file_name)
        state = await self._app.aget_state(self._config)
        entry = make_entry(scenario_name, self.source, path.parent, state.values)
        async with self._saving:  # one that is saved meanwhile would be lost
            await asyncio.to_thread(save_entry, path, entry)
        self.source.written_files.add(path)
        return path

    @property
    def _config(self) -> RunnableConfig:
        return {"configurable": {"thread_id": self.journal.id}}

    async def _reload_after(self, changes: AsyncIterator[None]) -> None:
        async for _ in changes:
            async with self._loading:
                await self._reload()

    async def _reload(self) -> None:
        try:
            await asyncio.to_thread(self.load)
        except Exception as error:
            self._note_problem(describe_error(error))
        else:
            self._problem = ""
            self._note("agent_loaded", self._description)

    def _note(self, name: str, value: Any = None) -> None:
        self.journal.note(name, value or {})

    def _note_problem(self, problem: str) -> None:
        self._problem = problem
        self._note("agent_broken", {"problem": problem})

    async def _run_turn(self, request: RunAgentInput, journal: Journal) -> None:
        for message in request.messages:
            journal.note("customer", message.model_dump(mode="json"))
        for answer in request.resume or ():
            journal.note("operator", answer.model_dump(mode="json"))
        # A tool's thread may go on after a restart, so what it does is written to the journal of its own turn.
        recorder = CallRecorder(self.calls, partial(journal.note, "model_call"))
        config: RunnableConfig = {"callbacks": [recorder]}
        options: dict[str, Any] = {"shows_internals": True, "durability": "sync"}
        async with aclosing(agui_events(self._app, request, config, **options)) as events:
            async for event in events:
                journal.write(event)

    async def _update_state(self, values: dict[str, Any]) -> None:
        """Write for the person who has the conversation."""
        self._require_rest()
        state = await self._app.aget_state(self._config)
        if state.values.get("takeover") is None:
            raise InputError("The agent has the conversation: only a person who has it can do this.")
        await self._app.aupdate_state(self._config, values, as_node=TAKEN_OVER)

    def _require_rest(self) -> None:
        if self._turn is not None and not self._turn.done():
            raise InputError("A turn is running: wait for its end.")
