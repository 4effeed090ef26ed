"""Who can be evaluated: a chat model, a compiled graph, a function of the history, or predictions of a file."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, run_in_executor

from arq_graph.errors import InputError, ToolError
from arq_graph.milestones.store import is_head
from arq_graph.milestones.tool_schemas import tool_definitions
from arq_graph.milestones.transcripts.records import read_records
from arq_graph.milestones.turn_level.actions import Action, action_of
from arq_graph.milestones.turn_level.graphs import GraphAgent, is_graph
from arq_graph.milestones.turn_level.history import to_messages
from arq_graph.milestones.turn_level.steps import TurnStep
from arq_graph.models.resolve import chat_model
from arq_graph.reasoning.replies import refusal_of
from arq_graph.reasoning.transport import Steps, Transport

BACKOFF = 0.5

Predict = Callable[[list[BaseMessage]], Any]


class Predictor(Protocol):
    """Gives an agent's next action; whatever `action_of` understands, or None where there is none."""

    def predict(self, step: TurnStep) -> Any:
        """The action at a step."""

    async def apredict(self, step: TurnStep) -> Any:
        """The action at a step, without blocking."""


def predictor(agent: Any, *, tools: Any = None, timeout: float = 60.0) -> Predictor:
    """The predictor of an agent; arguments and errors are those of `evaluate_turns`."""
    if isinstance(agent, Path):
        return RecordedPredictions(agent)
    if isinstance(agent, str):
        agent = chat_model(agent)
    if isinstance(agent, BaseChatModel):
        return ModelAgent(agent, tools, timeout)
    if is_graph(agent):
        return GraphAgent(agent)
    if isinstance(agent, Runnable):
        return FunctionAgent(agent.invoke, agent.ainvoke)
    if callable(agent):
        return FunctionAgent(agent)
    raise InputError(
        f"{type(agent).__name__} is no agent: give a chat model or its name, a compiled graph, a function of the "
        "history, or the `Path` of a file of predictions"
    )


class ModelAgent:
    """Predicts with a chat model: the record's instructions as system message, the history, the tools bound.

    One call a step; lost connections and overload are tried again within `timeout`.
    """

    def __init__(self, model: BaseChatModel, tools: Any, timeout: float) -> None:
        self._tools = None if tools is None else openai_definitions(tools)
        self._transport = Transport(model, timeout=timeout, backoff=BACKOFF)

    def predict(self, step: TurnStep) -> Any:
        """The model's next action; a `ToolError` where it takes no tools."""
        return self._transport.run(self._steps(step), {})

    async def apredict(self, step: TurnStep) -> Any:
        """The model's next action, without blocking."""
        return await self._transport.arun(self._steps(step), {})

    def _steps(self, step: TurnStep) -> Steps[Any]:
        """Ask once; a refusal is an answer in the words of the refusal."""
        tools = self._recorded_tools(step) if self._tools is None else self._tools

        def bind(model: BaseChatModel) -> Any:
            return model.bind_tools(tools) if tools else model

        asked = f"conversation {step.conversation!r}, step {step.number}"
        messages = to_messages(step.history, step.transcript.instructions)
        try:
            message = yield from self._transport.call(asked, messages, bind)
        except NotImplementedError:
            raise ToolError(
                f"{type(self._transport.model).__name__} takes no tools: take a model that does, or give a function"
            ) from None
        if isinstance(message, AIMessage) and not message.text and not message.tool_calls:
            return refusal_of(message) or message
        return message

    def _recorded_tools(self, step: TurnStep) -> list[dict[str, Any]]:
        recorded = step.transcript.extra.get("tools")
        given = recorded if isinstance(recorded, list) and recorded else step.transcript.tools
        try:
            return openai_definitions(given)
        except ToolError as error:
            raise InputError(f"the record's `tools`: {error}") from error


def openai_definitions(tools: Any) -> list[dict[str, Any]]:
    """Tools as a model is told of them, as OpenAI definitions, each name once.

    Args:
        tools: OpenAI definitions, LangChain tools or functions, or JSON schemas of the arguments by name.

    Raises:
        ToolError: A tool has no name or nothing but a name, or cannot be described.
    """
    if not isinstance(tools, Mapping) and any(isinstance(tool, str) for tool in tools):
        raise ToolError(
            "a name alone tells a model nothing of a tool; give OpenAI tool definitions, or schemas by name"
        )
    anything = {"type": "object", "properties": {}}
    functions = [
        {
            **each,
            "description": each.get("description", ""),
            "parameters": anything | each.get("parameters", {}),
        }
        for each in tool_definitions(tools)
    ]
    return [{"type": "function", "function": function} for function in functions]


class FunctionAgent:
    """Predicts with a function of the history; the record's instructions come first, as a system message."""

    def __init__(
        self, function: Predict, afunction: Callable[[list[BaseMessage]], Awaitable[Any]] | None = None
    ) -> None:
        self._function = function
        self._afunction = afunction

    def predict(self, step: TurnStep) -> Any:
        """What the function gives; a `ToolError` where it is async."""
        given = self._function(to_messages(step.history, step.transcript.instructions))
        if inspect.iscoroutine(given):
            given.close()
            raise ToolError("the agent is async only: use aevaluate_turns")
        return given

    async def apredict(self, step: TurnStep) -> Any:
        """What the function gives, without blocking."""
        history = to_messages(step.history, step.transcript.instructions)
        if self._afunction is not None:
            return await self._afunction(history)
        # LangChain's way, for a StopIteration in a thread would leave asyncio waiting for ever.
        given = await run_in_executor(None, self._function, history)
        return await given if inspect.isawaitable(given) else given


class RecordedPredictions:
    """Predictions that were recorded elsewhere, one a line of a JSON Lines file; see `evaluate_turns`.

    A file of `results` is read too; its steps without a prediction are left out.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._actions: dict[tuple[str, int], Action] = {}
        for number, line in enumerate(read_records(file), start=1):
            place = f"{file}: line {number}"
            if not isinstance(line, Mapping):
                why = line if isinstance(line, InputError) else "it is no JSON object"
                raise InputError(f"{place}: {why}")
            if is_head(line) or ("predicted" in line and line["predicted"] is None):
                continue
            key = _key(line, place)
            if key in self._actions and "predicted" not in line:
                raise InputError(f"{place}: step {key[1]} of conversation {key[0]!r} is predicted twice")
            try:
                self._actions[key] = action_of(line.get("predicted", line))
            except InputError as error:
                raise InputError(f"{place}: {error}") from None

    def predict(self, step: TurnStep) -> Action | None:
        """What the file says of a step; None where it leaves it out."""
        return self._actions.get(step.key)

    async def apredict(self, step: TurnStep) -> Action | None:
        """What the file says of a step; None where it leaves it out."""
        return self.predict(step)

    def check(self, steps: set[tuple[str, int]]) -> None:
        """Raise an `InputError` where a prediction belongs to none of the steps."""
        if stray := next((key for key in self._actions if key not in steps), None):
            raise InputError(
                f"{self._file} predicts step {stray[1]} of conversation {stray[0]!r}, but the dataset has no such "
                "step: are they of the same dataset?"
            )


def _key(line: Mapping[str, Any], place: str) -> tuple[str, int]:
    id, step = line.get("id"), line.get("step")
    if isinstance(id, int) and not isinstance(id, bool):
        id = str(id)
    if not isinstance(id, str) or not isinstance(step, int) or isinstance(step, bool):
        raise InputError(f"{place}: it needs `id`, the conversation's, and `step`, a number from 1")
    return id, step
