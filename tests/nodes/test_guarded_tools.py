"""The gate: a tool runs only while a guideline that grants it is active, wherever the call comes from."""

from typing import Annotated, Any, TypedDict, get_args, get_type_hints

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from arq_graph import Agent, AgentState, Guideline
from arq_graph.nodes import ToolCallGuard, get_active_guidelines, guarded_tools, route_calls

RAN: list[str] = []
CallId = Annotated[str, InjectedToolCallId]


@tool
def get_order(order_id: str, call_id: CallId) -> str:
    """Look up an order."""
    RAN.append(order_id)
    return f"{order_id} by {call_id}"


@tool
def search(words: str) -> str:
    """Search."""
    return words


@tool
def remember(name: str, call_id: CallId) -> Command:
    """Write to the state."""
    result = ToolMessage("remembered", tool_call_id=call_id, name="remember")
    return Command(update={"variables": {"name": name}, "messages": [result]})


@tool
def fail() -> str:
    """Fail."""
    raise ValueError("x" * 10_000)


ASK = Guideline("they ask", "look it up", tools=[get_order, remember, fail])
DESK = Agent("Desk", "You help.", [ASK, Guideline("never", "do nothing")], tools=[search])


@pytest.fixture(autouse=True)
def nothing_ran():
    RAN.clear()


def call(name, /, id="c1", **args):
    return {"name": name, "args": args, "id": id, "type": "tool_call"}


def match(active=True, turn="h1", guideline="G1", agent="Desk"):
    return {"agent": agent, "guideline": guideline, "turn": turn, "active": active, "matched": active}


MATCHED = (match(),)


def make_graph(agent=DESK, state_schema: Any = AgentState, sends=True, messages_key="messages"):
    """Make a graph of somebody else's, in which a model's calls run behind our gate."""
    builder = StateGraph(state_schema)
    builder.add_node("model", lambda state: {})
    builder.add_node("tools", guarded_tools(agent, messages_key=messages_key))
    builder.add_edge(START, "model")
    if sends:
        route = route_calls(agent, otherwise=END, messages_key=messages_key)
        builder.add_conditional_edges("model", route)
    else:
        builder.add_edge("model", "tools")
    builder.add_edge("tools", END)
    return builder.compile()


def make_input(*calls, matches=MATCHED):
    messages = [HumanMessage("Hi", id="h1"), AIMessage("", tool_calls=list(calls))]
    return {"messages": messages, "guideline_matches": list(matches)}


def run_calls(*calls, matches=MATCHED, **options):
    state = make_graph(**options).invoke(make_input(*calls, matches=matches))
    return [(m.status, m.text) for m in state["messages"] if m.type == "tool"]


def test_a_graph_draws_the_destinations_of_its_router_and_no_others():
    drawn = make_graph().get_graph()
    assert {edge.target for edge in drawn.edges if edge.source == "model"} == {"tools", END}
    assert "model -.-> tools;" in drawn.draw_mermaid()

    desk = Agent("Desk", "You help.", DESK.guidelines, confirm={"get_order": "operator"})
    route = route_calls(desk, again="call_tools", otherwise=["match", END])
    destinations = ("match", END, "tools", "approve", "call_tools")
    assert get_args(get_type_hints(route)["return"]) == destinations


@pytest.mark.parametrize("sends", [True, False])
def test_a_granted_call_runs_and_gets_its_id_as_an_idempotency_key(sends):
    assert run_calls(call("get_order", order_id="A-1"), sends=sends) == [("success", "A-1 by c1")]


@pytest.mark.filterwarnings("ignore:guidelines were not matched")
@pytest.mark.parametrize(
    "other", [{"active": False}, {"turn": "h0"}, {"guideline": "G2"}, {"agent": "Other"}, None], ids=str
)
def test_a_call_that_no_active_guideline_of_this_agent_and_turn_grants_is_refused(other):
    matches = [] if other is None else [match(**other)]
    for sends in (True, False):
        ((status, text),) = run_calls(call("get_order", order_id="A-1"), matches=matches, sends=sends)
        assert (status, RAN) == ("error", [])
        assert "no active guideline grants it" in text


