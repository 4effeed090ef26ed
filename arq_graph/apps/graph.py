"""The graph of a compiled agent: the steps of a turn, wired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_type_hints

from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer
from typing_extensions import TypedDict  # Pydantic needs this one before Python 3.12

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AgentState
from arq_graph.apps.strategies import ReSpAct, StrategySettings, ToolCalling
from arq_graph.errors import InputError, suggestion
from arq_graph.nodes.approval import ApproveCalls
from arq_graph.nodes.blueprint_node import BlueprintNode
from arq_graph.nodes.channels import Node
from arq_graph.nodes.parallel import Parallel
from arq_graph.nodes.tool_node import guarded_tools, route_calls

Builder = StateGraph[Any, Any, Any, Any]


class GraphOptions(TypedDict, total=False):
    """What belongs to LangGraph, passed on as it is.

    `state_schema`: `AgentState`, or a subclass with channels of your own. `context_schema`: the run's context.
    `input_schema`: what a run is given; unless set, the messages, and those variables that the specification declares
    `settable`, so that no client can forge records. To embed the app in another graph, give the state schema, and the
    app goes on with what the parent keeps. `output_schema`: what a run returns; unless set, the whole state. The others
    are those of `compile`; there is no `cache`, since no step of a conversation is the same twice.
    """

    state_schema: type[Any]
    context_schema: type[Any] | None
    input_schema: type[Any] | None
    output_schema: type[Any] | None
    checkpointer: Checkpointer
    store: BaseStore | None
    interrupt_before: Any
    interrupt_after: Any
    debug: bool
    name: str | None


def compiled(
    agent: Agent,
    strategy: StrategySettings,
    deciding: BlueprintNode[Any],
    *,
    matcher: BlueprintNode[Any] | None = None,
    reviser: BlueprintNode[Any] | None = None,
    tracker: Node | None = None,
    eager: bool = False,
    state_schema: type[Any] = AgentState,
    context_schema: type[Any] | None = None,
    input_schema: type[Any] | None = None,
    output_schema: type[Any] | None = None,
    name: str | None = None,
    **options: Any,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Wire and compile the steps of a turn: with a matcher and a reviser, or the strategy's node alone."""
    settable = [variable.name for variable in agent.variables if variable.settable]
    given = input_schema or _input_of(state_schema, settable)
    builder: Builder = StateGraph(
        state_schema, context_schema, input_schema=given, output_schema=output_schema
    )
    is_eager = eager and bool(agent.toolbox)  # without tools there is nothing to hasten
    if not is_eager:
        builder.add_node(strategy.name, deciding)
    if matcher is not None and reviser is not None:
        builder.add_node("message", reviser)
        builder.add_edge("message", END)
        if is_eager:
            _eagerly(builder, agent, matcher, deciding, reviser, otherwise="progress" if tracker else END)
        else:
            _in_turn(builder, agent, strategy, matcher, deciding)
        if tracker is not None:
            # Side by side with matching, so that a plan made behind both sees it, and once the reply is written.
            builder.add_node("progress", tracker)
            for source in (START, *(["tools"] if agent.toolbox else []), "message"):
                builder.add_edge(source, "progress")
    elif isinstance(strategy, ReSpAct):
        _speaking(builder, agent, strategy)
    else:
        builder.add_edge(START, strategy.name)
        _one_by_one(builder, agent, strategy.name, then=strategy.name, otherwise=END)
    app = builder.compile(name=name or agent.name, **options)
    if input_schema is None:
        _refuse_other_variables(app, settable)
    return app


def _in_turn(
    builder: Builder,
    agent: Agent,
    strategy: StrategySettings,
    matcher: BlueprintNode[Any],
    deciding: BlueprintNode[Any],
) -> None:
    builder.add_node("match", matcher)
    builder.add_edge(START, "match")
    if agent.toolbox:
        builder.add_node("match_again", matcher)
    if isinstance(strategy, ToolCalling):
        _in_rounds(builder, agent, deciding)
    else:
        builder.add_edge("match", strategy.name)
        _one_by_one(builder, agent, strategy.name, then="match_again", otherwise="message")
        if agent.toolbox:
            builder.add_edge("match_again", strategy.name)


