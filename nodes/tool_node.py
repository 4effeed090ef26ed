"""Running tools: the router that leads to them, and LangGraph's `ToolNode` with a guard around each call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import wraps
from typing import Any, Literal, TypedDict

from langchain_core.messages import (
    AnyMessage,
    BaseMessage,
    HumanMessage,
    ToolCall,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.tools import StructuredTool
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, Send

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import ToolVerdict
from arq_graph.errors import unwrap_exception_group
from arq_graph.nodes.events import ToolCalled
from arq_graph.nodes.gate import find_execution_refusal
from arq_graph.nodes.grants import get_granted_tools
from arq_graph.nodes.messages import find_unanswered_calls, make_tool_message
from arq_graph.nodes.node import Node, get_channel_types
from arq_graph.nodes.state_view import StateView, view_state
from arq_graph.reasoning.sections import clean
from arq_graph.reasoning.steps import run_awaitable

MAX_ERROR_LENGTH = 500
"""Characters of a tool's error that the model sees."""

SPOKE_FOR_CUSTOMER = (
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
    """Return the router after a node that may call tools: to an operator's approval, to the tools, or past them.

    Each call goes to the tools by a `Send` of its own, so that a finished call is not repeated when the turn resumes
    after a crash. The router's return annotation lists its destinations, so a graph draws its edges without a path map.

    Args:
        agent: The specification.
        approve: Name of the node that asks an operator; None in the router after that node. Tools run in the node
            `tools`.
        again: Name of the tool caller's node. Set it after a re-match: if a tool that the caller hasn't considered
            has become available, the caller has another round.
        otherwise: Where to go without a call; may be several nodes.
        messages_key: Channel of the messages.
    """
    tools_to_approve = agent.get_confirmed_tools("operator", "interrupt") if approve else ()
    destinations = [otherwise] if isinstance(otherwise, str) else list(otherwise)
    if agent.toolbox:
        destinations.append("tools")
    if approve and tools_to_approve:
        destinations.append(approve)
    if again:
        destinations.append(again)

    def route(state: Any) -> Any:
        state_view = view_state(agent, state, messages_key)
        sends: list[Send] = []
        if agent.toolbox:
            for placed_call in find_unanswered_calls(state_view.messages):
                if placed_call.call["name"] in tools_to_approve:
                    return approve
                sends.append(Send("tools", [placed_call.call]))
        if sends:
            return sends
        if again:
            verdicts = state_view.read_turn_records("tool_insights", ToolVerdict, state_view.turn_id)
            considered_tools = {verdict.tool for verdict in verdicts}
            if get_granted_tools(agent, state_view).keys() - considered_tools:
                return again
        return otherwise

    route.__annotations__["return"] = Literal[tuple(destinations)]
    if again:
        # LangGraph passes a router the channels that its annotation names. Without one it passes those of the graph's
        # own schema, which may have `messages` alone.
        channels = get_channel_types("guideline_matches", "tool_insights") | {messages_key: list[AnyMessage]}
        route.__annotations__["state"] = TypedDict("RouterState", channels, total=False)  # type: ignore[operator]
    return route


class ToolCallGuard:
    """The guard around each call of a `ToolNode` that has other tools besides the agent's.

    `ToolNode([*agent.toolbox.values(), mine], wrap_tool_call=guard.wrap_tool_call)`; pass `awrap_tool_call` too, for
    async runs. It refuses the same calls as `guarded_tools`. Calls of tools that aren't the specification's pass.

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
        result = self._refuse(request) or handler(_with_sync_function(request))
        return self._accept_result(request, result)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        """Run a call, or refuse it, in an async run."""
        if request.tool_call["name"] not in self.agent.toolbox:
            return await handler(request)
        result = self._refuse(request) or await handler(request)
        return self._accept_result(request, result)

    def _refuse(self, request: ToolCallRequest) -> ToolMessage | None:
        state = view_state(self.agent, request.state, self.messages_key)
        reason = find_execution_refusal(self.agent, state, request.tool_call)
        return make_tool_message(request.tool_call, reason) if reason else None

    def _accept_result(self, request: ToolCallRequest, result: ToolResult) -> ToolResult:
        """Emit an event about a call, and return its result; one that speaks for the customer is replaced."""
        state = view_state(self.agent, request.state, self.messages_key)
        if self._speaks_for_customer(state, result):
            result = make_tool_message(request.tool_call, SPOKE_FOR_CUSTOMER)
        state.emit(self._make_event(request.tool_call, result))
        return result

    def _speaks_for_customer(self, state: StateView, result: ToolResult) -> bool:
        """Return True if a result has a new message of the customer's.

        It would begin a turn, with limits of its own, and could be taken for a yes.
        """
        for message, is_for_this_graph in self._iterate_messages(result):
            if is_for_this_graph and isinstance(message, HumanMessage) and message not in state.messages:
                return True
        return False

    def _make_event(self, call: ToolCall, result: ToolResult) -> ToolCalled:
        tool_message = make_tool_message(call, "", "success")  # a tool may write no message of its own
        for message, _ in self._iterate_messages(result):
            if isinstance(message, ToolMessage) and message.tool_call_id == call["id"]:
                tool_message = message
                break
        return ToolCalled(
            tool=call["name"],
            arguments=dict(call["args"]),
            call_id=call["id"] or "",
            status=tool_message.status,
            # A lone surrogate in an event is an error, and would turn the tool's success into one.
            result=clean(tool_message.text),
        )

    def _iterate_messages(self, result: Any) -> Iterator[tuple[BaseMessage, bool]]:
        """Yield the messages that a tool writes, each with True if it is for this graph and not for its parent.

        A tool may return several updates as a list.
        """
        if isinstance(result, list):
            for item in result:
                yield from self._iterate_messages(item)
        elif isinstance(result, Command):
            update = result.update if isinstance(result.update, dict) else {}
            for message in convert_to_messages(update.get(self.messages_key, [])):
                yield message, result.graph is None
        else:
            yield result, True


class _GuardedToolNode(ToolNode, Node):
    """A `ToolNode` that also gets the channels that its guard reads; a plain one gets only the graph's own channels."""


def guarded_tools(agent: Agent, *, messages_key: str = "messages") -> ToolNode:
    """Make the node that runs the agent's tools.

    It refuses calls of tools that no active guideline of this turn grants, wherever they come from, and calls without
    the agreement that they need. A refusal, an error of the tool and wrong arguments become tool messages with status
    `error`, and the turn continues. Send it one call at a time, as `route_calls` does: a finished call is then not
    repeated after a crash. To recognise a repeated call, a tool can take the call's id in an argument of the type
    `Annotated[str, InjectedToolCallId]`.

    Args:
        agent: The specification.
        messages_key: Channel of the messages.
    """
    guard = ToolCallGuard(agent, messages_key=messages_key)
    node = _GuardedToolNode(
        list(agent.toolbox.values()),
        handle_tool_errors=_describe_error,
        messages_key=messages_key,
        wrap_tool_call=guard.wrap_tool_call,
        awrap_tool_call=guard.awrap_tool_call,
    )
    channels = get_channel_types("guideline_matches", "agreements")
    node.declare_channels(channels | {messages_key: list[AnyMessage]})
    return node


def _with_sync_function(request: ToolCallRequest) -> ToolCallRequest:
    """Return the request with a sync function for a tool that has only an async one, as MCP's have."""
    tool = request.tool
    if not isinstance(tool, StructuredTool) or tool.func is not None or tool.coroutine is None:
        return request
    coroutine = tool.coroutine

    @wraps(coroutine)
    def run(*args: Any, **kwargs: Any) -> Any:
        return run_awaitable(coroutine(*args, **kwargs))

    return request.override(tool=tool.model_copy(update={"func": run}))


def _describe_error(error: Exception) -> str:
    """Return an error's kind and its first words, without a traceback."""
    cause = unwrap_exception_group(error)
    return f"{type(cause).__name__}: {cause}"[:MAX_ERROR_LENGTH]
