"""The steps of a turn as LangChain middleware, for an agent of `create_agent` that follows its guidelines.

The agent's own model decides and writes, as it always does. Before it is asked, the guidelines are matched; the calls
that it proposes pass the gate, as those of any strategy do; and what it writes is a draft, which the reviser revises.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Annotated, Any

from langchain_core.runnables import Runnable, RunnableParallel
from langchain_core.runnables.config import (
    get_async_callback_manager_for_config,
    get_callback_manager_for_config,
    set_config_context,
)
from langgraph.runtime import Runtime
from langgraph.types import Command
from typing_extensions import TypedDict  # Pydantic needs this one before Python 3.12

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AgentState
from arq_graph.apps.agents import models_by_step
from arq_graph.apps.graph import collect_channels
from arq_graph.apps.model_call import DRAFT_CHANNEL, RESPONSE_KEY, ModelCall
from arq_graph.apps.settings import Matching, Revising, Summarizing, make_summarizer, require_settings
from arq_graph.nodes.agent_node import require_free_composition
from arq_graph.nodes.agreement import Agrees
from arq_graph.nodes.approval import CallApprover
from arq_graph.nodes.checks import InputChecker
from arq_graph.nodes.early_reply import EarlyReply
from arq_graph.nodes.guideline_matcher import GuidelineMatcher
from arq_graph.nodes.knowledge_retriever import KnowledgeRetriever
from arq_graph.nodes.node import Update
from arq_graph.nodes.reply_node import ReplyNode
from arq_graph.nodes.takeover import TakeoverRecorder
from arq_graph.nodes.tool_node import ToolCallGuard
from arq_graph.reasoning.asking import hide_config
from arq_graph.reasoning.blueprint import Mode
from arq_graph.reasoning.reasoner import ModelLike

try:
    from langchain.agents.middleware import (
        AgentMiddleware,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
        hook_config,
    )
    from langchain.agents.middleware.types import OmitFromInput
except ImportError as error:
    raise ImportError(
        "arq_graph.middleware is for LangChain's create_agent, which is not installed or too old: "
        'pip install "arq_graph[middleware]"'
    ) from error

__all__ = ["GuidelineMiddleware"]

_CHANNELS = collect_channels(AgentState)


def _hide_from_input(channel_type: Any) -> Any:
    """Return the type of a channel that callers of the agent cannot write."""
    parts: tuple[Any, ...] = (channel_type, OmitFromInput)
    parts += getattr(channel_type, "__metadata__", ())  # a reducer has to be last
    return Annotated[parts]


_HIDDEN_CHANNELS = {name: _hide_from_input(channel_type) for name, channel_type in _CHANNELS.items()}
GuidedState = TypedDict("GuidedState", _HIDDEN_CHANNELS, total=False)  # type: ignore[misc]


class GuidelineMiddleware(ToolCallGuard, AgentMiddleware[Any, Any, Any]):
    """Guidelines, gate, agreement and revised replies for an agent of LangChain's `create_agent`.

    `create_agent(model, middleware=[GuidelineMiddleware(model, agent)])` is all it takes: the middleware brings the
    specification's tools with it. Other tools, the system prompt and other middleware keep working as before. List it
    after those that change messages, the prompt or the model, so that it sees the request as they leave it.

    Args:
        model: The model that matches and revises: a chat model, a model string such as `openai:gpt-4o`, a `Reasoner`,
            or one of these for each of `matcher` and `message`, and if it is another than that of `message`, for
            `summary`. The agent's own model, which decides and writes, is that of `create_agent`.
        agent: The specification.
        matching: How guidelines are matched: `Matching(batch_size=3)`.
        revising: How what the model writes is revised until it follows the rules: `Revising(extra_revisions=2)`. None:
            it is sent unchanged, and streams while none of the specification's tools is granted.
        agrees: A function of the customer's message and the question that says what else is a yes; see `ToolCaller`.
        mode: `arq`, `cot` or `direct`; None is `arq`, or what a `Reasoner` was set to.
        history_tokens: How long the history may be that the matcher and the reviser are shown; see
            `create_guided_agent`. Your agent's own model is shown all messages.
        summary: How a longer one is summarised; see there.

    Raises:
        InputError: `agent` isn't an `Agent`, `model` lacks a step, or a setting is out of its range.
        PromptError: A prompt cannot be read or rendered.
        ReasoningError: When run: a model gave no answer.
    """

    state_schema = GuidedState

    def __init__(
        self,
        model: ModelLike | Mapping[str, ModelLike],
        agent: Agent,
        *,
        matching: Matching = Matching(),
        revising: Revising | None = Revising(),
        agrees: Agrees | None = None,
        mode: Mode | None = None,
        history_tokens: int = 16_000,
        summary: Summarizing | None = Summarizing(),
    ) -> None:
        super().__init__(agent)
        require_settings("matching", matching, Matching)
        models = models_by_step(model, ("matcher", "message"))
        shared: dict[str, Any] = {"mode": mode, "history_tokens": history_tokens}
        self._matcher: GuidelineMatcher = matching.make_node(
            models["matcher"], agent, reads=_CHANNELS, **shared
        )
        self._before_model: Runnable[Any, Any] = self._matcher
        beside: dict[str, Any] = {}
        if agent.knowledge:
            beside["knowledge"] = KnowledgeRetriever(agent)
        if agent.select_checks("input"):
            beside["check_input"] = InputChecker(agent)
        if beside:
            self._before_model = RunnableParallel(**beside, match=self._matcher) | _join_updates
        self._early_reply = EarlyReply(agent)
        self._takeover_recorder = TakeoverRecorder(agent)
        self._reviser: ReplyNode[Any] | None = None
        if revising is None:
            require_free_composition(agent)
        else:
            require_settings("revising", revising, Revising)
            self._reviser = revising.make_node(models["message"], agent, draft_key=DRAFT_CHANNEL, **shared)
        self._summarizer = make_summarizer(summary, models["summary"], agent, **shared)
        self._model_call = ModelCall(self._matcher.reasoner, agent, agrees=agrees)
        self._approval = CallApprover(agent)
        self.tools = []
        for tool in agent.toolbox.values():
            # Otherwise a result would be sent instead of a reply that follows the guidelines.
            if tool.return_direct:
                tool = tool.model_copy(update={"return_direct": False})
            self.tools.append(tool)

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        """Match the guidelines; once tools have run, those that a result could change.

        At the same time, once a turn, the agent's knowledge is searched, and its input checks are run. The turn ends
        here if one of them fails, if `hand_over` was called, or while a person has the conversation.
        """
        return self._end_early(state) or self._admit(state, self._before_model.invoke(state))

    @hook_config(can_jump_to=["end"])
    async def abefore_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        """Do the same without blocking."""
        return self._end_early(state) or self._admit(state, await self._before_model.ainvoke(state))

    def _admit(self, state: Any, update: Update) -> Update:
        return update | self._end_early({**state, **update})

    def _end_early(self, state: Any) -> Update:
        """Return the update that ends the turn without a model; empty if nothing is in its way."""
        if state.get("takeover") is not None:
            return self._takeover_recorder.invoke(state) | {"jump_to": "end"}
        update = self._early_reply.invoke(state)
        return update | {"jump_to": "end"} if update else {}

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ExtendedModelResponse[Any]:
        """Make the call that the customer has agreed to, or ask the model and check the calls that it proposes."""
        revise = self._reviser.invoke if self._reviser else None
        model_call = self._model_call.for_request(request, partial(_ask_model, handler), revise)
        return _make_response(model_call.invoke(request.state))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ExtendedModelResponse[Any]:
        """Do the same without blocking."""
        revise = self._reviser.ainvoke if self._reviser else None
        model_call = self._model_call.for_request(request, partial(_aask_model, handler), revise)
        return _make_response(await model_call.ainvoke(request.state))

    def after_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Have an operator decide, in an interrupt, on the calls that the specification has them confirm."""
        return self._approval.invoke(state) or None

    async def aafter_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do the same: nothing in it blocks."""
        return self.after_model(state, runtime)

    def after_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Summarise the beginning of the conversation if it has become too long."""
        if self._summarizer is None or state.get("takeover") is not None:
            return None
        return self._summarizer.invoke(state)

    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Summarise it without blocking."""
        if self._summarizer is None or state.get("takeover") is not None:
            return None
        return await self._summarizer.ainvoke(state)


def _join_updates(updates: Mapping[str, Update]) -> Update:
    joined: Update = {}
    for update in updates.values():
        joined |= update
    return joined


def _ask_model(
    handler: Callable[[ModelRequest[Any]], ModelResponse[Any]], is_hidden: bool, request: ModelRequest[Any]
) -> ModelResponse[Any]:
    """Call the model, hidden from users' streams or not, whichever model other middleware puts in its place."""
    if not is_hidden:
        return handler(request)
    config = hide_config(None, get_callback_manager_for_config)
    with set_config_context(config) as context:
        return context.run(handler, request)


async def _aask_model(
    handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    is_hidden: bool,
    request: ModelRequest[Any],
) -> ModelResponse[Any]:
    """Do the same without blocking."""
    if not is_hidden:
        return await handler(request)

    async def ask() -> ModelResponse[Any]:
        return await handler(request)

    config = hide_config(None, get_async_callback_manager_for_config)
    with set_config_context(config) as context:
        return await asyncio.create_task(ask(), context=context)


def _make_response(update: Update) -> ExtendedModelResponse[Any]:
    messages = update.pop("messages")
    response = ModelResponse(result=messages, structured_response=update.pop(RESPONSE_KEY, None))
    return ExtendedModelResponse(response, Command(update=update))
