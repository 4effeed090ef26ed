"""Where a turn goes next: the conditional edges of the guided agent, for graphs of your own too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict

from langchain_core.messages import AnyMessage, ToolCall
from langgraph.types import Send

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import ToolInsight
from arq_graph.nodes.channels import Reader, our_channels
from arq_graph.nodes.gate import granted_tools
from arq_graph.nodes.turns import pending_calls, rounds_of_turn
from arq_graph.reasoning.conversation import Conversation


def sends(calls: Sequence[ToolCall], tools: str) -> list[Send]:
    """One `Send` per call: a call that has finished is not repeated when the turn resumes after a crash."""
    return [Send(tools, [call]) for call in calls]


def route_calls(
    agent: Agent,
    *,
    tools: str = "tools",
    approve: str = "approve",
    otherwise: str = "message",
    messages_key: str = "messages",
) -> Callable[[Any], str | list[Send]]:
    """Route behind the tool caller: to the operator's approval, to the tools, or past them.

    Args:
        agent: The specification.
        tools: Name of the node that runs tools.
        approve: Name of the node that asks the operator.
        otherwise: Where to go without a call.
        messages_key: Channel of the messages.
    """

    asked = agent.confirmed_by("operator", "interrupt")

    def route(state: Any) -> str | list[Send]:
        calls = pending_calls(Reader(state, messages_key).messages())
        if any(call["name"] in asked for call in calls):
            return approve
        return sends(calls, tools) or otherwise

    return route


def route_approved(
    *,
    tools: str = "tools",
    otherwise: Sequence[str] = ("match_again", "call_tools_again"),
    messages_key: str = "messages",
) -> Callable[[Any], list[Send] | list[str]]:
    """Route behind the approval: to the tools with what is left to run, or to the second look."""

    def route(state: Any) -> list[Send] | list[str]:
        calls = pending_calls(Reader(state, messages_key).messages())
        return sends(calls, tools) or list(otherwise)

    return route


def route_round(
    agent: Agent,
    *,
    max_rounds: int = 3,
    tools: str = "tools",
    approve: str = "approve",
    call_tools: str = "call_tools",
    otherwise: str = "message",
    messages_key: str = "messages",
) -> Callable[[Any], str | list[Send]]:
    """Route behind the second look: another round only for a new call, or a tool that became available.

    Args:
        agent: The specification.
        max_rounds: How many times tools may be called in one turn.
        tools: Name of the node that runs tools.
        approve: Name of the node that asks the operator.
        call_tools: Name of the tool caller's node.
        otherwise: Where to go when nothing is left to call.
        messages_key: Channel of the messages.
    """
    to_calls = route_calls(agent, tools=tools, approve=approve, otherwise="", messages_key=messages_key)

    def route(state: Any) -> str | list[Send]:
        if calls := to_calls(state):
            return calls
        reader = Reader(state, messages_key, agent=agent.name)
        messages = reader.messages()
        turn = Conversation(messages).turn
        insights = reader.records("tool_insights", ToolInsight)
        considered = {insight.tool for insight in insights if insight.turn == turn}
        new = granted_tools(agent, reader, turn).keys() - considered
        return call_tools if new and rounds_of_turn(messages, agent.name) < max_rounds else otherwise

    # LangGraph hands a route the channels that its annotation names; without one, those of the graph's own schema,
    # which may have `messages` alone.
    channels = {
        messages_key: list[AnyMessage],
        **our_channels("guideline_matches", "tool_insights"),
    }
    route.__annotations__["state"] = TypedDict("RoundState", channels, total=False)  # type: ignore[operator]
    return route
