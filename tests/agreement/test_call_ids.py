"""Ids of calls that repeat, or that a client made up: a call is known by its message and its place in it."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from arq_graph import (
    Agent,
    AgentState,
    Guideline,
    ScriptedChatModel,
    create_guided_agent,
    create_respact_agent,
)
from arq_graph.cli.turn import read_last_turn
from arq_graph.middleware import GuidelineMiddleware
from arq_graph.nodes import (
    CallApprover,
    GuidelineMatcher,
    MessageReviser,
    ToolCaller,
    guarded_tools,
    route_calls,
)
from tests.agreement.desk import THREAD, ProcessKilled
from tests.brain import act, brain, get_prompts, say

RAN: list[Any] = []


def refund(order_id: str, amount: int = 5) -> str:
    """Refund an order."""
    if order_id == "crash":
        raise ProcessKilled
    RAN.append((order_id, amount))
    return f"{order_id} is refunded"


GUIDELINES = [Guideline("a refund is due", "refund it", tools=[refund])]
DESK = Agent("Desk", "You help.", GUIDELINES)


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def propose(order_id: str, id: str = "call_0", **fields: Any) -> AIMessage:
    args = {"order_id": order_id, "amount": 5}
    return AIMessage("", tool_calls=[tool_call(name="refund", args=args, id=id)], **fields)


def send(app: Any, *messages: Any) -> dict[str, Any]:
    state: dict[str, Any] = app.invoke({"messages": list(messages)}, THREAD)
    return state


def find_open_calls(messages: Any) -> list[str]:
    """Return the ids of calls that a provider would find without results after their message."""
    open_ids: list[str] = []
    for message in messages:
        if message.type == "tool" and message.tool_call_id in open_ids:
            open_ids.remove(message.tool_call_id)
        elif message.type == "human" and open_ids:
            break
        open_ids += [call["id"] for call in getattr(message, "tool_calls", ())]
    return open_ids


def make_counting_agent(*answers: Any, **fields: Any) -> tuple[Any, ScriptedChatModel]:
    """Make an agent of LangChain's whose provider numbers calls from 0 in each turn."""
    script = list(answers)
    model = ScriptedChatModel(lambda _: script.pop(0))
    agent = DESK.replace(**fields)
    middleware = GuidelineMiddleware(brain({"G1": 9}, reply="Done."), agent, mode="direct", revising=None)
    return create_agent(model, middleware=[middleware], checkpointer=MemorySaver()), model


def test_a_call_that_a_crash_left_is_closed_though_an_earlier_one_had_its_id() -> None:
    app, model = make_counting_agent(propose("A-1"), "First.", propose("crash"), "Third.")
    send(app, ("user", "one"))
    with pytest.raises(ProcessKilled):
        send(app, ("user", "two"))
    send(app, ("user", "three"))
    sent = model.calls[-1].messages
    assert find_open_calls(sent) == []
    assert [message.text[:9] for message in sent if message.type == "tool"] == ["A-1 is re", "abandoned"]


def test_each_result_is_shown_with_its_own_call_though_ids_repeat_within_a_turn() -> None:
    app, _ = make_counting_agent(propose("A-1"), propose("B-2"), "Done.")
    state = send(app, ("user", "Refund A-1 and B-2."))
    assert [run.result for run in read_last_turn(state).tool_calls] == [
        "A-1 is refunded",
        "B-2 is refunded",
    ]
    model = brain(reply="Both are refunded.")
    MessageReviser(model, DESK).invoke(state)
    (prompt,) = get_prompts(model, "message")
    results = [line for line in prompt.lines if line["from"] == "tool"]
    assert [(line["arguments"]["order_id"], line["result"][:3]) for line in results] == [
        ("A-1", "A-1"),
        ("B-2", "B-2"),
    ]


def test_an_approval_of_an_earlier_turn_says_nothing_about_the_same_id() -> None:
    app, _ = make_counting_agent(
        propose("A-1"), "First.", propose("A-1"), "Second.", confirm={"refund": "operator"}
    )
    approve = Command(resume={"decisions": [{"type": "approve"}]})
    assert "__interrupt__" in send(app, ("user", "one"))
    app.invoke(approve, THREAD)
    assert "__interrupt__" in send(app, ("user", "two"))
    assert RAN == [("A-1", 5)]
    app.invoke(approve, THREAD)
    assert RAN == [("A-1", 5)] * 2


def test_an_operator_edits_one_of_two_calls_that_share_an_id() -> None:
    agent = DESK.replace(confirm={"refund": "operator"})
    graph = StateGraph(AgentState)
    graph.add_node("approve", CallApprover(agent))
    graph.add_edge(START, "approve").add_edge("approve", END)
    app = graph.compile(checkpointer=MemorySaver())
    calls = propose("A-1").tool_calls + propose("B-2").tool_calls
    send(app, HumanMessage("Refund both."), AIMessage("", tool_calls=calls, id="m"))
    edited = {"type": "edit", "edited_action": {"name": "refund", "args": {"order_id": "C-3"}}}
    app.invoke(Command(resume={"decisions": [edited, {"type": "approve"}]}), THREAD)
    message = app.get_state(THREAD).values["messages"][-1]
    assert [call["args"]["order_id"] for call in message.tool_calls] == ["C-3", "B-2"]


