"""The compiled agents: guided by guidelines, or by a strategy alone (ARQ paper, section 5; Pre-Act 3.1; ReSpAct 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack, get_type_hints

from langgraph.graph.state import CompiledStateGraph

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AgentState
from arq_graph.agent.tools import ToolLike
from arq_graph.apps.graph import GraphOptions, compiled
from arq_graph.apps.strategies import ReSpAct, StrategyName, StrategySettings, ToolCalling, strategy_of
from arq_graph.errors import InputError
from arq_graph.nodes.guideline_matcher import GuidelineMatcher
from arq_graph.nodes.message_reviser import MessageReviser
from arq_graph.reasoning.blueprint import Mode
from arq_graph.reasoning.reasoner import ModelLike

if TYPE_CHECKING:
    from arq_graph.milestones.graph import MilestoneGraph
    from arq_graph.milestones.judging.judge import Judge
    from arq_graph.nodes.progress_tracker import TrackProgress

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
    matcher: GuidelineMatcher | None = None,
    reviser: MessageReviser | None = None,
    milestones: MilestoneGraph | None = None,
    judge: Judge | None = None,
    preset: Literal["paper"] | None = None,
    eager: bool = False,
    stream: bool = False,
    **options: Unpack[GraphOptions],
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile an agent that follows its guidelines.

    A turn: match the guidelines, let the strategy act, run tools behind the gate, look again at what the results
    change, and revise the reply until it follows the rules. No model is called to compile.

    Args:
        model: A chat model, with fallbacks or configurable, too, a model string such as `openai:gpt-4o` (`offline`
            needs no key), a `Reasoner`, or one of these for each of `matcher`, `strategy` and `message`.
        agent: The specification.
        strategy: `tools` decides on all granted tools at once, `pre-act` plans, `react` takes a thought and an action
            at a time, `respact` thinks, speaks or acts; or settings: `PreAct(max_steps=4)`, `ReSpAct(policies=…)`.
        mode: `arq`, `cot` or `direct`; None is `arq`, or what a `Reasoner` was set to.
        matcher: A matcher with settings of your own (`GuidelineMatcher(model, agent, batch_size=3)`); it keeps its
            model.
        reviser: A reviser with settings of your own, such as a `blueprint=`; it keeps its model and mode.
        milestones: How far the conversation got is measured on this graph as it runs and kept in `progress`; a
            planner is shown the milestones that could come next.
        judge: Whom to ask about milestones that code cannot decide; without one they stay undecided.
        preset: `paper` takes the models of the ARQ paper where `model` is None.
        eager: Fewer waves of model calls for more tokens, with the strategy `tools`: it is asked about every tool that
            could be granted while the guidelines are matched, and after tools ran the reply is drafted during the
            second look, to be kept where that changes nothing that the reply is told.
        stream: Write the reply to `stream_mode="custom"` while it is written, as `ReplyDelta` events.
        **options: What belongs to LangGraph: `checkpointer`, `store`, `name`, …; see `GraphOptions`.

    Raises:
        SpecError: The milestone graph cannot be measured on.
        InputError: `model` lacks or misnames a module, a part is another agent's, or a setting is out of its range.
        PromptError: A prompt cannot be read or rendered.
    """
    chosen = strategy_of(strategy)
    if eager and not isinstance(chosen, ToolCalling):
        raise InputError(
            'eager is for strategy="tools": what another strategy does next rests on the guidelines that matched'
        )
    models = _per_module(model, preset)
    reads = channels_of(options)
    reviser = MessageReviser.given("reviser", reviser, models["message"], agent, mode=mode)
    reviser.streams = stream or reviser.streams
    return compiled(
        agent,
        chosen,
        chosen.node(models["strategy"], agent, draft=True, mode=mode, reads=reads),
        matcher=GuidelineMatcher.given("matcher", matcher, models["matcher"], agent, reads=reads, mode=mode),
        reviser=reviser,
        tracker=_tracker(agent, milestones, judge),
        eager=eager,
        **options,
    )


