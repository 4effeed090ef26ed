"""The guided agent: match guidelines, call tools, revise the reply, as one compiled graph (ARQ paper, section 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_type_hints

from langchain_core.language_models import BaseChatModel
from langgraph.cache.base import BaseCache
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AgentState
from arq_graph.apps.live_milestones import add_beside, tracker_of
from arq_graph.apps.planning import Planning, add_steps, planner_of
from arq_graph.errors import InputError
from arq_graph.nodes.approval import ApproveCalls
from arq_graph.nodes.batching import BatchPolicy, default_batch_size
from arq_graph.nodes.blueprint_node import counted
from arq_graph.nodes.guideline_matcher import GuidelineMatcher, OnFailure
from arq_graph.nodes.message_reviser import MessageReviser, OnUnsatisfied
from arq_graph.nodes.message_schema import MessageBlueprint
from arq_graph.nodes.planner import DEFAULT_STEPS, Planner
from arq_graph.nodes.routing import route_approved, route_calls, route_round
from arq_graph.nodes.speaking.policies import Policy
from arq_graph.nodes.speaking.speaker import Speaker
from arq_graph.nodes.tool_caller import ToolCaller
from arq_graph.nodes.tool_node import guarded_tools
from arq_graph.reasoning.blueprint import Mode
from arq_graph.reasoning.reasoner import Reasoner

if TYPE_CHECKING:
    from arq_graph.milestones.graph import MilestoneGraph
    from arq_graph.milestones.judging.judge import AnyJudge

ModelLike = BaseChatModel | str | Reasoner
MODULES = ("matcher", "tools", "message", "planner", "speaker")
DEFAULT_ROUNDS = 3

PAPER_MODELS: Mapping[str, str] = {
    "matcher": "openai:gpt-4o-2024-08-06",
    "tools": "openai:gpt-4o-2024-11-20",
    "message": "openai:gpt-4o-2024-08-06",
}
"""The models of the ARQ paper's experiments (6.3), one per module."""


class Prompts(TypedDict, total=False):
    """Replacements for the shipped prompts: a path or a template's text, per module."""

    matcher: Any
    tools: Any
    message: Any
    planner: Any
    speaker: Any