def _in_rounds(builder: Builder, agent: Agent, caller: BlueprintNode[Any]) -> None:
    """Decide on all tools at once, run them, and look again, side by side, at what the results change."""
    if not agent.toolbox:
        builder.add_edge("match", "message")
        return
    second_look = ["match_again", "call_tools_again"]
    builder.add_node("call_tools_again", caller)
    # Waits for both: an edge behind one of them would not see what the other wrote.
    builder.add_node("next_round", lambda _: {})
    builder.add_edge("match", "call_tools")
    builder.add_edge(second_look, "next_round")
    after_calls = ["message", *_tools(builder, agent, second_look)]
    builder.add_conditional_edges("call_tools", route_calls(agent), after_calls)
    to_next = route_calls(agent, again="call_tools")
    builder.add_conditional_edges("next_round", to_next, [*after_calls, "call_tools"])


def _eagerly(builder: Builder, agent: Agent, *steps: BlueprintNode[Any], otherwise: str) -> None:
    """Decide on tools while guidelines are matched, and draft the reply while it is looked what results change."""
    builder.add_node("look", Parallel(*steps[:2]))
    builder.add_node("look_again", Parallel(*steps))
    builder.add_edge(START, "look")
    tools = _tools(builder, agent, ["look_again"])
    builder.add_conditional_edges("look", route_calls(agent), ["message", *tools])
    builder.add_conditional_edges("look_again", route_calls(agent, otherwise=otherwise), [otherwise, *tools])


def _one_by_one(builder: Builder, agent: Agent, name: str, *, then: str, otherwise: str) -> None:
    targets = [otherwise, *_tools(builder, agent, [then])]
    builder.add_conditional_edges(name, route_calls(agent, otherwise=otherwise), targets)


def _tools(builder: Builder, agent: Agent, then: list[str]) -> list[str]:
    """Add the node that runs calls, and the one that asks an operator about them; the names to route to."""
    if not agent.toolbox:
        return []
    # A tool may have any channel injected.
    builder.add_node("tools", guarded_tools(agent), input_schema=builder.state_schema)
    for node in then:
        builder.add_edge("tools", node)
    if not agent.confirmed_by("operator", "interrupt"):
        return ["tools"]
    builder.add_node("approve", ApproveCalls(agent))
    to_tools = route_calls(agent, approve=None, otherwise=then)
    builder.add_conditional_edges("approve", to_tools, ["tools", *then])
    return ["tools", "approve"]


def _speaking(builder: Builder, agent: Agent, strategy: ReSpAct) -> None:
    """Think, speak or act, in a chat or in a task, with a world or without."""
    # Loads networkx, which the other strategies have no use for.
    from arq_graph.nodes.speaking.listen import Listen, route_moves
    from arq_graph.nodes.speaking.move_schema import ACT
    from arq_graph.nodes.speaking.world import ActInWorld

    behind = [END, *_tools(builder, agent, ["speak"])]
    if strategy.environment is None:
        builder.add_edge(START, "speak")
    else:
        world = ActInWorld(strategy.environment, agent=agent.name)
        builder.add_node("look", world.look)
        builder.add_node(ACT, world)
        builder.add_edge(START, "look")
        builder.add_edge("look", "speak")
        builder.add_edge(ACT, "speak")
        behind.append(ACT)
    if strategy.is_task:
        builder.add_node("listen", Listen())
        builder.add_edge("listen", "speak")
        behind.append("listen")
    builder.add_conditional_edges("speak", route_moves(agent, otherwise=END), behind)


def _input_of(state_schema: type[Any], settable: Sequence[str]) -> type[Any]:
    channels = get_type_hints(state_schema, include_extras=True)
    given: dict[str, Any] = {"messages": channels["messages"]}
    if settable:
        given["variables"] = TypedDict("Variables", dict.fromkeys(settable, Any), total=False)  # type: ignore[operator]
    return TypedDict("Input", given, total=False)  # type: ignore[operator, no-any-return]


def _refuse_other_variables(app: CompiledStateGraph[Any, Any, Any, Any], settable: Sequence[str]) -> None:
    def checked(given: Any) -> Any:
        variables = given.get("variables") if isinstance(given, Mapping) else None
        if not isinstance(variables, Mapping | None):
            raise InputError(f"`variables` must be a mapping of names to values, but is {variables!r:.60}")
        for name in variables or ():
            if name not in settable:
                raise InputError(
                    f"the variable {name!r} cannot be set by who calls the app{suggestion(str(name), settable)}: "
                    "whoever builds the agent may declare it `settable`"
                )
        return given

    # The input passes through the graph's start, whose input schema knows channels, and not what is in them.
    app.nodes[START] = app.nodes[START].copy({"bound": RunnableLambda(checked)})
