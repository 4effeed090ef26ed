"""Compiled LangGraph apps, run up to their first action, so that no predicted tool ever runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextlib import aclosing, closing
from typing import Any
from uuid import uuid4

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage

from arq_graph.milestones.turn_level.actions import Action, action_of
from arq_graph.milestones.turn_level.history import to_messages
from arq_graph.milestones.turn_level.steps import TurnStep


def is_graph(agent: Any) -> bool:
    """Whether this is a compiled graph, told without importing langgraph."""
    return all(callable(getattr(agent, name, None)) for name in ("stream", "astream", "get_state"))


class GraphAgent:
    """Predicts with a compiled graph whose state has the channel `messages`.

    It is given the history as messages and streamed until the first new message of the agent at the top level,
    with calls or without; nothing runs after that. Where a graph inside it is about to run a tool before such a
    message, the call is refused before the tool starts, and counts as the action; so does one that an interrupt
    holds back. Code of a node that is no LangChain tool cannot be held back.

    The instructions and tools of the record are not used: the app has its own. With a checkpointer each step
    gets a thread of its own, which is deleted afterwards.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    def predict(self, step: TurnStep) -> Any:
        """The app's next action."""
        run = _Run(to_messages(step.history), self._app)
        try:
            with closing(self._app.stream(*run.input, stream_mode="updates")) as updates:
                for update in updates:
                    if message := run.action_in(update):
                        return message
        except _ToolHeldBackError:
            pass
        finally:
            run.forget()
        return run.held_back()

    async def apredict(self, step: TurnStep) -> Any:
        """The app's next action, without blocking."""
        run = _Run(to_messages(step.history), self._app)
        try:
            async with aclosing(self._app.astream(*run.input, stream_mode="updates")) as updates:
                async for update in updates:
                    if message := run.action_in(update):
                        return message
        except _ToolHeldBackError:
            pass
        finally:
            await run.aforget()
        return run.held_back()


class _ToolHeldBackError(BaseException):
    """A tool was about to run; no handler of an agent's errors may turn this into a result and go on."""


class _Run:
    """One run of an app, up to its first action."""

    def __init__(self, messages: list[BaseMessage], app: Any) -> None:
        self._known = {message.id for message in messages}
        self._guard = _Guard(self._known)
        config: dict[str, Any] = {"callbacks": [self._guard]}
        self._checkpointer = getattr(app, "checkpointer", None)
        self._thread = f"turn-level-{uuid4()}"
        if self._checkpointer:
            config["configurable"] = {"thread_id": self._thread}
        self.input = ({"messages": messages}, config)

    def action_in(self, update: Any) -> AIMessage | None:
        nodes = update.values() if isinstance(update, Mapping) else ()
        return next((message for node in nodes for message in _new(node, self._known)), None)

    def held_back(self) -> Action:
        message = self._guard.asking
        return Action() if message is None else action_of(message)

    def forget(self) -> None:
        delete = getattr(self._checkpointer, "delete_thread", None)
        if delete is not None:
            with contextlib.suppress(NotImplementedError):
                delete(self._thread)

    async def aforget(self) -> None:
        delete = getattr(self._checkpointer, "adelete_thread", None)
        if delete is not None:
            with contextlib.suppress(NotImplementedError):
                await delete(self._thread)


class _Guard(BaseCallbackHandler):
    """Notes which message asks for tools, at any depth, and stops the run before one starts."""

    raise_error = True
    run_inline = True

    def __init__(self, known: set[str | None]) -> None:
        self.asking: AIMessage | None = None
        self._known = known

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        """A node is done."""
        for message in _new(outputs, self._known):
            if message.tool_calls:
                self.asking = message

    def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
        """A tool is about to run."""
        if self.asking is None:
            name, given = str((serialized or {}).get("name") or "tool"), kwargs.get("inputs")
            arguments = dict(given) if isinstance(given, Mapping) else {"input": input_str}
            self.asking = AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "held-back"}])
        raise _ToolHeldBackError


def _new(update: Any, known: set[str | None]) -> Iterator[AIMessage]:
    """The agent's messages in what a node gives back that say or call something and are not of the history."""
    for message in _messages(update):
        is_known = message.id is not None and message.id in known
        if isinstance(message, AIMessage) and not is_known and action_of(message).kind != "nothing":
            yield message


def _messages(update: Any) -> Iterator[BaseMessage]:
    if isinstance(update, BaseMessage):
        yield update
    elif isinstance(update, Mapping):
        yield from _messages(update.get("messages"))
    elif isinstance(update, list | tuple):
        for each in update:
            yield from _messages(each)
    elif hasattr(update, "update"):  # a Command
        yield from _messages(update.update)
    elif hasattr(update, "value"):  # an Overwrite
        yield from _messages(update.value)