def test_a_tool_that_is_always_available_needs_no_guideline_and_one_the_agent_does_not_have_is_refused():
    assert run_calls(call("search", words="x"), matches=[match(active=False)]) == [("success", "x")]
    assert run_calls(call("format_disk"))[0][0] == "error"


def test_where_nothing_was_matched_only_guidelines_without_a_condition_grant_tools():
    always = Guideline(None, "look it up", tools=[get_order])
    agent = Agent("Desk", "You help.", [always, Guideline("they search", "search", tools=[search])])
    calls = [call("get_order", order_id="A-1"), call("search", id="c2", words="x")]
    with pytest.warns(UserWarning, match="guidelines were not matched .*'Desk'.*GuidelineMatcher"):
        results = run_calls(*calls, agent=agent, matches=())
    assert [status for status, _ in results] == ["success", "error"]


def test_an_error_of_a_tool_and_wrong_arguments_become_short_messages():
    (first, failed), (second, misread) = run_calls(call("fail"), call("get_order", id="c2", number=1))
    assert (first, second, len(failed) <= 500) == ("error", "error", True)
    (event,) = make_graph().stream(make_input(call("fail")), stream_mode="custom")
    assert (event.status, event.result) == ("error", failed)
    assert failed.startswith("ValueError: xxx")
    assert "order_id" in misread


def test_a_tool_gate_lets_tools_of_ones_own_pass(runs):
    gate = ToolCallGuard(DESK)

    @tool
    def weather() -> str:
        """Tell the weather."""
        return "sunny"

    builder = StateGraph(AgentState)
    tools = ToolNode(
        [get_order, weather], wrap_tool_call=gate.wrap_tool_call, awrap_tool_call=gate.awrap_tool_call
    )
    builder.add_node("tools", tools)
    builder.add_edge(START, "tools")
    for active, status in ((True, "success"), (False, "error")):
        calls = [call("weather", id="c2"), call("get_order", order_id="A-1")]
        input = make_input(*calls, matches=[match(active)])
        own_result, order = runs.invoke(builder.compile(), input)["messages"][-2:]
        assert (own_result.text, order.status, len(RAN)) == ("sunny", status, 1)


def test_active_guidelines_are_there_for_a_prompt_of_ones_own():
    state = make_input(matches=[match(), match(guideline="G2", active=False)])
    assert [guideline.action for guideline in get_active_guidelines(DESK, state)] == ["look it up"]


def test_a_tool_may_write_to_the_state():
    input = make_input(call("remember", name="Ada"))
    *events, (_, state) = make_graph().stream(input, stream_mode=["custom", "values"])
    assert (state["messages"][-1].text, state["variables"]) == ("remembered", {"name": "Ada"})
    assert [event.result for mode, event in events if mode == "custom"] == ["remembered"]


def test_a_sync_run_inside_of_an_async_tool_may_have_async_tools_of_its_own():
    async def inner() -> str:
        """Look inside."""
        return "found"

    app = make_graph(Agent("Inner", "You help.", tools=[inner]))

    async def outer() -> str:
        """Look."""
        return str(app.invoke(make_input(call("inner"), matches=()))["messages"][-1].text)

    outside = make_graph(Agent("Desk", "You help.", tools=[outer]))
    assert outside.invoke(make_input(call("outer"), matches=()))["messages"][-1].text == "found"


class Chat(TypedDict, total=False):
    chat: Annotated[list[AnyMessage], add_messages]
    guideline_matches: list[dict[str, Any]]


def test_messages_may_stand_in_another_channel():
    input = make_input(call("get_order", order_id="A-1"))
    state = make_graph(state_schema=Chat, messages_key="chat").invoke({**input, "chat": input["messages"]})
    assert state["chat"][-1].text == "A-1 by c1"
