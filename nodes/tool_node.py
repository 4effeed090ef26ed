"""Running tools: the edge that leads to them, and LangGraph's `ToolNode` behind the gate of the active guidelines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import wraps
from typing import Any, Literal, TypedDict

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, ToolMessage, convert_to_messages
from langchain_core.tools import StructuredTool
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, Send

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import ToolInsight
from arq_graph.errors import unwrap_exception_group
from arq_graph.nodes.channels import Node, StateView, get_channel_types
from arq_graph.nodes.events import ToolCalled
from arq_graph.nodes.gate import find_refusal, get_granted_tools
from arq_graph.nodes.messages import make_tool_message, unanswered_calls
from arq_graph.reasoning.sections import clean
from arq_graph.reasoning.steps import run_awaitable

MAX_ERROR = 500
FOR_THE_CUSTOMER = (
    "the tool ran, but its update was refused: it wrote a message in the customer's name; what a tool found belongs in "
    "its result"
)

ToolResult = ToolMessage | Command[Any]


def route_calls(
    agent: Agent,
    *,
    approve: str | None = "approve",
    again: str | None = None,
    otherwise: str | Sequence[str] = "message",
    messages_key: str = "messages",
) -> Callable[[Any], str | Sequence[str] | list[Send]]:
    """Return the router behind a node that may call tools: to an operator's approval, to the tools, or past them.

    Each call goes to the tools by a `Send` of its own, so that a finished call is not repeated when the turn resumes
    after a crash. The router's return annotation lists its destinations, so a graph draws its edges without a path map.

    Args:
        agent: The specification.
        approve: Name of the node that asks an operator; None behind that node itself. Tools run in the node `tools`.
        again: Name of the tool caller's node. Set it behind a re-match: if a tool that the caller hasn't considered
            has become available, the caller has another round.
        otherwise: Where to go without a call; may be several nodes.
        messages_key: Channel of the messages.
    """
    tools_to_approve = agent.confirmed_by("operator", "interrupt") if approve else ()
    destinations = [otherwise] if isinstance(otherwise, str) else list(otherwise)

    def route(state: Any) -> Any:
        state_view = StateView(state, messages_key, agent=agent.name)
        calls = unanswered_calls(state_view.messages)
        if any(call["name"] in tools_to_approve for call in calls):
            return approve
        if calls:
            return [Send("tools", [call]) for call in calls]
        if again and _has_new_tools(agent, state_view):
            return again
        return otherwise

    if agent.toolbox:
        destinations.append("tools")
    if approve and tools_to_approve:
        destinations.append(approve)
    if again:
        destinations.append(again)
    route.__annotations__["return"] = Literal[tuple(destinations)]
    if again:
        # LangGraph passes a router the channels that its annotation names. Without one it passes those of the graph's
        # own schema, which may have `messages` alone.
        channels = {messages_key: list[AnyMessage], **get_channel_types("guideline_matches", "tool_insights")}
        route.__annotations__["state"] = TypedDict("RouterState", channels, total=False)  # type: ignore[operator]
    return route


def _has_new_tools(agent: Agent, state: StateView) -> bool:
    insights = state.read_turn_records("tool_insights", ToolInsight, state.turn)
    considered = {insight.tool for insight in insights}
    return bool(get_granted_tools(agent, state).keys() - considered)


class ToolGate:
    """The gate around a `ToolNode` that has other tools besides the agent's.

    `ToolNode([*agent.toolbox.values(), mine], wrap_tool_call=gate.wrap_tool_call)`; give `awrap_tool_call`, too, for
    async runs. It refuses the same calls as `guarded_tools`. Calls of tools that the specification does not name pass.

    Args:
        agent: The specification.
        messages_key: Channel of the messages.
    """

    def __init__(self, agent: Agent, *, messages_key: str = "messages") -> None:
        self.agent = agent
        self.messages_key = messages_key

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        """Run a call, or refuse it."""
        if request.tool_call["name"] not in self.agent.toolbox:
            return handler(request)
        return self._reported(request, self._refused(request) or handler(_for_sync_runs(request)))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        """Run a call, or refuse it, in an async run."""
        if request.tool_call["name"] not in self.agent.toolbox:
            return await handler(request)
        return self._reported(request, self._refused(request) or await handler(request))

    def _reader(self, request: ToolCallRequest) -> StateView:
        return StateView(request.state, self.messages_key, agent=self.agent.name)

    def _refused(self, request: ToolCallRequest) -> ToolMessage | None:
        why = find_refusal(self.agent, self._reader(request), request.tool_call)
        return None if why is None else make_tool_message(request.tool_call, why)

    def _reported(self, request: ToolCallRequest, result: ToolResult) -> ToolResult:
        state, call, written = self._reader(request), request.tool_call, [*self._written(result)]
        before = state.messages
        if any(here and isinstance(m, HumanMessage) and m not in before for m, here in written):
            # It would begin a turn, with bounds of its own, and could be taken for a yes.
            result = make_tool_message(call, FOR_THE_CUSTOMER)
            written = [(result, True)]
        own = [m for m, _ in written if isinstance(m, ToolMessage) and m.tool_call_id == call["id"]]
        called = ToolCalled(
            tool=call["name"],
            arguments=dict(call["args"]),
            call_id=call["id"] or "",
            status=own[0].status if own else "success",
            # A lone surrogate in an event is an error, and would turn the tool's success into one.
            result=clean(own[0].text) if own else "",
        )
        state.emit(called)
        return result

    def _written(self, result: Any) -> Iterator[tuple[BaseMessage, bool]]:
        """The messages that a tool writes, for it may update the state, each with whether it is for this graph."""
        if isinstance(result, list):
            for each in result:
                yield from self._written(each)
        elif isinstance(result, Command):
            update = result.update if isinstance(result.update, dict) else {}
            for message in convert_to_messages(update.get(self.messages_key, [])):
                yield message, result.graph is None
        else:
            yield result, True


class _GuardedToolNode(ToolNode, Node):
    """A `ToolNode` that names the channels its gate reads; else it gets those of the graph's own schema alone."""


