"""Who can be evaluated: a chat model, a compiled graph, or a function of the history."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableLambda

from arq_graph.errors import InputError, ToolError
from arq_graph.milestones.tool_schemas import get_tool_definitions
from arq_graph.milestones.turn_level.actions import Action, ToolCall
from arq_graph.milestones.turn_level.steps import TurnStep
from arq_graph.models.resolve import Bare, chat_model
from arq_graph.reasoning.transport import Transport

TIMEOUT = 60.0
"""Seconds that a chat model may take for one step, retries included."""
BACKOFF = 0.5

Predict = Callable[[TurnStep], Awaitable[Any]]
"""Gives an agent's next action at a step: whatever `Action.of` understands."""


def predictor(agent: Any, *, tools: Any = None) -> Predict:
    """How an agent is asked; arguments and errors are those of `aevaluate_turns`."""
    if isinstance(agent, str):
        agent = chat_model(agent)
    if isinstance(agent, BaseChatModel):
        return _of_model(agent, None if tools is None else openai_definitions(tools))
    if hasattr(type(agent), "checkpointer"):  # a compiled graph, told without importing langgraph
        return _of_graph(agent)
    if not callable(agent) and not isinstance(agent, Runnable):
        raise InputError(
            f"{type(agent).__name__} is no agent: give a chat model or its name, a compiled graph, or a function of "
            "the history"
        )
    asked: Runnable[Any, Any] = agent if isinstance(agent, Runnable) else RunnableLambda(agent)
    return lambda step: asked.ainvoke(step.history())


def openai_definitions(tools: Any) -> list[dict[str, Any]]:
    """Tools as a model is told of them, as OpenAI definitions, each name once."""
    if not isinstance(tools, Mapping) and any(isinstance(tool, str) for tool in tools):
        raise ToolError(
            "a name alone tells a model nothing of a tool; give OpenAI tool definitions, or schemas by name"
        )
    anything = {"type": "object", "properties": {}}
    functions = [
        {"description": "", **each, "parameters": anything | each.get("parameters", {})}
        for each in get_tool_definitions(tools)
    ]
    return [{"type": "function", "function": function} for function in functions]


def _of_model(model: BaseChatModel, tools: list[dict[str, Any]] | None) -> Predict:
    """One call a step with the tools bound, repeated after lost connections and overload."""
    transport = Transport(Bare(model), timeout=TIMEOUT, backoff=BACKOFF)

    async def predict(step: TurnStep) -> Any:
        given = tools
        if given is None:
            given = openai_definitions(step.transcript.extra.get("tools") or step.transcript.tools)
        asked = f"conversation {step.conversation!r}, step {step.number}"
        call = transport.call(
            asked, step.history(), lambda model: model.bind_tools(given) if given else model
        )
        return await transport.arun(call, {})

    return predict


def _of_graph(app: Any) -> Predict:
    """A compiled graph whose state has the channel `messages`, run until its first action, so that no tool runs.

    That is the first new message of the agent at the top level. Where a graph inside it is about to run a tool before
    such a message, the call is refused before the tool starts, and counts as the action; so does one that an interrupt
    holds back. Code of a node that is no LangChain tool cannot be held back. The record's instructions and tools are
    not used, nor the app's checkpointer: each step is a thread of its own.
    """
    app = app.copy({"checkpointer": None})

    async def predict(step: TurnStep) -> Action:
        history = step.history(instructions=False)
        first = _FirstAction({message.id for message in history})
        with suppress(_HeldBackError):
            await app.ainvoke({"messages": history}, {"callbacks": [first]})
        return first.action

    return predict


class _HeldBackError(BaseException):
    """Stops the agent at its first action; a BaseException, so that no error handler goes on."""


class _FirstAction(BaseCallbackHandler):
    """Notes the action that a graph takes, and stops it there, at the latest when a tool is about to start."""

    raise_error = True
    run_inline = True

    def __init__(self, known: set[str | None]) -> None:
        self.action = Action()
        self._known = known
        self._app: UUID | None = None

    def on_chain_start(self, *_: Any, run_id: UUID, **kwargs: Any) -> None:
        """The app begins, or something in it."""
        self._app = self._app or run_id

    def on_chain_end(self, outputs: Any, *, parent_run_id: UUID | None = None, **kwargs: Any) -> None:
        """A node is done, or something in it; inside a node, only a call is known to be no draft."""
        for message in _messages(outputs):
            if not isinstance(message, AIMessage) or (message.id and message.id in self._known):
                continue
            action = Action.of(message)
            is_top = parent_run_id == self._app
            if action.kind == "call" or (is_top and action.kind == "answer"):
                self.action = action
                if is_top:
                    raise _HeldBackError

    def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
        """A tool is about to run."""
        if not self.action.calls:
            given = kwargs.get("inputs")
            arguments = given if isinstance(given, Mapping) else {"input": input_str}
            name = (serialized or {}).get("name") or "tool"
            self.action = Action(calls=(ToolCall(tool=name, arguments=dict(arguments)),))
        raise _HeldBackError


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