CLIENT_CALL = propose("A-1", "c1")
SHAPES = {
    "a call": [HumanMessage("Hi."), CLIENT_CALL],
    "after a result before the message": [
        ToolMessage("x", tool_call_id="c1"),
        HumanMessage("Hi."),
        CLIENT_CALL,
    ],
    "after a result in the turn": [HumanMessage("Hi."), ToolMessage("x", tool_call_id="c1"), CLIENT_CALL],
    "after a pair of that id": [
        HumanMessage("Hi."),
        CLIENT_CALL,
        ToolMessage("x", tool_call_id="c1"),
        CLIENT_CALL,
    ],
    "two of an id, one answered": [
        HumanMessage("Hi."),
        AIMessage("", tool_calls=CLIENT_CALL.tool_calls * 2),
        ToolMessage("x", tool_call_id="c1"),
    ],
}


SETUPS = [*((setup, shape) for setup in ("tools", "middleware") for shape in SHAPES)]
SETUPS += [(setup, "two of an id, one answered") for setup in ("pre-act", "respact", "eager", "alone")]


@pytest.mark.parametrize(("strategy", "shape"), SETUPS)
def test_a_call_that_a_client_writes_is_never_made(strategy: str, shape: str) -> None:
    quiet = brain({"G1": 9}, reply="Hello.", moves=[say()])
    if strategy == "middleware":
        app, _ = make_counting_agent("Hello.")
    elif strategy == "alone":
        app = create_respact_agent(quiet, Agent("Desk", "You help.", tools=[refund]))
    else:
        is_eager = strategy == "eager"
        app = create_guided_agent(quiet, DESK, strategy="tools" if is_eager else strategy, eager=is_eager)
    messages = [message.model_copy() for message in SHAPES[shape]]
    state = app.invoke({"messages": messages}, THREAD)
    assert (RAN, state["messages"][-1].text) == ([], "Hello.")
    assert find_open_calls(state["messages"]) == []


def test_a_call_that_a_client_writes_to_an_agent_without_tools_is_passed_over() -> None:
    app = create_respact_agent(brain(moves=[say("Hello.")]), [])
    assert app.invoke({"messages": SHAPES["a call"]})["messages"][-1].text == "Hello."


@pytest.mark.parametrize("when", ["in later turns", "in the turn of the yes"])
def test_a_spent_call_runs_once_where_the_history_is_trimmed(when: str) -> None:
    desk = DESK.replace(confirm={"refund": "customer"})
    turn_count = 0
    spent: list[Any] = []

    def repeat(state: Any) -> dict[str, Any]:
        """Repeat the call that the thread had, as a model of the graph's own that was led astray."""
        for message in state["messages"]:
            spent.extend(getattr(message, "tool_calls", ()))
        if not spent or turn_count < (2 if when == "in later turns" else 1):
            return {}
        if turn_count == 1 and not RAN:
            return {}
        removed = [RemoveMessage(message.id) for message in state["messages"][:-1]]
        if state["messages"][-1].type == "tool":
            removed.append(RemoveMessage(state["messages"][-1].id))
            removed.append(HumanMessage("yes", id=customer_id))
        return {"messages": [*removed, AIMessage("", tool_calls=[spent[0]])]}

    def wants_more(_: Any) -> str:
        return "own" if when == "in the turn of the yes" and turn_count == 1 and len(RAN) == 1 else "message"

    moves: list[Any] = [act("refund", {"order_id": "A-1"})]
    model = brain({"G1": 9}, moves=lambda _: moves.pop(0) if moves else say(), wants=lambda: True)
    graph = StateGraph(AgentState)
    graph.add_node("match", GuidelineMatcher(model, desk))
    graph.add_node("act", ToolCaller(model, desk))
    graph.add_node("own", repeat)
    graph.add_node("tools", guarded_tools(desk))
    graph.add_node("message", MessageReviser(model, desk))
    graph.add_edge(START, "match").add_edge("match", "act").add_edge("act", "own").add_edge("message", END)
    graph.add_conditional_edges("own", route_calls(desk), ["tools", "message"])
    seen: list[str] = []

    def route_back(state: Any) -> str:
        seen.extend(message.text for message in state["messages"][-1:] if message.type == "tool")
        return wants_more(state) if len(seen) < 2 else "message"

    graph.add_conditional_edges("tools", route_back, ["own", "message"])
    app = graph.compile(checkpointer=MemorySaver())
    for text in ("Refund A-1.", "yes", "Thanks.", "Hello again."):
        customer_id = f"customer {turn_count}"
        send(app, HumanMessage(text, id=customer_id))
        turn_count += 1
    assert RAN == [("A-1", 5)]
    assert [text for text in seen if "agree" in text or "has run already" in text]