def guarded_tools(agent: Agent, *, messages_key: str = "messages") -> ToolNode:
    """Make the node that runs the agent's tools.

    A call of a tool that no active guideline grants is refused, wherever the call comes from; so is one that a
    guideline of another turn granted, and one that needs an agreement which nobody has given to it. A refusal, an
    error of the tool and wrong arguments become tool messages with status `error`, and the turn goes on. Send it one
    call at a time (`route_calls` does): a call that has finished is then not repeated after a crash. A tool gets its
    call's id by an argument annotated `Annotated[str, InjectedToolCallId]`, to recognise a repetition by.

    Args:
        agent: The specification.
        messages_key: Channel of the messages.
    """

    gate = ToolGate(agent, messages_key=messages_key)
    node = _GuardedToolNode(
        list(agent.toolbox.values()),
        handle_tool_errors=_said,
        messages_key=messages_key,
        wrap_tool_call=gate.wrap_tool_call,
        awrap_tool_call=gate.awrap_tool_call,
    )
    node.declare_channels(
        {messages_key: list[AnyMessage], **get_channel_types("guideline_matches", "agreements")}
    )
    return node


def _for_sync_runs(request: ToolCallRequest) -> ToolCallRequest:
    """A request whose tool, where that is async only, such as MCP's, has a sync function as well."""
    tool = request.tool
    if not isinstance(tool, StructuredTool) or tool.func is not None or (coroutine := tool.coroutine) is None:
        return request

    @wraps(coroutine)
    def run(*args: Any, **kwargs: Any) -> Any:
        return run_awaitable(coroutine(*args, **kwargs))

    return request.override(tool=tool.model_copy(update={"func": run}))


def _said(error: Exception) -> str:
    """What the model is told of an error: its kind and its first words, no traceback."""
    cause = unwrap_exception_group(error)
    return f"{type(cause).__name__}: {cause}"[:MAX_ERROR]
