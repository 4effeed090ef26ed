"""The graph of a compiled agent: the steps of a turn as nodes, and the edges between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args, get_type_hints

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer
from typing_extensions import TypedDict  # Pydantic needs this one before Python 3.12

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AgentState
from arq_graph.agent.takeover import hand_over
from arq_graph.apps.settings import ReSpAct
from arq_graph.errors import InputError
from arq_graph.nodes.approval import CallApprover
from arq_graph.nodes.blueprint_node import BlueprintNode
from arq_graph.nodes.checks import InputChecker
from arq_graph.nodes.confirmation import is_forgetful_subgraph, warn_of_unstored_questions
from arq_graph.nodes.early_reply import EarlyReply, route_early_reply
from arq_graph.nodes.history_summarizer import HistorySummarizer
from arq_graph.nodes.knowledge_retriever import KnowledgeRetriever
from arq_graph.nodes.node import Node
from arq_graph.nodes.parallel import Parallel
from arq_graph.nodes.strategy import Strategy
from arq_graph.nodes.takeover import TAKEN_OVER, TakeoverRecorder, is_hand_over, route_takeover
from arq_graph.nodes.tool_node import guarded_tools, route_calls

Route = Callable[[Any], Any]


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


class TurnGraph:
    """The graph of a turn: its nodes and edges are added step by step, and then it is compiled.

    Args:
        agent: The specification.
        options: What belongs to LangGraph.
        summarizer: Summarises a history that is too long after the reply; None: nothing does.
    """

    def __init__(
        self, agent: Agent, options: GraphOptions, summarizer: HistorySummarizer | None = None
    ) -> None:
        self._agent = agent
        self._options = options
        self._summarizer = summarizer
        state_schema = options.get("state_schema", AgentState)
        self._builder: StateGraph[Any, Any, Any, Any] = StateGraph(
            state_schema,
            options.get("context_schema"),
            input_schema=options.get("input_schema") or self._create_input_schema(state_schema),
            output_schema=options.get("output_schema"),
        )
        self._first_nodes: list[str] = []
        self._builder.add_node(TAKEN_OVER, TakeoverRecorder(agent))
        self._searches: list[str] = []
        if agent.knowledge:
            self._searches.append("knowledge")
            self._builder.add_node("knowledge", KnowledgeRetriever(agent))

    def compile(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Compile the graph; without an input schema of its own, callers can only set variables that are `settable`."""
        destinations = [*self._first_nodes, TAKEN_OVER]
        self._builder.add_conditional_edges(START, route_takeover(self._first_nodes), destinations)
        compile_options: dict[str, Any] = dict(self._options)
        for schema in ("state_schema", "context_schema", "input_schema", "output_schema"):
            compile_options.pop(schema, None)
        compile_options["name"] = self._options.get("name") or self._agent.name
        app = self._builder.compile(**compile_options)
        if self._options.get("input_schema") is None:
            # The input passes through the graph's start, whose input schema knows channels, and not what is in them.
            guard = _InputGuard(self._agent, self._settable_variables)
            app.nodes[START] = app.nodes[START].copy({"bound": guard})
        return app

    def add_reply(self, reviser: BlueprintNode[Any]) -> None:
        """End the turn with a revised reply."""
        self._builder.add_node("message", reviser)
        self._add_end("message")

    def add_matching(self, matcher: BlueprintNode[Any], next_node: str = "message") -> None:
        """Begin the turn by matching the guidelines, and by searching the agent's knowledge at the same time."""
        self._builder.add_node("match", matcher)
        self._begin(["match", *self._searches], next_node)

    def add_rounds(self, matcher: BlueprintNode[Any], caller: Strategy) -> None:
        """Decide on all tools at once, run them, and match and decide again, side by side, what the results change."""
        self.add_matching(matcher, "call_tools")
        self._builder.add_node("call_tools", caller)
        self._builder.add_node("match_again", matcher)
        self._builder.add_node("call_tools_again", caller)
        # Waits for both: an edge from one of them would not see what the other wrote.
        self._builder.add_node("next_round", lambda _: {})
        self._builder.add_edge(["match_again", "call_tools_again"], "next_round")
        self._builder.add_conditional_edges("call_tools", route_calls(self._agent))
        self._builder.add_conditional_edges("next_round", route_calls(self._agent, again="call_tools"))
        self._add_tools(["match_again", "call_tools_again"])

    def add_eager_turn(
        self,
        matcher: BlueprintNode[Any],
        caller: Strategy,
        reviser: BlueprintNode[Any],
        *,
        has_progress: bool,
    ) -> None:
        """Decide on tools while guidelines are matched, and draft the reply during the re-match."""
        self._builder.add_node("match_and_act", Parallel(matcher, caller))
        self._builder.add_node("match_and_act_again", Parallel(matcher, caller, reviser))
        route = route_calls(self._agent)
        self._first_nodes.extend(self._searches or ["match_and_act"])
        for search in self._searches:
            self._builder.add_edge(search, "match_and_act")
        self._admit(["match_and_act"], route)
        after_draft = "progress" if has_progress else END
        route = route_calls(self._agent, otherwise=after_draft)
        self._add_end("match_and_act_again", route, after_draft)
        self._add_tools(["match_and_act_again"])

    def add_actions(self, matcher: BlueprintNode[Any], name: str, strategy_node: Strategy) -> None:
        """Take one action at a time, and match again after each result."""
        self.add_matching(matcher, name)
        self._builder.add_node(name, strategy_node)
        self._builder.add_conditional_edges(name, route_calls(self._agent))
        if self._agent.toolbox:
            self._builder.add_node("match_again", matcher)
            self._builder.add_edge("match_again", name)
        self._add_tools(["match_again"])

    def add_strategy(self, name: str, strategy_node: Strategy) -> None:
        """Take one action at a time, without guidelines; the last words are the reply."""
        self._builder.add_node(name, strategy_node)
        self._begin(self._searches, name)
        self._add_end(name, route_calls(self._agent, otherwise=END))
        self._add_tools([name])

    def add_speaker(self, speaker: Strategy, settings: ReSpAct) -> None:
        """Think, speak or act, in a chat or in a task, with a world or without."""
        # Loads networkx, which the other strategies have no use for.
        from arq_graph.nodes.speaking.listen import Listener, route_moves
        from arq_graph.nodes.speaking.move_schema import WORLD_CALL
        from arq_graph.nodes.speaking.world import WorldActor

        self._builder.add_node("speak", speaker)
        self._add_tools(["speak"])
        destinations = [END]
        destinations += [name for name in ("tools", "approve") if name in self._builder.nodes]
        if settings.environment is None:
            self._begin(self._searches, "speak")
        else:
            world = WorldActor(settings.environment, agent=self._agent)
            self._builder.add_node("look", world.look)
            self._builder.add_node(WORLD_CALL, world)
            self._begin(["look", *self._searches], "speak")
            self._builder.add_edge(WORLD_CALL, "speak")
            destinations.append(WORLD_CALL)
        if settings.is_task:
            self._builder.add_node("listen", Listener())
            has_checks = "check_input" in self._builder.nodes
            self._add_answer_edges("listen", self._first_nodes if has_checks else self._searches or ["speak"])
            destinations.append("listen")
        self._add_end("speak", route_moves(self._agent, otherwise=END), destinations=destinations)

    def add_progress(self, tracker: Node) -> None:
        """Track milestones beside the matching, so that a plan made after both sees them, and after the reply."""
        self._builder.add_node("progress", tracker)
        self._first_nodes.append("progress")
        if self._agent.toolbox:
            self._builder.add_edge("tools", "progress")
        self._builder.add_edge("message", "progress")

    def _begin(self, first_nodes: Sequence[str], following: str) -> None:
        """Begin the turn with nodes that send nothing, side by side, and go on once they are done."""
        if first_nodes or self._agent.select_checks("input"):
            self._first_nodes.extend(first_nodes)
            self._admit(first_nodes, following)
        else:
            self._first_nodes.append(following)

    def _admit(self, nodes: Sequence[str], following: str | Route) -> None:
        """Go on from nodes that send nothing, once the input checks that run beside them have passed."""
        if self._agent.select_checks("input"):
            self._first_nodes.append("check_input")
            self._builder.add_node("check_input", InputChecker(self._agent))
            self._builder.add_node("admit", EarlyReply(self._agent))
            self._builder.add_edge([*nodes, "check_input"], "admit")
            nodes, following = ["admit"], route_early_reply(self._agent, otherwise=following)
        for node in nodes:
            if callable(following):
                self._builder.add_conditional_edges(node, following)
            else:
                self._builder.add_edge(node, following)

    def _add_answer_edges(self, node: str, next_nodes: Sequence[str]) -> None:
        """Have a long task summarised between an answer and the next move, since it ends with no reply before."""
        if self._summarizer is not None:
            self._builder.add_node("summarize_task", self._summarizer)
            self._builder.add_edge(node, "summarize_task")
            node = "summarize_task"
        for next_node in next_nodes:
            self._builder.add_edge(node, next_node)

    def _add_end(
        self,
        node: str,
        route: Callable[[Any], Any] | None = None,
        end: str = END,
        destinations: Sequence[str] = (),
    ) -> None:
        """Add the edges of a node that may end the turn, in which case `route` leads to `end`.

        If the history is too long then, they lead to the summarizer, too.
        """
        summarizer = self._summarizer
        if route is not None:
            destinations = destinations or get_args(route.__annotations__["return"])

        def route_to_summary(state: Any) -> Any:
            destination = route(state) if route else end
            is_forgotten = self._options.get("input_schema") is None and is_forgetful_subgraph()
            if destination != end or summarizer is None:
                return destination
            if not summarizer.should_run(state, is_forgotten=is_forgotten):
                return destination
            return "summarize" if end == END else [end, "summarize"]

        names = list(destinations or [end])
        if summarizer is not None:
            names.append("summarize")
            if "summarize" not in self._builder.nodes:
                self._builder.add_node("summarize", summarizer)
        self._builder.add_conditional_edges(node, route_to_summary, names)

    def _add_tools(self, next_nodes: list[str]) -> None:
        """Add the node that runs calls, and the one that asks an operator about them, if the agent needs them."""
        if not self._agent.toolbox:
            return
        # A tool may have any channel injected.
        tool_node = guarded_tools(self._agent)
        self._builder.add_node("tools", tool_node, input_schema=self._builder.state_schema)
        if is_hand_over(self._agent, hand_over.__name__):
            self._builder.add_node("hand_over", EarlyReply(self._agent))
            self._builder.add_edge("tools", "hand_over")
            self._builder.add_conditional_edges(
                "hand_over", route_early_reply(self._agent, otherwise=next_nodes)
            )
            next_nodes = ["hand_over"]
        else:
            for node in next_nodes:
                self._builder.add_edge("tools", node)
        if self._agent.get_confirmed_tools("operator", "interrupt"):
            self._builder.add_node("approve", CallApprover(self._agent))
            route = route_calls(self._agent, approve=None, otherwise=next_nodes)
            self._builder.add_conditional_edges("approve", route)

    @property
    def _settable_variables(self) -> list[str]:
        return [variable.name for variable in self._agent.variables if variable.settable]

    def _create_input_schema(self, state_schema: type[Any]) -> type[Any]:
        """Return a schema of the messages, and of the variables that callers of the app may set."""
        channels = get_type_hints(state_schema, include_extras=True)
        fields: dict[str, Any] = {"messages": channels["messages"]}
        if settable := self._settable_variables:
            fields["variables"] = TypedDict("Variables", dict.fromkeys(settable, Any), total=False)  # type: ignore[operator]
        return TypedDict("Input", fields, total=False)  # type: ignore[operator, no-any-return]


