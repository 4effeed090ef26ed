"""The agents that can be evaluated: a chat model, a compiled graph, or any function of the history."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, run_in_executor

from arq_graph.errors import InputError, ToolError
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.turn_level.graphs import GraphAgent, is_graph
from arq_graph.milestones.turn_level.history import to_messages, tool_definitions
from arq_graph.milestones.turn_level.steps import TurnStep
from arq_graph.models.resolve import chat_model
from arq_graph.reasoning.replies import refusal_of
from arq_graph.reasoning.transport import Steps, Transport

BACKOFF = 0.5

History = list[BaseMessage]
Predict = Callable[[History], Any]


class Predictor(Protocol):
    """Gives an agent's next action; whatever `action_of` understands."""

    def prepare(self, step: TurnStep) -> Any:
        """What is asked for a step."""

    def predict(self, asked: Any) -> Any:
        """The next action."""

    async def apredict(self, asked: Any) -> Any:
        """The next action, without blocking."""


def predictor(agent: Any, *, tools: Any = None, timeout: float = 60.0) -> Predictor:
    """The predictor of an agent.

    Args:
        agent: A chat model or its name, a compiled graph, or a runnable or function that takes the history as
            LangChain messages and gives an `Action`, a message or a text.
        tools: The tools that are bound to a chat model; None: those of each record.
        timeout: Seconds that a chat model may take for one step, retries included; more than 0.

    Raises:
        InputError: It is none of these, or the name means no model.
    """
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
        f"{type(agent).__name__} is no agent: give a chat model or its name, a compiled graph, or a function of the "
        "history"
    )


@dataclass(frozen=True)
class Call:
    """The model call of a step: what is asked, for messages; the prompt; the tools as the model is told of them."""

    asked: str
    messages: History
    tools: list[dict[str, Any]]


class ModelAgent:
    """Predicts with a chat model: the record's instructions as system message, the history, the tools bound.

    One call a step; lost connections and overload are tried again within `timeout`.

    Args:
        model: The chat model.
        tools: What is bound; None: the tools of each record.
        timeout: Seconds for one step.
    """

    def __init__(self, model: BaseChatModel, tools: Any, timeout: float) -> None:
        self._tools = tools
        self._transport = Transport(model, timeout=timeout, backoff=BACKOFF)
        self._definitions: tuple[Transcript, list[dict[str, Any]]] | None = None

    def prepare(self, step: TurnStep) -> Call:
        """The model call of a step.

        Raises:
            ToolError: A tool cannot be described.
            InputError: The record's tools cannot be read.
        """
        messages = to_messages(step.history, step.transcript.instructions)
        asked = f"conversation {step.conversation!r}, step {step.number}"
        if self._definitions is None or self._definitions[0] is not step.transcript:
            self._definitions = (step.transcript, tool_definitions(step.transcript, self._tools))
        return Call(asked, messages, self._definitions[1])

    def predict(self, asked: Call) -> Any:
        """The model's next action.

        Raises:
            ToolError: The model takes no tools.
        """
        return self._transport.run(self._steps(asked), {})

    async def apredict(self, asked: Call) -> Any:
        """The model's next action, without blocking."""
        return await self._transport.arun(self._steps(asked), {})

    def _steps(self, call: Call) -> Steps[Any]:
        """Ask once; a refusal is an answer in the words of the refusal."""

        def bind(model: BaseChatModel) -> Any:
            return model.bind_tools(call.tools) if call.tools else model

        try:
            message = yield from self._transport.call(call.asked, call.messages, bind)
        except NotImplementedError:
            raise ToolError(
                f"{type(self._transport.model).__name__} takes no tools: take a model that does, or give a function"
            ) from None
        if isinstance(message, AIMessage) and not message.text and (refusal := refusal_of(message)):
            return refusal if not message.tool_calls else message
        return message


class FunctionAgent:
    """Predicts with a function of the history; the record's instructions come first, as a system message.

    Args:
        function: Takes a list of LangChain messages; may be async where it is awaited.
        afunction: The same without blocking; None runs `function` in a thread.
    """

    def __init__(
        self, function: Predict, afunction: Callable[[History], Awaitable[Any]] | None = None
    ) -> None:
        self._function = function
        self._afunction = afunction

    def prepare(self, step: TurnStep) -> History:
        """The history of a step."""
        return to_messages(step.history, step.transcript.instructions)

    def predict(self, asked: History) -> Any:
        """What the function gives.

        Raises:
            ToolError: The function is async.
        """
        given = self._function(asked)
        if inspect.iscoroutine(given):
            given.close()
            raise ToolError("the agent is async only: use aevaluate_turns")
        return given

    async def apredict(self, asked: History) -> Any:
        """What the function gives, without blocking."""
        if self._afunction is not None:
            return await self._afunction(asked)
        # LangChain's way, for a StopIteration in a thread would leave asyncio waiting for ever.
        given = await run_in_executor(None, self._function, asked)
        return await given if inspect.isawaitable(given) else given
