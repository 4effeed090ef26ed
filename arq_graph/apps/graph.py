"""The graph of a compiled agent: the steps of a turn as nodes, and the edges between them."""

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
from arq_graph.apps.settings import ReSpAct, StrategySettings, ToolCalling
from arq_graph.errors import InputError, suggestion
from arq_graph.nodes.approval import CallApprover
from arq_graph.nodes.blueprint_node import BlueprintNode
from arq_graph.nodes.channels import Node
from arq_graph.nodes.parallel import Parallel
from arq_graph.nodes.strategy import Strategy
from arq_graph.nodes.tool_node import make_tool_node, route_calls

Builder = StateGraph[Any, Any, Any, Any]


class GraphOptions(TypedDict, total=False):
    """Options that belong to LangGraph and are passed on as they are.

    `state_schema`: `AgentState`, or a subclass with channels of your own. `context_schema`: the run's context.
    `input_schema`: what a run is given; unless set, the messages, and those variables that the specification declares
    `settable`, so that no client can forge records. To embed the app in another graph, give the state schema, and the
    app continues with the parent's records. `output_schema`: what a run returns; unless set, the whole state. The
    others are those of `compile`; there is no `cache`, since no step of a conversation is the same twice.
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


def compile_guided_graph(
    agent: Agent,
    strategy: StrategySettings,
    *,
    matcher: BlueprintNode[Any],
    strategy_node: Strategy,
    reviser: BlueprintNode[Any],
    tracker: Node | None,
    eager: bool,
    options: GraphOptions,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile a turn that matches guidelines, acts, and revises the reply."""
    builder = _create_builder(agent, options)
    builder.add_node("message", reviser)
    builder.add_edge("message", END)
    if not agent.toolbox and isinstance(strategy, ToolCalling):
        builder.add_node("match", matcher)
        builder.add_edge(START, "match")
        builder.add_edge("match", "message")
    elif eager:
        after_draft = "progress" if tracker else END
        _wire_eager_turn(builder, agent, matcher, strategy_node, reviser, after_draft)
    elif isinstance(strategy, ToolCalling):
        _wire_rounds(builder, agent, matcher, strategy_node)
    else:
        _wire_actions(builder, agent, matcher, strategy.node_name, strategy_node)
    if tracker is not None:
        _wire_progress(builder, agent, tracker)
    return _compile(builder, agent, options)


