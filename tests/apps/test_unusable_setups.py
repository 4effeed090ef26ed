"""Setups that can't work: each is reported when the app is made, or with the first question that would be forgotten."""

import asyncio
import warnings
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.messages.tool import tool_call
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import START, MessagesState, StateGraph, add_messages

from arq_graph import (
    Agent,
    AgentState,
    Guideline,
    ScriptedChatModel,
    Variable,
    create_guided_agent,
    create_tool_agent,
    errors,
)
from arq_graph.middleware import GuidelineMiddleware
from arq_graph.nodes import GuidelineMatcher, MessageReviser, PreActPlanner, ToolCaller
from tests.brain import act, brain, say

THREAD: Any = {"configurable": {"thread_id": "1"}}
ASKED: Any = {"messages": [("user", "Cancel A-1.")]}
FORGETS = "asks the customer before it calls cancel_order, but nothing keeps its state"


def cancel_order(order_id: str) -> str:
    """Cancel an order."""
    return "cancelled"


DESK = Agent(
    "Desk",
    "You help.",
    [Guideline("they want to cancel", "cancel it", tools=[cancel_order])],
    confirm={"cancel_order": "customer"},
)
ALONE = DESK.replace(guidelines=[], tools=[cancel_order])


def make_model() -> ScriptedChatModel:
    return brain({"G1": 9}, reply="Certainly.", moves=[act("cancel_order", {"order_id": "A-1"}), say()])


