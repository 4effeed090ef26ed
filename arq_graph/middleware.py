"""The steps of a turn as LangChain middleware, for an agent of `create_agent` that follows its guidelines.

The agent's own model decides and writes, as it always does. Before it is asked, the guidelines are matched; the calls
that it proposes pass the gate, as those of any strategy do; and what it writes is a draft, which the reviser revises.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Annotated, Any, Self, get_type_hints

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableBinding
from langgraph.constants import TAG_NOSTREAM
from langgraph.runtime import Runtime
from langgraph.types import Command
from typing_extensions import TypedDict  # Pydantic needs this one before Python 3.12

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AgentState, PendingCall, ToolInsight
from arq_graph.apps.agents import models_by_step
from arq_graph.apps.settings import Matching, Revising
from arq_graph.errors import require_type
from arq_graph.nodes.approval import ApproveCalls
from arq_graph.nodes.blueprint_node import Steps
from arq_graph.nodes.channels import Update
from arq_graph.nodes.confirmation import AgreementOutcome, Agrees, ask_for_confirmation
from arq_graph.nodes.events import ToolsDecided
from arq_graph.nodes.gate import Gate, get_active_scores
from arq_graph.nodes.guideline_matcher import GuidelineMatcher
from arq_graph.nodes.message_reviser import MessageReviser
from arq_graph.nodes.proposed_calls import merge_insights
from arq_graph.nodes.spec_sections import describe_agent, describe_guideline, describe_variables
from arq_graph.nodes.strategy import Strategy
from arq_graph.nodes.tool_node import ToolGate
from arq_graph.reasoning.blueprint import Mode
from arq_graph.reasoning.reasoner import ModelLike

try:
    from langchain.agents.middleware import (
        AgentMiddleware,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
    )
    from langchain.agents.middleware.types import OmitFromInput
except ImportError as error:
    why = "arq_graph.middleware is for LangChain's create_agent, which is not installed or too old"
    raise ImportError(f'{why}: pip install "arq_graph[middleware]"') from error

__all__ = ["GuidelineMiddleware"]

MAX_ASKS = 2
"""How often the model is asked in one step, where nothing but refused calls comes."""

DRAFT, ANSWER = "draft", "structured_response"

_CHANNELS = get_type_hints(AgentState, include_extras=True)
del _CHANNELS["messages"]

# Whoever calls the agent cannot write them. A reducer has to stand last.
_STATE = {
    name: Annotated[(kind, OmitFromInput, *getattr(kind, "__metadata__", ()))]
    for name, kind in _CHANNELS.items()
}
GuidedState = TypedDict("GuidedState", _STATE, total=False)  # type: ignore[misc]


class AgentsModel(Strategy):
    """A call of the agent's own model as a strategy: it proposes by tool calls, and its text is a draft.

    Made for each call (`of`): `ask` calls the model, `revise` runs the reviser; both may be async.
    """

    module = "agent"
    files = "agent_model"

    request: ModelRequest[Any]
    ask: Callable[[ModelRequest[Any]], Any]
    revise: Callable[[Any], Any] | None

    def __init__(self, model: ModelLike, agent: Agent, *, agrees: Agrees | None = None) -> None:
        super().__init__(model, agent, agrees=agrees)
        self.head = self.template.render("head", describe_agent(agent))

    def of(self, request: ModelRequest[Any], ask: Any, revise: Any) -> Self:
        """The strategy of one call."""
        made = copy(self)
        made.request, made.ask, made.revise = request, ask, revise
        return made

    def decide(self, gate: Gate, outcome: AgreementOutcome) -> Steps:
        """Ask the model, make the calls that pass the gate, and where none is left, reply."""
        earlier = gate.state.read_turn_records("tool_insights", ToolInsight, gate.state.turn)
        taken_up = [each for each in (*outcome.insights, *earlier) if each.kind == "confirm"]
        request, proposed = self._told(gate, outcome, earlier, taken_up), list[ToolInsight]()
        for _ in range(MAX_ASKS):
            response = yield partial(self.ask, request)
            message = next((each for each in response.result if isinstance(each, AIMessage)), AIMessage(""))
            verdicts, dropped = self._held(gate, outcome, message)
            tools = {each.tool for each in verdicts}  # the newest word on each tool counts
            proposed = [*(each for each in proposed if each.tool not in tools), *verdicts]
            waiting = [each for each in verdicts if each.kind == "confirm"]
            calls = [call for call in message.tool_calls if call["id"] not in dropped]
            if calls or waiting or not dropped:
                break
            told = [ToolMessage(why, tool_call_id=id or "", status="error") for id, why in dropped.items()]
            request = request.override(messages=[*request.messages, message, *told])
        waiting += [each for each in taken_up if each in outcome.insights or each.tool not in tools]
        below = list({self.tools[each.tool].make_key(each.arguments): each for each in waiting}.values())
        if below and response.structured_response is not None:
            calls, response = [], ModelResponse([message])  # code's question stands in the answer's place
        runs = [each for each in verdicts if each.kind == "run"]
        decided = merge_insights(outcome, proposed, runs, below, asks=not calls)
        gate.state.emit(ToolsDecided(decisions=tuple(decided)))
        update = self.make_update(gate, decided)
        if calls or response.structured_response is not None or not (self.revise or below or dropped):
            others = [each for each in response.result if each is not message]
            made = [self._calling(message, dropped, bool(calls)), *others]
            return {**update, self.messages_key: made, ANSWER: response.structured_response}
        if self.revise:
            written = yield partial(self.revise, {**gate.state.state, **update, DRAFT: message.text.strip()})
        else:
            text = message.text or ("" if below else self.agent.fallback)
            reply, agreed, asked = ask_for_confirmation(self.agent, gate.state, text, below)
            gate.state.emit(asked)
            written = {self.messages_key: [reply], **agreed}
        (reply,) = written[self.messages_key]
        of_the_model = {
            "name": message.name,
            "usage_metadata": message.usage_metadata,
            "response_metadata": {**_without(message.response_metadata, "id"), **reply.response_metadata},
        }
        return {**update, **written, self.messages_key: [reply.model_copy(update=of_the_model)]}

    def _told(
        self,
        gate: Gate,
        outcome: AgreementOutcome,
        earlier: Sequence[ToolInsight],
        taken_up: Sequence[ToolInsight],
    ) -> ModelRequest[Any]:
        """The request with the tools that may be called, the rules behind the caller's prompt, and a silent model."""
        request, open_now = self.request, outcome.pending.values()
        offered, below = {*gate.granted, *(each.tool for each in open_now)}, [*map(_shown, taken_up)]
        listed = {
            "needs_agreement": sorted(offered & self.agent.confirmed_by("customer")),
            "put_below_your_reply": below,
            "awaiting_agreement": [each for each in map(_shown, open_now) if each not in below],
            "refused": [
                {**_shown(each), "why": _why([each])}
                for each in (*outcome.insights, *earlier)
                if each.kind not in ("run", "confirm")
            ],
        }
        active = map(self.agent.guideline, get_active_scores(self.agent, gate.state))
        now = {
            "variables": describe_variables(self.agent, gate.state),
            "active_guidelines": [{**describe_guideline(each), "priority": each.priority} for each in active],
            "now": {name: value for name, value in listed.items() if value},
        }
        rules = f"{self.head}\n{self.template.render('tail', now)}"
        # What the specification does not name stays, and what a provider runs itself.
        hidden = self.tools.keys() - offered
        tools = [each for each in request.tools if getattr(each, "name", None) not in hidden]
        prompt = _behind(request.system_message, rules)
        # A draft streams only where none of our tools is offered: no call can be refused then, and no question follow.
        model = _unstreamed(request.model) if self.revise or offered or taken_up else request.model
        return request.override(system_message=prompt, tools=tools, model=model)

    def _held(
        self, gate: Gate, outcome: AgreementOutcome, message: AIMessage
    ) -> tuple[list[ToolInsight], dict[str | None, str]]:
        """The verdicts on the calls of a message, and by their ids, why calls are not made."""
        open_now = {
            self.tools[each.tool].make_key(each.arguments): id for id, each in outcome.pending.items()
        }
        verdicts: list[ToolInsight] = []
        dropped = {each["id"]: f"no JSON: {each['args']}" for each in message.invalid_tool_calls}
        seen: set[str] = set()
        for call in message.tool_calls:
            if (tool := self.tools.get(call["name"])) is None:
                continue  # it is somebody else's
            arguments, key = call["args"], tool.make_key(call["args"])
            if key in seen:
                verdict = [gate.make_insight(tool, "declined", arguments, "the same call was proposed twice")]
            elif key in open_now:
                verdict = outcome.ask_again(gate, [open_now[key]])
            else:
                verdict = gate.check(tool, arguments, tool.validate(arguments))
            seen.add(key)
            verdicts += verdict
            if verdict[0].kind != "run":
                dropped[call["id"]] = _why(verdict)
        return verdicts, dropped

    def _calling(self, message: AIMessage, dropped: Collection[str | None], has_calls: bool) -> AIMessage:
        """The model's message without the calls that are not made, and beside calls without an unrevised word."""
        is_silent = bool(self.revise) and has_calls
        if not dropped and not (is_silent and message.text):
            return message
        content: Any = "" if is_silent else message.content
        if not isinstance(message.content, str):
            content = [each for each in message.content if not _is_left_out(each, dropped, is_silent)]
        changed = {
            "content": content,
            "tool_calls": [call for call in message.tool_calls if call["id"] not in dropped],
            "additional_kwargs": _without(message.additional_kwargs, "tool_calls", "function_call"),
            "response_metadata": _without(message.response_metadata, "id"),
        }
        return message.model_copy(update=changed)


