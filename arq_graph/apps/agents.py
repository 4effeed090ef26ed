"""The compiled agents: guided by guidelines, or by a strategy alone (ARQ paper, section 5; Pre-Act 3.1; ReSpAct 3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

from langgraph.graph.state import CompiledStateGraph

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AgentState
from arq_graph.agent.tools import ToolLike
from arq_graph.apps.graph import GraphOptions, TurnGraph, collect_channels
from arq_graph.apps.settings import (
    Matching,
    PreAct,
    ReSpAct,
    Revising,
    StrategyName,
    StrategySettings,
    Summarizing,
    ToolCalling,
    make_summarizer,
    require_settings,
    resolve_strategy,
)
from arq_graph.errors import InputError, suggestion
from arq_graph.reasoning.blueprint import Mode
from arq_graph.reasoning.reasoner import ModelLike, Reasoner

if TYPE_CHECKING:
    from arq_graph.milestones.graph import MilestoneGraph
    from arq_graph.milestones.judge import Judge
    from arq_graph.nodes.progress_tracker import ProgressTracker

_PAPER_MODELS: Mapping[str, str] = {
    "matcher": "openai:gpt-4o-2024-08-06",
    "strategy": "openai:gpt-4o-2024-11-20",
    "message": "openai:gpt-4o-2024-08-06",
}
"""The models of the ARQ paper's experiments (6.3)."""

PROFILE = (
    "You are a helpful agent. You reach what the customer asks for with your tools, and ask what is open."
)