def collect_channels(state_schema: type[Any]) -> dict[str, Any]:
    """Return the channels of a state besides the messages, with their types.

    Raises:
        InputError: The state lacks channels that an agent needs, or its messages would replace each other.
    """
    channels = get_type_hints(state_schema, include_extras=True)
    missing = [name for name in get_type_hints(AgentState) if name not in channels]
    if missing:
        raise InputError(
            f"state_schema={state_schema.__name__} lacks the channels {', '.join(missing)}, without which an agent "
            "forgets what it has concluded: make it a subclass of arq_graph.AgentState"
        )
    reducers = getattr(channels.pop("messages"), "__metadata__", ())
    if not any(map(callable, reducers)):
        raise InputError(
            f"state_schema={state_schema.__name__} has messages without a reducer, so that each new one would replace "
            "all before: write messages: Annotated[list[AnyMessage], add_messages], or leave the line out"
        )
    return channels


class _InputGuard(Runnable[Any, Any]):
    """Passes the input on, and refuses an empty one, or one that sets variables that aren't settable."""

    def __init__(self, agent: Agent, settable: Sequence[str]) -> None:
        self._agent = agent
        self._settable = settable

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Return the input, or raise InputError."""
        if isinstance(input, Mapping) and not any(input.values()):
            raise InputError(
                'the input is empty: give it a message to answer, such as {"messages": [("user", "Hello")]}'
            )
        if self._agent.get_confirmed_tools("customer") and is_forgetful_subgraph():
            warn_of_unstored_questions(self._agent)
        variables = input.get("variables") if isinstance(input, Mapping) else None
        if not isinstance(variables, Mapping | None):
            raise InputError(f"`variables` must be a mapping of names to values, but is {variables!r:.60}")
        for name in variables or ():
            if name not in self._settable:
                raise InputError(
                    f"the variable {name!r} cannot be set by callers of the app: "
                    "whoever builds the agent may declare it `settable`"
                )
        return input

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Return the input, or raise InputError."""
        return self.invoke(input)
