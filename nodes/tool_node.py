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
from arq_graph.nodes.turns import result_of
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.sections import clean

MAX_ERROR = 500

ToolResult = ToolMessage | Command[Any]


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

    def refused(request: ToolCallRequest) -> ToolMessage | None:
        why = refusal(agent, Reader(request.state, messages_key, agent=agent.name), request.tool_call)
        return None if why is None else result_of(request.tool_call, why)

    def gate(request: ToolCallRequest, execute: Callable[[ToolCallRequest], ToolResult]) -> ToolResult:
        result: ToolResult | None = refused(request)
        if result is None:
            tool = request.tool
            if getattr(tool, "coroutine", None) is not None and getattr(tool, "func", None) is None:
                raise ToolError(
                    f"tool {request.tool_call['name']!r} is async only and cannot run in a sync run: use ainvoke or "
                    "astream, or give the tool a sync function as well"
                )
            result = execute(request)
        return _reported(request, result, messages_key)

    async def agate(
        request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        return _reported(request, refused(request) or await execute(request), messages_key)

    return ToolNode(
        list(agent.toolbox.values()),
        handle_tool_errors=_said,
        messages_key=messages_key,
        wrap_tool_call=gate,
        awrap_tool_call=agate,
    )


def _said(error: Exception) -> str:
    """What the model is told of an error: its kind and its first words, no traceback."""
    if isinstance(error, ToolError):
        raise error
    return f"{type(error).__name__}: {error}"[:MAX_ERROR]


def _reported(request: ToolCallRequest, result: ToolResult, messages_key: str) -> ToolResult:
    call, messages = request.tool_call, [result]
    if isinstance(result, Command):  # a tool may write to the state, and its result with it
        messages = result.update.get(messages_key, []) if isinstance(result.update, dict) else []
    own = [m for m in messages if isinstance(m, ToolMessage) and m.tool_call_id == call["id"]]
    emit(
        ToolCalled(
            turn=Conversation(Reader(request.state, messages_key).messages()).turn,
            tool=call["name"],
            arguments=dict(call["args"]),
            call_id=call["id"] or "",
            status=own[0].status if own else "success",
            # A lone surrogate in an event is an error, and would turn the tool's success into one.
            result=clean(own[0].text) if own else "",
        )
    )
    return result
