"""The nodes of a run share what they read of the history, and nothing outlives the run."""

import asyncio
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, ClassVar

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, StateGraph

from arq_graph import Agent, AgentState, Guideline, create_guided_agent
from arq_graph.nodes import GuidelineMatcher, MessageReviser
from tests.brain import brain, get_prompts


class CountedMessage(HumanMessage):
    """A customer's message that counts how often its text is read."""

    count: ClassVar[int] = 0

    @property
    def text(self) -> Any:
        CountedMessage.count += 1
        return super().text


def get_order(order_id: str) -> str:
    """Look up an order."""
    return f"{order_id} is in transit"


def make_agent() -> Agent:
    return Agent("Desk", "You help.", [Guideline("an order is asked about", "look it up", tools=[get_order])])


def make_model() -> Any:
    return brain(judge={"G1": 9}, call={"get_order": {"order_id": "A-1"}}, reply="It is on its way.")


@pytest.mark.parametrize("eager", [False, True])
def test_each_message_is_read_once_a_turn(eager):
    CountedMessage.count = 0
    history = [
        CountedMessage([{"type": "text", "text": "Hello"}], id="1"),
        AIMessage("Hello, how can I help?", id="2"),
        HumanMessage("Where is A-1?", id="3"),
    ]
    model = make_model()
    create_guided_agent(model, make_agent(), eager=eager).invoke({"messages": history})
    assert CountedMessage.count == 1
    assert all(prompt.lines[0]["text"] == "Hello" for prompt in get_prompts(model, "message"))


def test_nothing_holds_a_conversation_after_its_turn():
    app = create_guided_agent(make_model(), make_agent())
    message = HumanMessage("Where is A-1?", id="1")
    app.invoke({"messages": [message]})
    asyncio.run(app.ainvoke({"messages": [message]}))
    is_alive = weakref.ref(message)
    del message
    gc.collect()
    assert is_alive() is None


def test_a_message_that_a_node_changes_in_its_place_is_read_again():
    model = brain(judge={"G1": 9}, reply="Gladly.")
    agent = Agent("Desk", "You help.", [Guideline("somebody greets", "greet back")])

    def mask(state: AgentState) -> dict[str, Any]:
        state["messages"][-1].content = "My number is ***"
        return {}

    graph = StateGraph(AgentState)
    graph.add_node("match", GuidelineMatcher(model, agent))
    graph.add_node("mask", mask)
    graph.add_node("reply", MessageReviser(model, agent))
    for source, target in ((START, "match"), ("match", "mask"), ("mask", "reply"), ("reply", END)):
        graph.add_edge(source, target)
    graph.compile().invoke({"messages": [HumanMessage("My number is 123", id="1")]})
    (prompt,) = get_prompts(model, "message")
    assert prompt.lines[-1]["text"] == "My number is ***"


def test_a_record_that_a_node_changes_in_its_place_is_read_again():
    model = brain(judge={"G1": 9, "G2": 9}, reply=["Gladly.", "With pleasure."])
    guidelines = [Guideline("somebody greets", "greet back"), Guideline("somebody asks", "answer")]
    agent = Agent("Desk", "You help.", guidelines)

    def switch_off(state: AgentState) -> dict[str, Any]:
        state["guideline_matches"][0]["active"] = False
        return {}

    graph = StateGraph(AgentState)
    graph.add_node("match", GuidelineMatcher(model, agent))
    graph.add_node("reply", MessageReviser(model, agent))
    graph.add_node("switch_off", switch_off)
    graph.add_node("reply_again", MessageReviser(model, agent))
    for edge in pairwise((START, "match", "reply", "switch_off", "reply_again", END)):
        graph.add_edge(*edge)
    graph.compile().invoke({"messages": [HumanMessage("Hello", id="1")]})
    active = [
        [row["id"] for row in prompt.section("active_guidelines")] for prompt in get_prompts(model, "message")
    ]
    assert active == [["G1", "G2"], ["G2"]]


def test_a_message_that_is_put_into_the_middle_of_the_history_is_shown_in_its_place():
    model = brain(judge={"G1": 9}, reply="Gladly.")
    agent = Agent("Desk", "You help.", [Guideline("somebody greets", "greet back")])

    def replace(state: AgentState) -> dict[str, Any]:
        return {"messages": [HumanMessage("Hello again", id="1")]}

    graph = StateGraph(AgentState)
    graph.add_node("match", GuidelineMatcher(model, agent))
    graph.add_node("replace", replace)
    graph.add_node("reply", MessageReviser(model, agent))
    for source, target in ((START, "match"), ("match", "replace"), ("replace", "reply"), ("reply", END)):
        graph.add_edge(source, target)
    messages = [HumanMessage("Hello", id="1"), AIMessage("Yes?", id="2"), HumanMessage("Hello?", id="3")]
    graph.compile().invoke({"messages": messages})
    (prompt,) = get_prompts(model, "message")
    assert [line["text"] for line in prompt.lines] == ["Hello again", "Yes?", "Hello?"]


@pytest.mark.parametrize("is_async", [False, True])
def test_conversations_of_one_app_at_the_same_time_stay_apart(is_async):
    model = make_model()
    app = create_guided_agent(model, make_agent())

    def make_input(number: int) -> Any:
        question = HumanMessage(f"Where is order {number}?", id="1")
        return {"messages": [HumanMessage(f"I am {number}", id="0"), question]}

    async def hold_all() -> None:
        await asyncio.gather(*[app.ainvoke(make_input(number)) for number in range(50)])

    if is_async:
        asyncio.run(hold_all())
    else:
        with ThreadPoolExecutor(10) as executor:
            list(executor.map(app.invoke, map(make_input, range(50))))
    prompts = get_prompts(model, "message")
    texts = {(prompt.lines[0]["text"], prompt.lines[1]["text"]) for prompt in prompts}
    assert texts == {(f"I am {number}", f"Where is order {number}?") for number in range(50)}
