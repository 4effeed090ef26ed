"""Journeys in a graph of one's own, of two agents in one thread, and after an agent was edited."""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from arq_graph import AgentState, Journey, JourneyStep, create_guided_agent
from arq_graph.nodes import GuidelineMatcher, MessageReviser, ToolCaller, events, guarded_tools, route_calls
from tests.brain import brain
from tests.journeys.returns import RETURN, make_shop

A301 = {"order_id": "A-301"}
ASKS = {"asks_for_something": True}
THREAD: Any = {"configurable": {"thread_id": "1"}}


def send(app: Any, text: str) -> dict[str, Any]:
    state: dict[str, Any] = app.invoke({"messages": [("user", text)]}, THREAD)
    return state


def list_steps(state: dict[str, Any], agent: str = "Shop") -> dict[str, str]:
    """Return the states of the steps of an agent's only journey that has begun."""
    (record,) = [record for record in state["journeys"] if record["agent"] == agent]
    (journey,) = record["journeys"]
    return {step["step"]: step["state"] for step in journey["steps"]}


def wire_shop(state_schema: Any, *, after_tools: str) -> Any:
    """Return a graph of the public nodes; after the tools, it goes on with this node."""
    shop = make_shop()
    model = brain({"return": 9}, {"get_order": A301}, steps={"return-reason": ASKS})
    graph = StateGraph(state_schema)
    graph.add_node("match", GuidelineMatcher(model, shop))
    graph.add_node("act", ToolCaller(model, shop))
    graph.add_node("tools", guarded_tools(shop))
    graph.add_node("message", MessageReviser(model, shop))
    graph.add_edge(START, "match").add_edge("match", "act")
    graph.add_conditional_edges("act", route_calls(shop))
    graph.add_edge("tools", after_tools).add_edge("message", END)
    return graph.compile(checkpointer=InMemorySaver())


def test_a_graph_that_only_has_messages_takes_its_customer_through_a_journey():
    app = wire_shop(MessagesState, after_tools="match")
    send(app, "I want to return order A-301.")
    journeys = app.get_state(THREAD).values["journeys"]
    assert list_steps({"journeys": journeys}) == {"order": "done", "reason": "open"}


def test_a_call_counts_in_the_next_turn_if_nothing_was_matched_after_it():
    app = wire_shop(AgentState, after_tools="act")
    assert list_steps(send(app, "I want to return order A-301.")) == {"order": "open"}
    assert list_steps(send(app, "Well?")) == {"order": "done", "reason": "open"}


def test_two_agents_in_one_thread_are_in_their_own_journeys():
    builder = StateGraph(AgentState)
    calls = {"Shop": {"get_order": A301}, "Depot": {}}
    for name, call in calls.items():
        model = brain({"return": 9}, call, steps={"return-reason": ASKS})
        agent = make_shop(journeys=[RETURN]).replace(name=name)
        builder.add_node(name, create_guided_agent(model, agent, input_schema=AgentState))
    builder.add_edge(START, "Shop").add_edge("Shop", "Depot")
    app = builder.compile(checkpointer=InMemorySaver())
    for text in ("I want to return order A-301.", "Well?"):
        state = send(app, text)
        assert list_steps(state, "Shop") == {"order": "done", "reason": "open"}
        assert list_steps(state, "Depot") == {"order": "open"}


def test_a_journey_goes_on_after_its_steps_were_edited():
    threads = InMemorySaver()
    steps = {"return-reason": ASKS, "return-photo": ASKS}
    model = brain({"return": 9}, {"get_order": A301}, steps=steps)
    send(create_guided_agent(model, make_shop(), checkpointer=threads), "I want to return order A-301.")
    edited_steps = [
        RETURN.by_id["order"].replace(action="ask for the number of the order and look it up"),
        JourneyStep("photo", "ask for a photo", after="order"),
        JourneyStep("close", "say goodbye", after="photo"),
    ]
    edited = make_shop(journeys=[Journey("return", RETURN.condition, edited_steps)])
    state = send(create_guided_agent(model, edited, checkpointer=threads), "Well?")
    last = state["journeys"][-1]["journeys"][0]
    assert {step["step"]: step["state"] for step in last["steps"]} == {"order": "done", "photo": "open"}
    assert [message.text for message in state["messages"] if message.type == "tool"] == ["A-301 has a lamp"]


def test_an_event_says_how_far_the_journeys_are_each_time_that_the_customer_moves_on():
    model = brain({"return": 9}, {"get_order": A301}, steps={"return-reason": ASKS})
    app = create_guided_agent(model, make_shop(), checkpointer=InMemorySaver())
    message = {"messages": [("user", "I want to return order A-301.")]}
    moves: list[dict[str, str]] = []
    for event in app.stream(message, THREAD, stream_mode="custom"):
        if isinstance(event, events.JourneysAdvanced):
            (journey,) = event.journeys
            moves.append({step.step: step.state for step in journey.steps})
            assert event.agent == "Shop"
    assert moves == [{"order": "open"}, {"order": "done", "reason": "open"}]
