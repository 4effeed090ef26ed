"""Where a turn goes next: the conditional edges of the guided agent, for graphs of your own too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict

from langchain_core.messages import AnyMessage
from langgraph.types import Send

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import ToolInsight
from arq_graph.nodes.channels import Reader, our_channels
from arq_graph.nodes.gate import granted_tools
from arq_graph.nodes.turns import pending_calls
from arq_graph.reasoning.conversation import Conversation


def route_calls(
    agent: Agent,
    *,
    tools: str = "tools",
    approve: str | None = "approve",
    again: str | None = None,
    otherwise: str | Sequence[str] = "message",
    messages_key: str = "messages",
) -> Callable[[Any], Any]:
    """Route behind a node that may have called tools: to an operator's approval, to the tools, or past them.

    Each call goes to the tools by a `Send` of its own, so that one that has finished is not repeated when the turn
    resumes after a crash.

    Args:
        agent: The specification.
        tools: Name of the node that runs tools.
        approve: Name of the node that asks an operator; None behind that node itself.
        again: Name of the tool caller's node, behind a second look: it has another round where a tool that it did not
            consider has become available.
        otherwise: Where to go without a call; may be several nodes.
        messages_key: Channel of the messages.
    """
    asked = agent.confirmed_by("operator", "interrupt") if approve else ()

    def route(state: Any) -> Any:
        reader = Reader(state, messages_key, agent=agent.name)
        messages = reader.messages()
        calls = pending_calls(messages)
        if any(call["name"] in asked for call in calls):
            return approve
        if calls:
            return [Send(tools, [call]) for call in calls]
        if again:
            turn = Conversation(messages).turn
            insights = reader.records("tool_insights", ToolInsight)
            considered = {insight.tool for insight in insights if insight.turn == turn}
            if granted_tools(agent, reader, turn).keys() - considered:
                return again
        return otherwise if isinstance(otherwise, str) else list(otherwise)

    if again:
        # LangGraph hands a route the channels that its annotation names; without one, those of the graph's own
        # schema, which may have `messages` alone.
        channels = {messages_key: list[AnyMessage], **our_channels("guideline_matches", "tool_insights")}
        route.__annotations__["state"] = TypedDict("Routed", channels, total=False)  # type: ignore[operator]
    return route
