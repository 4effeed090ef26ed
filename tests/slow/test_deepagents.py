"""An agent of deepagents takes the middleware as one of `create_agent` does."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, ScriptedChatModel
from arq_graph.middleware import GuidelineMiddleware
from tests.brain import brain

pytestmark = pytest.mark.slow


def close_shop(day: str) -> str:
    """Close the shop for a day."""
    return f"closed on {day}"


def pay() -> str:
    """Pay."""
    return "paid"


def test_a_deep_agent_follows_the_guidelines_and_acts_after_a_yes() -> None:
    deepagents = pytest.importorskip("deepagents", reason="deepagents is not installed")
    rules = [
        Guideline("they want a day off", "close", tools=[close_shop]),
        Guideline("never", "pay", tools=[pay]),
    ]
    shop = Agent("Shop", "You help.", rules, confirm={"close_shop": "customer"})
    proposed = {"pay": {}, "close_shop": {"day": "Monday"}}
    calls = [tool_call(name=name, args=args, id=name) for name, args in proposed.items()]
    own = ScriptedChatModel([AIMessage("", tool_calls=calls), "Done."])
    middleware = [GuidelineMiddleware(brain({"G1": 9}), shop)]
    app = deepagents.create_deep_agent(own, middleware=middleware, checkpointer=MemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    first, last = (
        app.invoke({"messages": [("user", text)]}, thread)["messages"] for text in ("A day off!", "Yes")
    )
    assert first[-1].text.endswith('Close shop (day: "Monday")\nReply yes to go ahead.')
    assert [message.text for message in last if isinstance(message, ToolMessage)] == ["closed on Monday"]
    offered = {tool["function"]["name"] for tool in own.calls[0].kwargs["tools"]}
    assert {"close_shop", "read_file"} <= offered
    assert "pay" not in offered
