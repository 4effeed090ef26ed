"""A desk of a few tools for the offline model: what it is asked, what it calls, what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph.apps.planning import create_planning_agent


def ask(tools: list[Callable[..., Any]], *lines: str) -> tuple[list[dict[str, Any]], str]:
    """The arguments of the calls that were made after the last of the customer's lines, and the reply to it."""
    app = create_planning_agent("offline", tools, checkpointer=MemorySaver())
    thread: Any = {"configurable": {"thread_id": "t"}}
    seen, new = 0, []
    for line in lines:
        messages = app.invoke({"messages": [("user", line)]}, thread)["messages"]
        new, seen = messages[seen:], len(messages)
    calls = [call["args"] for m in new if isinstance(m, AIMessage) for call in m.tool_calls]
    return calls, str(new[-1].text)