def find_forgetting(invoke: Any) -> list[str]:
    """Return the warnings of a run about questions that are forgotten."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        state = invoke()
    messages = state["messages"]
    assert getattr(messages[-1], "text", messages[-1]).endswith("Reply yes to go ahead.")
    return [str(warning.message) for warning in caught if "nothing keeps its state" in str(warning.message)]


def put_into_parent(app: Any, saver: Any) -> Any:
    return StateGraph(MessagesState).add_node("desk", app).add_edge(START, "desk").compile(checkpointer=saver)


def call_in_parent(app: Any, saver: Any) -> Any:
    """Make a graph that calls the app as a tool of another agent would."""

    def call(state: MessagesState) -> Any:
        return {"messages": [AIMessage(app.invoke(ASKED)["messages"][-1].text)]}

    return (
        StateGraph(MessagesState).add_node("call", call).add_edge(START, "call").compile(checkpointer=saver)
    )


@pytest.mark.parametrize("embed", [put_into_parent, call_in_parent])
@pytest.mark.parametrize(("own", "keeps"), [(None, False), (True, True)])
def test_an_agent_inside_another_graph_needs_a_memory_of_its_own(embed: Any, own: Any, keeps: bool) -> None:
    app = embed(create_guided_agent(make_model(), DESK, checkpointer=own), MemorySaver())
    found = find_forgetting(lambda: app.invoke(ASKED, THREAD))
    assert [FORGETS in text for text in found] == ([] if keeps else [True])


@pytest.mark.parametrize(
    ("strategy", "saver"),
    [("tools", None), ("tools", MemorySaver()), ("respact", None), ("alone", None), ("alone", MemorySaver())],
)
def test_an_agent_without_a_checkpointer_says_that_it_forgets_its_question(strategy: Any, saver: Any) -> None:
    if strategy == "alone":
        app = create_tool_agent(make_model(), ALONE, checkpointer=saver)
    else:
        app = create_guided_agent(make_model(), DESK, strategy=strategy, checkpointer=saver)
    found = find_forgetting(lambda: asyncio.run(app.ainvoke(ASKED, THREAD)))
    assert [FORGETS in text for text in found] == ([True] if saver is None else [])


def test_so_does_the_middleware() -> None:
    call = tool_call(name="cancel_order", args={"order_id": "A-1"}, id="c1")
    model = ScriptedChatModel(lambda _: AIMessage("", tool_calls=[call]))
    app = create_agent(model, middleware=[GuidelineMiddleware(make_model(), DESK, revising=None)])
    assert len(find_forgetting(lambda: app.invoke(ASKED))) == 1


@pytest.mark.parametrize(("saver", "count"), [(None, 1), (MemorySaver(), 0)])
def test_so_does_a_graph_wired_by_hand(saver: Any, count: int) -> None:
    model = make_model()
    graph = StateGraph(AgentState)
    graph.add_node("match", GuidelineMatcher(model, DESK))
    graph.add_node("act", ToolCaller(model, DESK))
    graph.add_node("message", MessageReviser(model, DESK))
    graph.add_edge(START, "match").add_edge("match", "act").add_edge("act", "message")
    app = graph.compile(checkpointer=saver)
    assert len(find_forgetting(lambda: app.invoke(ASKED, THREAD))) == count


@pytest.mark.parametrize("reply", [None, "Antworten Sie mit Ja."])
def test_a_client_that_sends_the_history_to_a_new_thread_each_time_is_told(reply: str | None) -> None:
    agent = DESK.replace(confirm={"cancel_order": {"by": "customer", "reply": reply}})
    app = create_guided_agent(make_model(), agent, checkpointer=MemorySaver())
    asked = app.invoke(ASKED, THREAD)["messages"][-1].text
    history = [("user", "Cancel A-1."), ("assistant", asked), ("user", "Yes")]
    with pytest.warns(UserWarning, match=FORGETS):
        app.invoke({"messages": history}, {"configurable": {"thread_id": "2"}})


def test_a_node_that_is_given_messages_alone_says_at_the_answer_that_it_keeps_no_records() -> None:
    planner = PreActPlanner(make_model(), ALONE)

    def plan(state: AgentState) -> Any:
        return {"messages": planner.invoke({"messages": state["messages"]})["messages"]}

    app = (
        StateGraph(AgentState)
        .add_node("plan", plan)
        .add_edge(START, "plan")
        .compile(checkpointer=MemorySaver())
    )
    app.invoke(ASKED, THREAD)
    with pytest.warns(UserWarning, match="Pass the node the whole state"):
        app.invoke({"messages": [("user", "Yes")]}, THREAD)


class Tiered(MessagesState):
    tier: str


class Replacing(AgentState):
    messages: list[AnyMessage]  # type: ignore[misc]


class Whole(AgentState):
    messages: Annotated[list[AnyMessage], add_messages]  # type: ignore[misc]
    tier: str


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (
            Tiered,
            "state_schema=Tiered lacks the channels guideline_matches, .*make it a subclass of arq_graph.Ag",
        ),
        (Replacing, "state_schema=Replacing has messages without a reducer"),
        (Whole, None),
    ],
)
@pytest.mark.parametrize("is_alone", [False, True])
def test_a_state_schema_must_have_room_for_what_an_agent_concludes(
    schema: Any, problem: str | None, is_alone: bool
) -> None:
    create: Any = create_tool_agent if is_alone else create_guided_agent
    agent = ALONE if is_alone else DESK
    if problem is None:
        create(make_model(), agent, state_schema=schema)
        return
    with pytest.raises(errors.InputError, match=problem):
        create(make_model(), agent, state_schema=schema)


@pytest.mark.parametrize("is_alone", [False, True])
@pytest.mark.parametrize("input", [{"messages": []}, {"messages": [], "variables": {"tier": "gold"}}])
def test_an_input_without_a_message_is_refused(input: Any, is_alone: bool) -> None:
    model = brain()
    tier = Variable("tier", "their tier", settable=True)
    if is_alone:
        app = create_tool_agent(model, ALONE.replace(variables=[tier]))
    else:
        app = create_guided_agent(model, DESK.replace(variables=[tier]))
    with pytest.raises(errors.InputError, match="message to answer"):
        asyncio.run(app.ainvoke(input))
    with pytest.raises(errors.InputError, match="message to answer"):
        app.invoke(input)
    assert "message" not in {call.module for call in model.calls}  # no reply is written
