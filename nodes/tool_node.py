"""Running tools: LangGraph's `ToolNode` behind the gate of the active guidelines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from arq_graph.agent.spec import Agent
from arq_graph.errors import ToolError
from arq_graph.nodes.channels import Reader, emit
from arq_graph.nodes.events import ToolCalled
from arq_graph.nodes.gate import refusal
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.sections import clean

MAX_ERROR = 500

ToolResult = ToolMessage | Command[Any]


def guarded_tools(agent: Agent, *, name: str = "tools", messages_key: str = "messages") -> ToolNode:
    """Make the node that runs the agent's tools.

    A call of a tool that no active guideline grants is refused, wherever the call comes from; so is one that a
    guideline of another turn granted, and one that needs an agreement which nobody has given to it. A refusal, an
    error of the tool and wrong arguments become tool messages with status `error`, and the turn goes on. Send it one
    call at a time (`route_calls` does): a call that has finished is then not repeated after a crash. A tool gets its
    call's id by an argument annotated `Annotated[str, InjectedToolCallId]`, to recognise a repetition by.

    Args:
        agent: The specification.
        name: The node's name in traces.
        messages_key: Channel of the messages.
    """

    def refused(request: ToolCallRequest) -> ToolMessage | None:
        why = refusal(agent, Reader(request.state, messages_key, agent=agent.name), request.tool_call)
        return None if why is None else _error(request, why)

    def gate(request: ToolCallRequest, execute: Callable[[ToolCallRequest], ToolResult]) -> ToolResult:
        result = refused(request)
        if result is None:
            _require_sync(request)
            return _reported(request, execute(request), messages_key)
        return _reported(request, result, messages_key)

    async def agate(
        request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        result = refused(request)
        return _reported(request, await execute(request) if result is None else result, messages_key)

    return ToolNode(
        list(agent.toolbox.values()),
        name=name,
        handle_tool_errors=_said,
        messages_key=messages_key,
        wrap_tool_call=gate,
        awrap_tool_call=agate,
    )


def _require_sync(request: ToolCallRequest) -> None:
    tool = request.tool
    if (
        tool is not None
        and getattr(tool, "coroutine", None) is not None
        and getattr(tool, "func", None) is None
    ):
        raise ToolError(
            f"tool {tool.name!r} is async only and cannot run in a sync run: use ainvoke or astream, "
            "or give the tool a sync function as well"
        )


def _said(error: Exception) -> str:
    """What the model is told of an error: its kind and its first words, no traceback."""
    if isinstance(error, ToolError):
        raise error
    return f"{type(error).__name__}: {error}"[:MAX_ERROR]


def _error(request: ToolCallRequest, content: str) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(content, name=call["name"], tool_call_id=call["id"] or "", status="error")


def _reported(request: ToolCallRequest, result: ToolResult, messages_key: str) -> ToolResult:
    message = _message_of(request, result, messages_key)
    emit(
        ToolCalled(
            turn=Conversation(Reader(request.state, messages_key).messages()).turn,
            tool=request.tool_call["name"],
            arguments=dict(request.tool_call["args"]),
            call_id=request.tool_call["id"] or "",
            status=message.status if message else "success",
            # A lone surrogate in an event is an error, and would turn the tool's success into one.
            result=clean(message.text) if message else "",
        )
    )
    return result


def _message_of(request: ToolCallRequest, result: ToolResult, messages_key: str) -> ToolMessage | None:
    if isinstance(result, ToolMessage):
        return result
    if isinstance(result, Command) and isinstance(result.update, dict):
        for message in result.update.get(messages_key, ()):
            if isinstance(message, ToolMessage) and message.tool_call_id == request.tool_call["id"]:
                return message
    return None
