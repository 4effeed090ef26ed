"""Asking an agent for its next action: a chat model, a compiled graph, or a function of the history."""

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
from arq_graph.milestones.turn_level.turn_steps import TurnStep
from arq_graph.models.resolve import BoundModel, make_chat_model
from arq_graph.reasoning.steps import aperform_steps
from arq_graph.reasoning.transport import Transport

TIMEOUT = 60.0
"""The seconds that a chat model may take for one step, retries included."""
BACKOFF = 0.5

Predictor = Callable[[TurnStep], Awaitable[Any]]
"""Returns an agent's next action at a step: whatever `Action.from_output` takes."""


def make_predictor(agent: Any, *, tools: Any = None) -> Predictor:
    """Return the function that asks an agent; arguments and errors are those of `aevaluate_turns`."""
    if isinstance(agent, str):
        agent = make_chat_model(agent)
    if isinstance(agent, BaseChatModel):
        definitions = None if tools is None else make_openai_definitions(tools)
        return _make_model_predictor(agent, definitions)
    if hasattr(type(agent), "checkpointer"):  # a compiled graph, recognised without importing langgraph
        return _make_graph_predictor(agent)
    if not callable(agent) and not isinstance(agent, Runnable):
        raise InputError(
            f"{type(agent).__name__} isn't an agent: give a chat model or its name, a compiled graph, or a function "
            "of the history"
        )
    runnable: Runnable[Any, Any] = agent if isinstance(agent, Runnable) else RunnableLambda(agent)
    return lambda step: runnable.ainvoke(step.build_history())


def make_openai_definitions(tools: Any) -> list[dict[str, Any]]:
    """Return tools as OpenAI definitions, each name once.

    Raises:
        ToolError: A tool is only named, or can't be described.
    """
    if not isinstance(tools, Mapping) and any(isinstance(tool, str) for tool in tools):
        raise ToolError(
            "a name alone doesn't describe a tool to a model; give OpenAI tool definitions, or schemas by name"
        )
    definitions = []
    for tool in get_tool_definitions(tools):
        parameters = {"type": "object", "properties": {}} | tool.get("parameters", {})
        function = {"description": "", **tool, "parameters": parameters}
        definitions.append({"type": "function", "function": function})
    return definitions


def _make_model_predictor(model: BaseChatModel, tools: list[dict[str, Any]] | None) -> Predictor:
    """Make one call a step with the tools bound, repeated after lost connections and overload."""
    transport = Transport(BoundModel(model), timeout=TIMEOUT, backoff=BACKOFF)

    async def predict(step: TurnStep) -> Any:
        step_tools = tools
        if step_tools is None:
            recorded_tools = step.transcript.extra.get("tools") or step.transcript.tools
            step_tools = make_openai_definitions(recorded_tools)
        name = f"conversation {step.conversation!r}, step {step.number}"

        def bind(model: BaseChatModel) -> Any:
            runnable = model.bind_tools(step_tools) if step_tools else model
            return runnable, {}

        requests = transport.call(name, step.build_history(), bind)
        return await aperform_steps(requests, lambda request: request.asend({}))

    return predict


def _make_graph_predictor(app: Any) -> Predictor:
    """Run a compiled graph whose state has the channel `messages` until its first action, so that no tool runs.

    That is the first new message of the agent at the top level. If a graph inside it is about to run a tool before
    such a message, the call is refused before the tool starts, and counts as the action; so does one that an interrupt
    stops. A node's own code that isn't a LangChain tool can't be stopped. The record's instructions and tools are not
    used, nor the app's checkpointer: each step is a thread of its own.
    """
    app = app.copy({"checkpointer": None})

    async def predict(step: TurnStep) -> Action:
        history = step.build_history(with_instructions=False)
        recorder = _FirstActionRecorder({message.id for message in history})
        with suppress(_StoppedAtActionError):
            await app.ainvoke({"messages": history}, {"callbacks": [recorder]})
        return recorder.action

    return predict


class _StoppedAtActionError(BaseException):
    """Stops the agent at its first action; a BaseException, so that no error handler resumes it."""


class _FirstActionRecorder(BaseCallbackHandler):
    """Records a graph's first action and stops the graph there, at the latest when a tool is about to start."""

    raise_error = True
    run_inline = True

    def __init__(self, history_ids: set[str | None]) -> None:
        self.action = Action()
        self._history_ids = history_ids
        self._app_run_id: UUID | None = None

    def on_chain_start(self, *_: Any, run_id: UUID, **kwargs: Any) -> None:
        """Remember the first run, which is the app's."""
        self._app_run_id = self._app_run_id or run_id

    def on_chain_end(self, outputs: Any, *, parent_run_id: UUID | None = None, **kwargs: Any) -> None:
        """Record the action of a node, or of something in it; words inside a node may be a draft."""
        for message in _iterate_messages(outputs):
            if not isinstance(message, AIMessage) or (message.id and message.id in self._history_ids):
                continue
            action = Action.from_output(message)
            is_node_of_app = parent_run_id == self._app_run_id
            if action.kind == "call" or (is_node_of_app and action.kind == "answer"):
                self.action = action
                if is_node_of_app:
                    raise _StoppedAtActionError

    def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
        """Record the call of a tool that is about to run, and stop it."""
        if not self.action.calls:
            arguments = kwargs.get("inputs")
            if not isinstance(arguments, Mapping):
                arguments = {"input": input_str}
            name = (serialized or {}).get("name") or "tool"
            self.action = Action(calls=(ToolCall(tool=name, arguments=dict(arguments)),))
        raise _StoppedAtActionError


def _iterate_messages(update: Any) -> Iterator[BaseMessage]:
    if isinstance(update, BaseMessage):
        yield update
    elif isinstance(update, Mapping):
        yield from _iterate_messages(update.get("messages"))
    elif isinstance(update, list | tuple):
        for part in update:
            yield from _iterate_messages(part)
    elif hasattr(update, "update"):  # a Command
        yield from _iterate_messages(update.update)