class GuidelineMiddleware(ToolGate, AgentMiddleware[Any, Any, Any]):
    """Guidelines, gate, agreement and revised replies for an agent of LangChain's `create_agent`.

    `create_agent(model, middleware=[GuidelineMiddleware(model, agent)])` is all it takes: the middleware brings the
    specification's tools with it. Other tools, the system prompt and other middleware keep working as before. List it
    behind those that change messages, the prompt or the model, so that it sees what they have made of a request.

    Args:
        model: The model that matches and revises: a chat model, a model string such as `openai:gpt-4o`, a `Reasoner`,
            or one of these for each of `matcher` and `message`. The agent's own model, which decides and writes, is
            that of `create_agent`.
        agent: The specification.
        matching: How guidelines are matched: `Matching(batch_size=3)`.
        revising: How what the model writes is revised until it follows the rules: `Revising(extra_revisions=2)`. None:
            it is sent unchanged, and streams while none of the specification's tools is granted.
        agrees: A function of the customer's message and the question that says what else is a yes; see `ToolCaller`.
        mode: `arq`, `cot` or `direct`; None is `arq`, or what a `Reasoner` was set to.

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
    ) -> None:
        super().__init__(agent)
        require_type("matching", matching, Matching, "give settings such as Matching(batch_size=3)")
        models = models_by_step(model, ("matcher", "message"))
        self._matcher: GuidelineMatcher = matching.make_node(
            models["matcher"], agent, mode=mode, reads=_CHANNELS
        )
        self._reviser: MessageReviser | None = None
        if revising is not None:
            require_type("revising", revising, Revising, "give settings such as Revising(extra_revisions=2)")
            self._reviser = revising.make_node(models["message"], agent, mode=mode, draft_key=DRAFT)
        self._model = AgentsModel(self._matcher.reasoner, agent, agrees=agrees)
        self._approval = ApproveCalls(agent)
        # No tool's result is sent in the place of a reply that follows the guidelines.
        tools, off = agent.toolbox.values(), {"return_direct": False}
        self.tools = [each.model_copy(update=off) if each.return_direct else each for each in tools]

    def before_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        """Match the guidelines; once tools have run, those that a result could change."""
        return self._matcher.invoke(state)

    async def abefore_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        """Match the guidelines, without blocking."""
        return await self._matcher.ainvoke(state)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ExtendedModelResponse[Any]:
        """Make the call that the customer has agreed to, or ask the model and hold what it proposes to the rules."""
        call = self._model.of(request, handler, self._reviser and self._reviser.invoke)
        return _response(call.invoke(request.state))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ExtendedModelResponse[Any]:
        """The same, without blocking."""
        call = self._model.of(request, handler, self._reviser and self._reviser.ainvoke)
        return _response(await call.ainvoke(request.state))

    def after_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Have an operator decide on the calls that the specification has them confirm, in an interrupt."""
        return self._approval.invoke(state) or None

    async def aafter_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The same: nothing in it blocks."""
        return self.after_model(state, runtime)


def _response(update: Update) -> ExtendedModelResponse[Any]:
    response = ModelResponse(result=update.pop("messages"), structured_response=update.pop(ANSWER, None))
    return ExtendedModelResponse(response, Command(update=update))


def _behind(prompt: SystemMessage | None, rules: str) -> SystemMessage:
    if prompt is None:
        return SystemMessage(rules)
    if isinstance(prompt.content, str):
        return prompt.model_copy(update={"content": f"{prompt.content}\n\n{rules}"})
    return prompt.model_copy(update={"content": [*prompt.content, {"type": "text", "text": rules}]})


class _Silent(RunnableBinding[Any, Any]):  # type: ignore[no-redef]
    """A model that LangChain chooses when it runs; its tokens stay out of the stream with tools bound to it, too."""

    def bind_tools(self, *given: Any, **settings: Any) -> Any:
        return self.model_copy(update={"bound": self.bound.bind_tools(*given, **settings)})  # type: ignore[attr-defined]


def _unstreamed(model: Any) -> Any:
    """The model, its tokens kept out of `stream_mode="messages"`."""
    if isinstance(model, BaseChatModel):
        return model.model_copy(update={"tags": [*(model.tags or ()), TAG_NOSTREAM]})
    return _Silent(bound=model, config={"tags": [TAG_NOSTREAM]})


def _shown(call: ToolInsight | PendingCall) -> dict[str, Any]:
    return {"tool": call.tool, "arguments": call.arguments}


def _why(verdict: Sequence[ToolInsight]) -> str:
    """Why a call is not made, as the model is told."""
    return "; ".join(
        f"{each.argument or 'the call'} is {each.kind}{each.problem and ': '}{each.problem}"
        for each in verdict
    )


def _without(said: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """What a provider said of a message, without its own form of the calls, or the id of what its server keeps."""
    return {name: value for name, value in said.items() if name not in names}


def _is_left_out(block: Any, dropped: Collection[str | None], is_silent: bool) -> bool:
    """Whether a block of a message is one of a call that is not made, or a word beside calls."""
    if isinstance(block, str) or block.get("type") == "text":
        return is_silent
    return (block.get("call_id") or block.get("id")) in dropped