def create_preact_agent(
    model: ModelLike,
    agent: Agent | Sequence[ToolLike],
    *,
    strategy: StrategyName | StrategySettings = "pre-act",
    mode: Mode | None = None,
    **options: Unpack[GraphOptions],
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile an agent that plans, without guidelines: its final answer is sent as it is.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o` (`offline` needs no key), or a `Reasoner`.
        agent: A specification without guidelines, or its tools alone.
        strategy: `pre-act`, `react`, or settings: `PreAct(max_steps=4)`.
        mode: As for `create_guided_agent`, with `options`.
        **options: See there.

    Raises:
        InputError: The agent has guidelines, or a setting is out of its range.
        SpecError: A tool cannot be used.
        PromptError: The prompt cannot be read or rendered.
    """
    chosen = strategy_of(strategy)
    if not chosen.writes_reply:
        raise InputError("the tool caller writes no reply of its own: use create_guided_agent(model, agent)")
    if not isinstance(agent, Agent):
        agent = Agent(options.get("name") or "Agent", PROFILE, tools=agent)
    if agent.guidelines:
        raise InputError(
            f"agent {agent.name!r} has guidelines, which a strategy alone does not match: use create_guided_agent"
        )
    deciding = chosen.node(model, agent, draft=False, mode=mode, reads=channels_of(options))
    return compiled(agent, chosen, deciding, **options)


def create_respact_agent(
    model: ModelLike,
    agent: Agent | Sequence[ToolLike] = (),
    *,
    strategy: ReSpAct | None = None,
    mode: Mode | None = None,
    **options: Unpack[GraphOptions],
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile an agent that thinks, speaks and acts, one move at a time, without guidelines.

    In a chat, speaking ends the turn. In a task, an utterance waits in `interrupt()` for its answer, which joins the
    messages: resume with `Command(resume="the answer")`.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o` (`offline` needs no key), or a `Reasoner`.
        agent: A specification without guidelines, or its tools alone.
        strategy: Settings: `ReSpAct(policies=…, environment=…)`.
        mode: As for `create_guided_agent`, with `options`.
        **options: See there.

    Raises:
        InputError: The agent has guidelines, or a setting is out of its range.
        SpecError: A tool cannot be used.
        PromptError: The prompt cannot be read or rendered.
    """
    return create_preact_agent(model, agent, strategy=strategy or ReSpAct(), mode=mode, **options)


def channels_of(options: GraphOptions) -> dict[str, Any]:
    """What functions of the user's may look at: every channel of the state besides the messages."""
    channels = get_type_hints(options.get("state_schema", AgentState), include_extras=True)
    return {name: kind for name, kind in channels.items() if name != "messages"}


def _tracker(agent: Agent, milestones: MilestoneGraph | None, judge: Judge | None) -> TrackProgress | None:
    if milestones is not None:
        # Loads networkx, which an agent without milestones has no use for.
        from arq_graph.nodes.progress_tracker import TrackProgress

        return TrackProgress(milestones, tools=agent.toolbox, judge=judge, agent=agent.name)
    if judge is not None:
        raise InputError("judge is asked about milestones: give milestones= too")
    return None


def _per_module(
    model: ModelLike | Mapping[str, ModelLike] | None, preset: Literal["paper"] | None
) -> Mapping[str, ModelLike]:
    if model is None:
        if preset != "paper":
            raise InputError('give a model, such as "openai:gpt-4o" or "offline", or preset="paper"')
        return _PAPER_MODELS
    if not isinstance(model, Mapping):
        return dict.fromkeys(_PAPER_MODELS, model)
    if model.keys() != _PAPER_MODELS.keys():
        raise InputError(
            f"models are given for {', '.join(model)}: give one model, or one for each of {', '.join(_PAPER_MODELS)}"
        )
    return model