def compile_strategy_graph(
    agent: Agent, strategy: StrategySettings, strategy_node: Strategy, options: GraphOptions
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile a turn of a strategy alone, whose last words are the reply."""
    builder = _create_builder(agent, options)
    builder.add_node(strategy.node_name, strategy_node)
    if isinstance(strategy, ReSpAct):
        _wire_speaker(builder, agent, strategy)
    else:
        builder.add_edge(START, strategy.node_name)
        builder.add_conditional_edges(strategy.node_name, route_calls(agent, otherwise=END))
        _add_tools(builder, agent, next_nodes=[strategy.node_name])
    return _compile(builder, agent, options)


def collect_channels(state_schema: type[Any]) -> dict[str, Any]:
    """Return the channels of a state besides the messages, with their types."""
    channels = get_type_hints(state_schema, include_extras=True)
    del channels["messages"]
    return channels


def _wire_rounds(builder: Builder, agent: Agent, matcher: BlueprintNode[Any], caller: Strategy) -> None:
    """Decide on all tools at once, run them, and match and decide again, side by side, what the results change."""
    builder.add_node("match", matcher)
    builder.add_node("call_tools", caller)
    builder.add_node("match_again", matcher)
    builder.add_node("call_tools_again", caller)
    # Waits for both: an edge behind one of them would not see what the other wrote.
    builder.add_node("next_round", lambda _: {})
    builder.add_edge(START, "match")
    builder.add_edge("match", "call_tools")
    builder.add_edge(["match_again", "call_tools_again"], "next_round")
    builder.add_conditional_edges("call_tools", route_calls(agent))
    builder.add_conditional_edges("next_round", route_calls(agent, again="call_tools"))
    _add_tools(builder, agent, next_nodes=["match_again", "call_tools_again"])


def _wire_eager_turn(
    builder: Builder,
    agent: Agent,
    matcher: BlueprintNode[Any],
    caller: Strategy,
    reviser: BlueprintNode[Any],
    after_draft: str,
) -> None:
    """Decide on tools while guidelines are matched, and draft the reply during the re-match."""
    builder.add_node("match_and_act", Parallel(matcher, caller))
    builder.add_node("match_and_act_again", Parallel(matcher, caller, reviser))
    builder.add_edge(START, "match_and_act")
    builder.add_conditional_edges("match_and_act", route_calls(agent))
    builder.add_conditional_edges("match_and_act_again", route_calls(agent, otherwise=after_draft))
    _add_tools(builder, agent, next_nodes=["match_and_act_again"])


def _wire_actions(
    builder: Builder, agent: Agent, matcher: BlueprintNode[Any], name: str, strategy_node: Strategy
) -> None:
    """Take one action at a time, and match again after each result."""
    builder.add_node("match", matcher)
    builder.add_node(name, strategy_node)
    builder.add_edge(START, "match")
    builder.add_edge("match", name)
    builder.add_conditional_edges(name, route_calls(agent))
    if agent.toolbox:
        builder.add_node("match_again", matcher)
        builder.add_edge("match_again", name)
    _add_tools(builder, agent, next_nodes=["match_again"])


def _wire_progress(builder: Builder, agent: Agent, tracker: Node) -> None:
    """Track milestones beside the matching, so that a plan made after both sees them, and after the reply."""
    builder.add_node("progress", tracker)
    builder.add_edge(START, "progress")
    if agent.toolbox:
        builder.add_edge("tools", "progress")
    builder.add_edge("message", "progress")


def _wire_speaker(builder: Builder, agent: Agent, strategy: ReSpAct) -> None:
    """Think, speak or act, in a chat or in a task, with a world or without."""
    # Loads networkx, which the other strategies have no use for.
    from arq_graph.nodes.speaking.listen import Listener, route_moves
    from arq_graph.nodes.speaking.move_schema import ACT
    from arq_graph.nodes.speaking.world import WorldActor

    _add_tools(builder, agent, next_nodes=["speak"])
    destinations = [END]
    destinations += [name for name in ("tools", "approve") if name in builder.nodes]
    if strategy.environment is None:
        builder.add_edge(START, "speak")
    else:
        world = WorldActor(strategy.environment, agent=agent.name)
        builder.add_node("look", world.look)
        builder.add_node(ACT, world)
        builder.add_edge(START, "look")
        builder.add_edge("look", "speak")
        builder.add_edge(ACT, "speak")
        destinations.append(ACT)
    if strategy.is_task:
        builder.add_node("listen", Listener())
        builder.add_edge("listen", "speak")
        destinations.append("listen")
    builder.add_conditional_edges("speak", route_moves(agent, otherwise=END), destinations)


def _add_tools(builder: Builder, agent: Agent, next_nodes: list[str]) -> None:
    """Add the node that runs calls, and the one that asks an operator about them, if the agent needs them."""
    if not agent.toolbox:
        return
    # A tool may have any channel injected.
    builder.add_node("tools", make_tool_node(agent), input_schema=builder.state_schema)
    for node in next_nodes:
        builder.add_edge("tools", node)
    if agent.get_confirmed_tools("operator", "interrupt"):
        builder.add_node("approve", CallApprover(agent))
        builder.add_conditional_edges("approve", route_calls(agent, approve=None, otherwise=next_nodes))


def _create_builder(agent: Agent, options: GraphOptions) -> Builder:
    state_schema = options.get("state_schema", AgentState)
    return StateGraph(
        state_schema,
        options.get("context_schema"),
        input_schema=options.get("input_schema") or _create_input_schema(state_schema, agent),
        output_schema=options.get("output_schema"),
    )


def _compile(builder: Builder, agent: Agent, options: GraphOptions) -> CompiledStateGraph[Any, Any, Any, Any]:
    schemas = ("state_schema", "context_schema", "input_schema", "output_schema")
    compile_options: dict[str, Any] = {name: value for name, value in options.items() if name not in schemas}
    compile_options["name"] = options.get("name") or agent.name
    app = builder.compile(**compile_options)
    if options.get("input_schema") is None:
        _guard_variables(app, _settable_variables(agent))
    return app


def _settable_variables(agent: Agent) -> list[str]:
    return [variable.name for variable in agent.variables if variable.settable]


def _create_input_schema(state_schema: type[Any], agent: Agent) -> type[Any]:
    """Return a schema of the messages, and of the variables that whoever calls the app may set."""
    channels = get_type_hints(state_schema, include_extras=True)
    fields: dict[str, Any] = {"messages": channels["messages"]}
    if settable := _settable_variables(agent):
        fields["variables"] = TypedDict("Variables", dict.fromkeys(settable, Any), total=False)  # type: ignore[operator]
    return TypedDict("Input", fields, total=False)  # type: ignore[operator, no-any-return]


def _guard_variables(app: CompiledStateGraph[Any, Any, Any, Any], settable: Sequence[str]) -> None:
    """Have the app refuse an input that sets other variables."""

    def check_input(input: Any) -> Any:
        variables = input.get("variables") if isinstance(input, Mapping) else None
        if not isinstance(variables, Mapping | None):
            raise InputError(f"`variables` must be a mapping of names to values, but is {variables!r:.60}")
        for name in variables or ():
            if name not in settable:
                raise InputError(
                    f"the variable {name!r} cannot be set by who calls the app{suggestion(str(name), settable)}: "
                    "whoever builds the agent may declare it `settable`"
                )
        return input

    # The input passes through the graph's start, whose input schema knows channels, and not what is in them.
    app.nodes[START] = app.nodes[START].copy({"bound": RunnableLambda(check_input)})
