"""A whole turn of a guided agent through each provider's class: what arrives at the provider, and what comes of it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from arq_graph import Agent, Guideline, create_guided_agent, track_usage
from arq_graph.models.offline.model import OfflineChatModel
from tests.order_tools import get_order
from tests.slow.providers.rows import ROWS, SLOW, documented, serving
from tests.slow.providers.stub import Asked, Said

pytestmark = SLOW

WHERE = "Where is my order A-1?"
MARKED = [name for name, cells in documented()[1].items() if cells["caching"] == "marked"]
KINDS: dict[str, Any] = {
    "system": SystemMessage,
    "developer": SystemMessage,
    "assistant": AIMessage,
    "model": AIMessage,
}


def offline(asked: Asked) -> Said:
    """The offline model's answer; where no schema came with the request, the prompt is searched for one."""
    in_prompt = re.search(r"JSON schema.*:\n(\{.*\})", asked.prompt)
    schema = asked.schema or (in_prompt and json.loads(in_prompt[1]))
    if not schema:
        return Said("I would rather say it in words.")
    messages = [KINDS.get(role, HumanMessage)(text) for role, text in asked.messages]
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    return Said(str(OfflineChatModel().invoke(messages, response_format=form).text))


def desk() -> Agent:
    rule = Guideline(
        "the customer asks where an order is", "look it up and tell its status", tools=[get_order]
    )
    return Agent("Desk", "You help with orders. " * 30, [rule])


def says(text: str, *before: Any) -> dict[str, Any]:
    return {"messages": [*before, HumanMessage(text, id=f"h{len(before)}")]}


@pytest.mark.parametrize("name", ROWS)
async def test_a_turn_with_a_tool_is_the_same_through_every_class_sync_and_async(name: str):
    expected = create_guided_agent("offline", desk()).invoke(says(WHERE))
    stub, make = serving(name, offline)
    with stub, track_usage() as used:
        app = create_guided_agent(make(), desk())
        for state in (app.invoke(says(WHERE)), await app.ainvoke(says(WHERE))):
            assert [each.type for each in state["messages"]] == ["human", "ai", "tool", "ai"]
            assert state["messages"][-1].text == expected["messages"][-1].text
            assert [match["active"] for match in state["guideline_matches"]] == [True]
    assert set(used.by_module) == {"matcher", "tools", "message"}


@pytest.mark.parametrize("name", ROWS)
def test_nothing_of_the_answers_streams_through_the_graph(name: str):
    stub, make = serving(name, offline)
    with stub:
        app = create_guided_agent(make(streaming=True) if "OpenAI" in name else make(), desk())
        parts = [part for part, _ in app.stream(says(WHERE), stream_mode="messages")]
    assert not any("{" in part.text for part in parts if part.type != "tool")
    assert not any(asked.streamed for asked in stub.asked) or name == "ChatOllama"  # whose class always does
