"""A whole turn of a guided agent through each provider's class."""

import json
import re
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from arq_graph import Agent, Guideline, Matching, create_guided_agent, track_usage
from arq_graph.models.offline.model import OfflineChatModel
from tests.order_tools import get_order
from tests.slow.providers.rows import ROWS, SLOW, make_stub, read_table
from tests.slow.providers.stub import ModelAnswer, Request

pytestmark = SLOW

WHERE = "Where is my order A-1?"
MARKED = [name for name, cells in read_table()[1].items() if cells["caching"] == "marked"]
KINDS: dict[str, Any] = {
    "system": SystemMessage,
    "developer": SystemMessage,
    "assistant": AIMessage,
    "model": AIMessage,
}


def answer_offline(request: Request) -> ModelAnswer:
    """The offline model's answer; where no schema came with the request, the prompt is searched for one."""
    in_prompt = re.search(r"JSON schema.*:\n(\{.*\})", request.prompt)
    schema = request.schema or (in_prompt and json.loads(in_prompt[1]))
    if not schema:
        return ModelAnswer("I would rather say it in words.")
    messages = [KINDS.get(role, HumanMessage)(text) for role, text in request.messages]
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    return ModelAnswer(str(OfflineChatModel().invoke(messages, response_format=form).text))


def make_desk() -> Agent:
    rule = Guideline(
        "the customer asks where an order is", "look it up and tell its status", tools=[get_order]
    )
    return Agent("Desk", "You help with orders. " * 30, [rule])


def make_input() -> dict[str, Any]:
    return {"messages": [HumanMessage(WHERE, id="h0")]}


@pytest.mark.parametrize("name", ROWS)
async def test_a_turn_with_a_tool_is_the_same_through_every_class_sync_and_async(name: str):
    expected = create_guided_agent("offline", make_desk()).invoke(make_input())
    stub, make = make_stub(name, answer_offline)
    with stub, track_usage() as used:
        app = create_guided_agent(make(), make_desk())
        for state in (app.invoke(make_input()), await app.ainvoke(make_input())):
            assert [message.type for message in state["messages"]] == ["human", "ai", "tool", "ai"]
            assert state["messages"][-1].text == expected["messages"][-1].text
            assert [match["active"] for match in state["guideline_matches"]] == [True]
    assert set(used.by_module) == {"matcher", "tools", "message"}


def test_a_batch_whose_schema_anthropic_refuses_is_judged_by_a_tool_call():
    rules = [Guideline(f"the customer asks about topic {number}", "answer") for number in range(20)]
    desk = Agent("Desk", "You help with orders.", rules)
    stub, make = make_stub("ChatAnthropic", answer_offline)
    with stub:
        for size in (5, 20, 20):
            state = create_guided_agent(make(), desk, matching=Matching(batch_size=size)).invoke(make_input())
            assert len(state["guideline_matches"]) == 20
    assert [("union types" in refused.message) for refused in stub.refused] == [True]


@pytest.mark.parametrize("name", ROWS)
def test_nothing_of_the_answers_streams_through_the_graph(name: str):
    stub, make = make_stub(name, answer_offline)
    with stub:
        app = create_guided_agent(make(streaming=True) if "OpenAI" in name else make(), make_desk())
        parts = [part for part, _ in app.stream(make_input(), stream_mode="messages")]
    assert not any("{" in part.text for part in parts if part.type != "tool")
    assert (
        not any(request.streamed for request in stub.requests) or name == "ChatOllama"
    )  # whose class always does
