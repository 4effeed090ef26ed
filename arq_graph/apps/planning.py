"""The planning agent: plan, run a tool, refine the plan, answer, as one compiled graph (Pre-Act, 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from langchain_core.language_models import BaseChatModel
from langgraph.cache.base import BaseCache
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AgentState
from arq_graph.agent.tools import ToolLike
from arq_graph.apps.live_milestones import tracker_of
from arq_graph.apps.specifying import without_guidelines
from arq_graph.errors import InputError
from arq_graph.nodes.approval import ApproveCalls
from arq_graph.nodes.planner import DEFAULT_STEPS, Planner
from arq_graph.nodes.pre_act_planner import PreActPlanner
from arq_graph.nodes.react_planner import ReActPlanner
from arq_graph.nodes.routing import route_approved, route_calls
from arq_graph.nodes.tool_node import guarded_tools
from arq_graph.reasoning.blueprint import Mode
from arq_graph.reasoning.reasoner import Reasoner

if TYPE_CHECKING:
    from arq_graph.milestones.graph import MilestoneGraph
    from arq_graph.milestones.judging.judge import AnyJudge

Planning = Literal["react", "pre-act"]

PROFILE = "You are a helpful agent. You reach what the customer asks for with your tools."
_INSTEAD = "a planner alone does not match: use create_guided_agent(model, agent, planning=…)"


def create_planning_agent(
    model: BaseChatModel | str | Reasoner,
    agent: Agent | Sequence[ToolLike],
    *,
    planning: Planning = "pre-act",
    profile: str | None = None,
    mode: Mode | None = None,
    max_steps: int = DEFAULT_STEPS,
    milestones: MilestoneGraph | None = None,
    judge: AnyJudge | None = None,
    prompt: str | Path | None = None,
    max_history_tokens: int = 16_000,
    state_schema: type[AgentState] = AgentState,
    context_schema: type[Any] | None = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
    name: str | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile an agent that plans, for agents without guidelines.

    A turn: the planner makes a plan and takes one action; after each call it refines the plan; its final answer is
    sent as it is. Each step waits for one model call. No model is called to compile.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o` (`offline` needs no key), or a `Reasoner`.
        agent: A specification without guidelines, or its tools alone.
        planning: `pre-act` makes a multi-step plan, `react` takes a thought and an action at a time.
        profile: Who the agent is, in words; only where `agent` is its tools.
        mode: `arq`, `cot` or `direct`; None is `arq`, or what a `Reasoner` was set to.
        max_steps: How many calls one turn may make; after them only the final answer is left.
        milestones: How far the conversation got is measured on this graph as it runs and kept in `progress`; the
            milestones that could come next are shown to the planner.
        judge: Whom to ask about milestones that code cannot decide; asked each time progress is measured.
        prompt: A replacement for the shipped prompt: a path or a template's text.
        max_history_tokens: Over it, the history in the prompt is cut to half.
        state_schema: `AgentState`, or a subclass with channels of your own.
        context_schema: The run's context, as for `StateGraph`.
        checkpointer: Keeps threads, as for `compile`.
        store: As for `compile`.
        cache: As for `compile`.
        name: The graph's name; the agent's unless given.

    Raises:
        InputError: The agent has guidelines, or a setting is out of its range.
        SpecError: A tool cannot be used, or the milestone graph cannot be measured on.
        PromptError: The prompt cannot be read or rendered.
    """
    agent = without_guidelines(agent, profile, name, otherwise=PROFILE, instead=_INSTEAD)
    planner = planner_of(planning)(
        model,
        agent,
        max_steps=max_steps,
        template=prompt,
        mode=mode,
        max_history_tokens=max_history_tokens,
    )
    tracker = tracker_of(agent, milestones, judge)
    builder = StateGraph(state_schema, context_schema)
    builder.add_node("plan", planner)
    if tracker is None:
        builder.add_edge(START, "plan")
        add_steps(builder, agent, otherwise=END, then="plan")
    else:
        # Before each plan, which looks at it, and once more for what the answer itself reaches.
        builder.add_node("progress", tracker)
        builder.add_node("progress_of_answer", tracker)
        builder.add_edge(START, "progress")
        builder.add_edge("progress", "plan")
        builder.add_edge("progress_of_answer", END)
        add_steps(builder, agent, otherwise="progress_of_answer", then="progress")
    return builder.compile(checkpointer, cache=cache, store=store, name=name or agent.name)


def planner_of(planning: str) -> type[Planner]:
    """The planner of a name.

    Raises:
        InputError: There is none.
    """
    if planning not in get_args(Planning):
        known = ", ".join(map(repr, get_args(Planning)))
        raise InputError(f"planning is {planning!r}: it must be one of {known}")
    return ReActPlanner if planning == "react" else PreActPlanner


def add_steps(
    builder: StateGraph[Any, Any, Any, Any], agent: Agent, *, otherwise: str, then: str, behind: str = "plan"
) -> None:
    """Add what stands behind a node that takes one call at a time: it is approved and run, and the turn goes on.

    Args:
        builder: The graph, with that node.
        agent: The specification.
        behind: The node's name.
        otherwise: Where to go without a call.
        then: Where to go once the call has run.
    """
    if not agent.toolbox:
        builder.add_edge(behind, otherwise)
        return
    builder.add_node("tools", guarded_tools(agent))
    builder.add_edge("tools", then)
    targets = ["tools", otherwise]
    if agent.confirmed_by("operator"):
        builder.add_node("approve", ApproveCalls(agent))
        builder.add_conditional_edges("approve", route_approved(otherwise=[then]), ["tools", then])
        targets.append("approve")
    builder.add_conditional_edges(behind, route_calls(agent, otherwise=otherwise), targets)