def create_guided_agent(
    model: ModelLike | Mapping[str, ModelLike] | None,
    agent: Agent,
    *,
    strategy: StrategyName | StrategySettings = "tools",
    mode: Mode | None = None,
    matching: Matching = Matching(),
    revising: Revising = Revising(),
    milestones: MilestoneGraph | None = None,
    judge: Judge | None = None,
    preset: Literal["paper"] | None = None,
    eager: bool = False,
    stream: bool = False,
    history_tokens: int = 16_000,
    summary: Summarizing | None = Summarizing(),
    **options: Unpack[GraphOptions],
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile an agent that follows its guidelines.

    A turn: match the guidelines, let the strategy act, run tools behind the gate, match again what the results could
    change, and revise the reply until it follows the rules. No model is called to compile.

    Args:
        model: A chat model, with fallbacks or configurable, too, a model string such as `openai:gpt-4o` (`offline`
            needs no key), a `Reasoner`, or one of these for each of `matcher`, `strategy` and `message`, and if it is
            another than that of `message`, for `summary`.
        agent: The specification.
        strategy: `tools` decides on all granted tools at once, `pre-act` plans, `react` takes a thought and an action
            at a time, `respact` thinks, speaks or acts; or settings: `PreAct(max_steps=4)`, `ReSpAct(policies=…)`.
        mode: `arq`, `cot` or `direct`; None is `arq`, or what a `Reasoner` was set to.
        matching: How guidelines are matched: `Matching(batch_size=3)`.
        revising: How the reply is written and revised: `Revising(extra_revisions=2)`.
        milestones: A graph on which the conversation's progress is measured as it runs, into the channel `progress`, as
            it is on the agent's journeys that have begun; a planner is shown the milestones that could come next.
        judge: Decides on milestones that code cannot decide; without one they stay undecided.
        preset: `paper` takes the models of the ARQ paper where `model` is None.
        eager: Fewer waves of model calls for more tokens, with the strategy `tools`: it is asked about every tool that
            could be granted while the guidelines are matched, and after tools ran the reply is drafted during the
            re-match, and sent if that changes nothing that the reply's prompt shows.
        stream: Write the reply to `stream_mode="custom"` while it is written, as `ReplyDelta` events.
        history_tokens: How long the history in a prompt may be, in tokens, about 4 characters each; 100 or more. If it
            is longer after a reply, it is condensed to half of that: a summary, and the last turns as they are.
        summary: How it is summarised: `Summarizing(timeout=20)`. None: the oldest turns are left out of the prompts,
            and a line says how many messages these are.
        **options: What belongs to LangGraph: `checkpointer`, `store`, `name`, …; see `GraphOptions`.

    Raises:
        SpecError: The milestone graph cannot be measured on.
        InputError: `model` lacks or misnames a step, or a setting is out of its range.
        PromptError: A prompt cannot be read or rendered.
    """
    settings = resolve_strategy(strategy)
    if eager and not isinstance(settings, ToolCalling):
        raise InputError(
            'eager is for strategy="tools": what another strategy does next rests on the guidelines that matched'
        )
    require_settings("matching", matching, Matching)
    require_settings("revising", revising, Revising)
    models = _choose_models(model, preset)
    channels = collect_channels(options.get("state_schema", AgentState))
    if stream:
        revising = replace(revising, stream=True)
    shared: dict[str, Any] = {"mode": mode, "history_tokens": history_tokens}
    matcher = matching.make_node(models["matcher"], agent, reads=channels, **shared)
    strategy_node = settings.make_node(models["strategy"], agent, reads=channels, draft=True, **shared)
    reviser = revising.make_node(models["message"], agent, **shared)
    tracker = _make_tracker(agent, milestones, judge)
    summarizer = make_summarizer(summary, models["summary"], agent, **shared)

    graph = TurnGraph(agent, options, summarizer)
    graph.add_reply(reviser)
    if not agent.toolbox and isinstance(settings, ToolCalling):
        graph.add_matching(matcher)
    elif eager:
        graph.add_eager_turn(matcher, strategy_node, reviser, has_progress=tracker is not None)
    elif isinstance(settings, ToolCalling):
        graph.add_rounds(matcher, strategy_node)
    else:
        graph.add_actions(matcher, settings.node_name, strategy_node)
    if tracker is not None:
        graph.add_progress(tracker)
    return graph.compile()


def create_tool_agent(
    model: ModelLike,
    agent: Agent | Sequence[ToolLike],
    *,
    strategy: StrategyName | StrategySettings = "react",
    mode: Mode | None = None,
    history_tokens: int = 16_000,
    summary: Summarizing | None = Summarizing(),
    **options: Unpack[GraphOptions],
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile an agent of a strategy alone, without guidelines: what it writes is sent as it is.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o` (`offline` needs no key), or a `Reasoner`.
        agent: A specification without guidelines, or its tools alone.
        strategy: `pre-act`, `react` or `respact`, or settings: `PreAct(max_steps=4)`, `ReSpAct(environment=…)`.
        mode: As for `create_guided_agent`, with `history_tokens`, `summary` and `options`.
        history_tokens: See there.
        summary: See there.
        **options: See there.

    Raises:
        InputError: The agent has guidelines, or a setting is out of its range.
        SpecError: A tool cannot be used.
        PromptError: The prompt cannot be read or rendered.
    """
    settings = resolve_strategy(strategy)
    if not settings.writes_reply:
        raise InputError("the tool caller writes no reply of its own: use create_guided_agent(model, agent)")
    if not isinstance(agent, Agent):
        agent = Agent(options.get("name") or "Agent", PROFILE, tools=agent)
    if agent.rules:
        raise InputError(
            f"agent {agent.name!r} has guidelines, which a strategy alone does not match: use create_guided_agent"
        )
    channels = collect_channels(options.get("state_schema", AgentState))
    shared: dict[str, Any] = {"mode": mode, "history_tokens": history_tokens}
    strategy_node = settings.make_node(model, agent, reads=channels, draft=False, **shared)
    summarizer = make_summarizer(summary, model, agent, **shared)
    graph = TurnGraph(agent, options, summarizer)
    if isinstance(settings, ReSpAct):
        graph.add_speaker(strategy_node, settings)
    else:
        graph.add_strategy(settings.node_name, strategy_node)
    return graph.compile()


def create_preact_agent(
    model: ModelLike,
    agent: Agent | Sequence[ToolLike],
    *,
    strategy: PreAct = PreAct(),
    mode: Mode | None = None,
    history_tokens: int = 16_000,
    summary: Summarizing | None = Summarizing(),
    **options: Unpack[GraphOptions],
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile an agent that plans every step, without guidelines: `create_tool_agent` with the strategy `pre-act`."""
    return create_tool_agent(
        model,
        agent,
        strategy=strategy,
        mode=mode,
        history_tokens=history_tokens,
        summary=summary,
        **options,
    )


def create_respact_agent(
    model: ModelLike,
    agent: Agent | Sequence[ToolLike] = (),
    *,
    strategy: ReSpAct = ReSpAct(),
    mode: Mode | None = None,
    history_tokens: int = 16_000,
    summary: Summarizing | None = Summarizing(),
    **options: Unpack[GraphOptions],
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile an agent that thinks, speaks and acts, without guidelines: `create_tool_agent` with `respact`.

    In a chat, speaking ends the turn. In a task, an utterance waits in `interrupt()` for its answer, which joins the
    messages: resume with `Command(resume="the answer")`.
    """
    return create_tool_agent(
        model,
        agent,
        strategy=strategy,
        mode=mode,
        history_tokens=history_tokens,
        summary=summary,
        **options,
    )


def models_by_step(
    model: ModelLike | Mapping[str, ModelLike], steps: Collection[str]
) -> Mapping[str, ModelLike]:
    """Return the model of each step and of the summary: the same for all, or those of a mapping.

    If the mapping has none for `summary`, that of `message` is taken.

    Raises:
        InputError: The mapping lacks a step, or has another.
    """
    if not isinstance(model, Mapping):
        return dict.fromkeys({*steps, "summary"}, model)
    problems: list[str] = []
    for step in model:
        if step not in {*steps, "summary"}:
            problems.append(f"there is no step {step!r}{suggestion(str(step), [*steps, 'summary'])}")
    missing = [step for step in steps if step not in model]
    if missing:
        problems.append(f"no model is given for {' and '.join(missing)}")
    if problems:
        raise InputError(
            f"{', and '.join(problems)} (give one model, or one for each of {', '.join(steps)}; one for summary is "
            "optional)"
        )
    return {"summary": _drop_derivation(model["message"]), **model}


def _drop_derivation(model: ModelLike) -> ModelLike:
    """Return a model without a `derive`, which names queries of the step that it was made for."""
    if not isinstance(model, Reasoner) or model.settings.derive is None:
        return model
    reasoner = copy(model)
    reasoner.settings = replace(model.settings, derive=None)
    return reasoner


def _choose_models(
    model: ModelLike | Mapping[str, ModelLike] | None, preset: Literal["paper"] | None
) -> Mapping[str, ModelLike]:
    if model is not None:
        return models_by_step(model, _PAPER_MODELS)
    if preset != "paper":
        raise InputError('give a model, such as "openai:gpt-4o" or "offline", or preset="paper"')
    return models_by_step(_PAPER_MODELS, _PAPER_MODELS)


def _make_tracker(
    agent: Agent, milestones: MilestoneGraph | None, judge: Judge | None
) -> ProgressTracker | None:
    if judge is not None and milestones is None:
        raise InputError("judge is asked about milestones: give milestones= too")
    if milestones is not None or agent.journeys:
        # Loads networkx, which other agents have no use for.
        from arq_graph.nodes.progress_tracker import ProgressTracker

        return ProgressTracker(milestones, tools=agent.toolbox, judge=judge, agent=agent)
    return None