def create_guided_agent(
    model: ModelLike | Mapping[str, ModelLike] | None,
    agent: Agent,
    *,
    planning: Planning | None = None,
    speaking: bool = False,
    policies: Sequence[str | Policy] | None = None,
    agrees: Callable[[str], bool] | None = None,
    preset: Literal["paper"] | None = None,
    mode: Mode | None = None,
    blueprint: type[MessageBlueprint] = MessageBlueprint,
    batch_size: BatchPolicy | int = default_batch_size,
    tools_per_call: int = 1,
    max_rounds: int | None = None,
    on_failure: OnFailure = "raise",
    on_unsatisfied: OnUnsatisfied = "send_last",
    milestones: MilestoneGraph | None = None,
    judge: AnyJudge | None = None,
    prompts: Prompts | None = None,
    max_history_tokens: int = 16_000,
    state_schema: type[AgentState] = AgentState,
    context_schema: type[Any] | None = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
    name: str | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile a guided agent.

    A turn: the guidelines are matched, the tools that active ones grant are decided on and run, what the results
    change is matched and decided again, and the reply is written and revised. No model is called to compile.

    With `planning` a planner stands in the place of the tool caller: it takes one call at a time, what the result
    changes is matched before the plan is refined, and its final answer is the draft of the reply. With `speaking` a
    speaker does: it thinks, calls one tool or says something, and what it says is the draft of the reply. What code
    holds of a `Speaker` in a chat, it holds of the reply too.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o` (`offline` needs no key), a `Reasoner`, or
            one of these per module: `{"matcher": …, "tools": …, "message": …}`, with `planner` in the place of
            `tools` where there is planning, and `speaker` where there is speaking.
        agent: The specification.
        planning: `pre-act` makes a multi-step plan, `react` takes a thought and an action at a time; None decides
            on all tools that active guidelines grant at once.
        speaking: Whether a speaker decides, one move at a time; not together with `planning`.
        policies: With speaking, the rules that are switched on: names of shipped ones, policies of your own; None:
            all shipped ones.
        agrees: With speaking, whether a message of the customer's is a plain yes; None: the shipped one, which reads
            English in detail, and the plain words of some thirty languages.
        preset: `paper` takes the models of the ARQ paper where `model` is None.
        mode: `arq`, `cot` or `direct`; None is `arq`, or what a `Reasoner` was set to.
        blueprint: What the reply is asked with; a subclass of `MessageBlueprint`.
        batch_size: How many guidelines one call judges: a number, or a function of how many there are.
        tools_per_call: How many candidate tools one call decides on; with planning or speaking it decides on all.
        max_rounds: How many times tools may be called in one turn: 3 unless given, and 8 with planning or speaking,
            where each time is one call.
        on_failure: What becomes of guidelines whose judgement failed.
        on_unsatisfied: What is sent when no acceptable reply comes.
        milestones: How far the conversation got is measured on this graph as it runs and kept in `progress`; with
            planning, the milestones that could come next are shown to the planner.
        judge: Whom to ask about milestones that code cannot decide; asked each time progress is measured. Without
            one they stay undecided.
        prompts: Replacements for the shipped prompts.
        max_history_tokens: Over it, the history in the prompts is cut to half.
        state_schema: `AgentState`, or a subclass with channels of your own.
        context_schema: The run's context, as for `StateGraph`.
        checkpointer: Keeps threads, as for `compile`.
        store: As for `compile`.
        cache: As for `compile`.
        name: The graph's name; the agent's unless given.

    Raises:
        SpecError: The milestone graph cannot be measured on.
        InputError: `model` lacks a module, `model` or `prompts` names one that does not exist, a setting is out of
            its range, or one of the speaker's is given without speaking.
        PromptError: A prompt cannot be read or rendered.
    """
    deciding = _deciding(planning, speaking, policies, agrees)
    planner = None if planning is None else planner_of(planning)
    otherwise = DEFAULT_ROUNDS if deciding == "tools" else DEFAULT_STEPS
    rounds = otherwise if max_rounds is None else counted("max_rounds", max_rounds)
    tracker = tracker_of(agent, milestones, judge)
    models = _per_module(model, preset, deciding)
    prompts = prompts or {}
    _check_modules(prompts)
    shared: dict[str, Any] = {"mode": mode, "max_history_tokens": max_history_tokens}
    reads = get_type_hints(state_schema, include_extras=True)
    matcher = GuidelineMatcher(
        models["matcher"],
        agent,
        batch_size=batch_size,
        on_failure=on_failure,
        reads=reads,
        **shared,
        **_template(prompts, "matcher"),
    )
    reviser = MessageReviser(
        models["message"],
        agent,
        blueprint=blueprint,
        on_unsatisfied=on_unsatisfied,
        **shared,
        **_template(prompts, "message"),
    )
    builder = StateGraph(state_schema, context_schema)
    builder.add_node("match", matcher)
    builder.add_node("message", reviser)
    builder.add_edge(START, "match")
    builder.add_edge("message", END)
    settings = {**shared, **_template(prompts, deciding)}
    if planner is not None:
        planned = planner(models[deciding], agent, max_steps=rounds, draft=True, **settings)
        _add_one_by_one(builder, agent, matcher, "plan", planned)
    elif speaking:
        speaker = Speaker(
            models[deciding],
            agent,
            max_steps=rounds,
            policies=policies,
            agrees=agrees,
            reads=reads,
            draft=True,
            **settings,
        )
        _add_one_by_one(builder, agent, matcher, "speak", speaker)
    else:
        caller = ToolCaller(
            models[deciding], agent, tools_per_call=tools_per_call, max_rounds=rounds, **settings
        )
        _add_tool_rounds(builder, agent, matcher, caller, rounds)
    if tracker is not None:
        add_beside(builder, agent, tracker)
    return builder.compile(checkpointer, cache=cache, store=store, name=name or agent.name)


def _add_tool_rounds(
    builder: StateGraph[Any, Any, Any, Any],
    agent: Agent,
    matcher: GuidelineMatcher,
    caller: ToolCaller,
    max_rounds: int,
) -> None:
    """Between matching and the reply: decide, run, and look again at what the results change."""
    if not agent.toolbox:
        builder.add_edge("match", "message")
        return
    second_look = ["match_again", "call_tools_again"]
    builder.add_node("call_tools", caller)
    builder.add_node("tools", guarded_tools(agent))
    builder.add_node("match_again", matcher)
    builder.add_node("call_tools_again", caller)
    builder.add_node("next_round", _join)
    builder.add_edge("match", "call_tools")
    after_calls = ["tools", "message"]
    if agent.confirmed_by("operator"):
        builder.add_node("approve", ApproveCalls(agent))
        builder.add_conditional_edges("approve", route_approved(), ["tools", *second_look])
        after_calls.append("approve")
    builder.add_conditional_edges("call_tools", route_calls(agent), after_calls)
    for node in second_look:
        builder.add_edge("tools", node)
    builder.add_edge(second_look, "next_round")
    builder.add_conditional_edges(
        "next_round", route_round(agent, max_rounds=max_rounds), [*after_calls, "call_tools"]
    )


def _add_one_by_one(
    builder: StateGraph[Any, Any, Any, Any],
    agent: Agent,
    matcher: GuidelineMatcher,
    name: str,
    deciding: Planner | Speaker,
) -> None:
    """Between matching and the reply: plan or speak, run one call, match again, and look anew.

    One after the other, and not side by side as the tool caller's second look: a plan is refined once, with the
    guidelines and tools that the result has just made active. Matching again asks only about guidelines that a
    result can still activate, so most steps wait for one model call.
    """
    builder.add_node(name, deciding)
    builder.add_edge("match", name)
    if agent.toolbox:
        builder.add_node("match_again", matcher)
        builder.add_edge("match_again", name)
    add_steps(builder, agent, otherwise="message", then="match_again", behind=name)


def _join(state: Any) -> dict[str, Any]:  # noqa: ARG001
    """Wait for both halves of the second look: an edge behind one of them would not see what the other wrote."""
    return {}


def _deciding(planning: str | None, speaking: bool, policies: object, agrees: object) -> str:
    """The module that decides on calls."""
    if speaking and planning is not None:
        raise InputError("a turn is either planned or spoken: give planning or speaking, not both")
    if policies is not None and not speaking:
        raise InputError("policies are the speaker's: give speaking=True beside them")
    if agrees is not None and not speaking:
        raise InputError("agrees is the speaker's: give speaking=True beside it")
    if speaking:
        return "speaker"
    return "tools" if planning is None else "planner"


def _per_module(
    model: ModelLike | Mapping[str, ModelLike] | None, preset: Literal["paper"] | None, acting: str
) -> Mapping[str, ModelLike]:
    """The model of each module; `acting` is the one that decides on calls."""
    used = ("matcher", acting, "message")
    if preset not in (None, "paper"):
        raise InputError(f"there is no preset {preset!r}: the one there is is 'paper'")
    if model is None:
        if preset is None:
            raise InputError('give a model, such as "openai:gpt-4o" or "offline", or preset="paper"')
        return {**PAPER_MODELS, acting: PAPER_MODELS["tools"]}
    if not isinstance(model, Mapping):
        return dict.fromkeys(used, model)
    _check_modules(model)
    if missing := [name for name in used if name not in model]:
        raise InputError(
            f"no model is given for {', '.join(missing)}: give one model, or one for each module"
        )
    return model


def _check_modules(names: Iterable[str]) -> None:
    if unknown := [name for name in names if name not in MODULES]:
        raise InputError(f"there is no module {unknown[0]!r}: the modules are {', '.join(MODULES)}")


def _template(prompts: Prompts, module: str) -> dict[str, Any]:
    return {"template": prompts[module]} if module in prompts else {}  # type: ignore[literal-required]
