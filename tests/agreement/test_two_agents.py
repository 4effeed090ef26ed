"""Two agents under one parent: each judges its own, and neither opens the other's gate."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import START, StateGraph

from arq_graph import Agent, AgentState, Guideline, ToolCalling, create_guided_agent
from tests.agreement.desk import THREAD
from tests.brain import act, brain, say


def refund(order_id: str) -> str:
    """Refund an order."""
    return f"{order_id} is refunded"


def greet() -> str:
    """Greet the customer."""
    return "Hello!"


def make_shared_app(models: dict[str, Any], strategy: Any = "tools", **fields: Any) -> Any:
    """Make one graph in which agents answer every message in turn, and whose state they share."""
    builder = StateGraph(AgentState)
    for name, model in models.items():
        guidelines = [
            Guideline("the customer wants a refund", "refund the order", tools=[refund]),
            Guideline("the customer is angry", "calm them down"),
        ]
        agent = Agent(name, f"You are {name}.", guidelines, **fields)
        app = create_guided_agent(model, agent, strategy=strategy, mode="direct", input_schema=AgentState)
        builder.add_node(name, app)
    first, second = models
    return builder.add_edge(START, first).add_edge(first, second).compile(checkpointer=MemorySaver())


def send(app: Any, text: str) -> dict[str, Any]:
    state: dict[str, Any] = app.invoke({"messages": [("user", text)]}, THREAD)
    return state


def group_by_agent(state: dict[str, Any], channel: str) -> dict[str, list[dict[str, Any]]]:
    records: dict[str, list[dict[str, Any]]] = {}
    for record in state.get(channel, ()):
        records.setdefault(record["agent"], []).append(record)
    return records


WANTED = [act("refund", {"order_id": "A-1"}), say()]
BOTH = {"G1": 9, "G2": 9}


@pytest.mark.parametrize("strategy", ["tools", "pre-act", "respact"])
def test_what_one_agent_judges_opens_no_gate_of_the_other(strategy: str) -> None:
    granting = brain(BOTH, reply="I do what I can.", moves=WANTED)
    barred = brain({"G2": 9}, reply="Hello there.", moves=WANTED)
    state = send(make_shared_app({"Shop": granting, "Bank": barred}, strategy), "I want a refund of A-1!")
    matches = group_by_agent(state, "guideline_matches")
    for agent, guidelines in {"Shop": ["G1", "G2"], "Bank": ["G2"]}.items():
        assert [match["guideline"] for match in matches[agent] if match["active"]] == guidelines
    assert list_results(state) == ["A-1 is refunded"]
    insights = group_by_agent(state, "tool_insights")
    assert "run" in {insight["kind"] for insight in insights["Shop"]}
    assert "run" not in {insight["kind"] for insight in insights.get("Bank", ())}
    if channel := {"pre-act": "plan", "respact": "moves"}.get(strategy):
        assert group_by_agent(state, channel).keys() == {"Shop", "Bank"}


@pytest.mark.parametrize("strategy", ["tools", "respact"])
def test_each_event_names_its_agent(strategy: str) -> None:
    models = {name: brain(BOTH, reply=f"{name} is done.", moves=[*WANTED]) for name in ("Shop", "Bank")}
    input = {"messages": [("user", "I want a refund of A-1!")]}
    parts = list(
        make_shared_app(models, strategy).stream(input, THREAD, stream_mode="custom", subgraphs=True)
    )
    assert [(event.agent, event.content) for _, event in parts if event.type == "reply_sent"] == [
        ("Shop", "Shop is done."),
        ("Bank", "Bank is done."),
    ]
    # The namespace has the name of the parent's node, which is the agent's.
    assert all(event.agent == namespace[0].partition(":")[0] for namespace, event in parts)
    assert "tool_called" in {event.type for _, event in parts}


def list_results(state: dict[str, Any]) -> list[str]:
    return [message.text for message in state["messages"] if message.type == "tool"]


def test_a_yes_counts_for_the_agent_that_asked_whoever_speaks_after_it() -> None:
    silent = brain(BOTH, reply="Hello there.")
    asking = brain(BOTH, reply="Very well.", moves=WANTED[:1], wants=lambda: True)
    app = make_shared_app({"Shop": silent, "Bank": asking}, confirm={"refund": "customer"})
    state = send(app, "I want a refund of A-1!")
    assert state["messages"][-1].text.endswith("Reply yes to go ahead.")
    state = send(app, "yes")
    assert list_results(state) == ["A-1 is refunded"]
    assert list(group_by_agent(state, "agreements")) == ["Bank"]


def make_namesakes(
    first: tuple[Any, Any], second: tuple[Any, Any], strategy: Any = "tools", **fields: Any
) -> Any:
    """Make one graph of two agents that are both called Desk, each given with its guideline."""
    builder = StateGraph(AgentState)
    for node, (model, guideline) in {"a": first, "b": second}.items():
        agent = Agent("Desk", "You help.", [guideline], **fields)
        app = create_guided_agent(model, agent, strategy=strategy, mode="direct", input_schema=AgentState)
        builder.add_node(node, app)
    return builder.add_edge(START, "a").add_edge("a", "b").compile(checkpointer=MemorySaver())


@pytest.mark.parametrize("strategy", ["tools", "pre-act", "respact"])
def test_what_one_agent_judges_opens_no_gate_of_its_namesake(strategy: str) -> None:
    greeting = brain({"G1": 9}, reply="Hello.", moves=[say("Hello.")])
    barred = brain({"G1": 1}, reply="Hello there.", moves=WANTED)
    app = make_namesakes(
        (greeting, Guideline("the customer says hello", "greet them")),
        (barred, Guideline("the customer is a verified VIP", "refund the order", tools=[refund])),
        strategy,
    )
    for text in ("Hello, refund A-1.", "Please!"):
        state = send(app, text)
        assert list_results(state) == []
        matches = {match["specification"]: match["active"] for match in state["guideline_matches"]}
        assert sorted(matches.values()) == [False, True]


def test_a_namesake_runs_no_call_that_its_own_guidelines_do_not_grant() -> None:
    silent = brain({"G1": 2}, reply="", moves=[say("")])
    asking = brain({"G1": 9}, reply="Very well.", moves=WANTED[:1])
    app = make_namesakes(
        (silent, Guideline("the customer is a verified VIP", "refund the order", tools=[refund])),
        (asking, Guideline("the customer wants a refund", "refund the order", tools=[refund])),
        confirm={"refund": "customer"},
    )
    assert send(app, "Refund A-1.")["messages"][-1].text.endswith("Reply yes to go ahead.")
    state = send(app, "yes")
    assert list_results(state) == []
    (verdict,) = (verdict for verdict in state["tool_insights"] if verdict["kind"] == "declined")
    assert verdict["problem"] == "no guideline grants it now"


def test_a_namesakes_calls_are_not_counted_as_ones_own() -> None:
    app = make_namesakes(
        (brain({"G1": 9}, moves=[act("greet"), say()]), Guideline("they are here", "greet", tools=[greet])),
        (brain({"G1": 9}, moves=WANTED), Guideline("they want a refund", "refund it", tools=[refund])),
        ToolCalling(max_rounds=1),
    )
    assert list_results(send(app, "Refund A-1.")) == ["Hello!", "A-1 is refunded"]


@pytest.mark.parametrize("still_grants", [True, False])
def test_a_yes_to_a_question_of_an_earlier_version_passes_the_gate_of_the_new_one(still_grants: bool) -> None:
    judge = {"G1": 9}
    model = brain(judge, reply="Very well.", moves=[*WANTED[:1], say()])
    saver = MemorySaver()
    for text, profile in {"Refund A-1.": "You help.", "yes": "You help kindly."}.items():
        guidelines = [Guideline("the customer wants a refund", "refund it", tools=[refund])]
        agent = Agent("Desk", profile, guidelines, confirm={"refund": "customer"})
        state = send(create_guided_agent(model, agent, checkpointer=saver, mode="direct"), text)
        judge["G1"] = 9 if still_grants else 2
    assert list_results(state) == (["A-1 is refunded"] if still_grants else [])
    if still_grants:
        assert {record["specification"] for record in state["agreements"]} == {agent.fingerprint}
    else:
        assert state["tool_insights"][-1]["kind"] == "declined"


def test_records_of_older_versions_do_not_pile_up() -> None:
    saver = MemorySaver()
    for number in range(5):
        agent = Agent("Desk", f"Version {number}.", [Guideline("they ask", "help")])
        state = send(create_guided_agent(brain({"G1": 9}), agent, checkpointer=saver), f"Question {number}?")
    assert len(state["guideline_matches"]) <= 3


def test_records_that_do_not_name_their_specification_still_count() -> None:
    model = brain({"G1": 9}, reply="Very well.", moves=[*WANTED[:1], say()])
    saver = MemorySaver()
    guidelines = [Guideline("the customer wants a refund", "refund it", tools=[refund])]
    agent = Agent("Desk", "You help.", guidelines, confirm={"refund": "customer"})
    app = create_guided_agent(model, agent, checkpointer=saver, mode="direct")
    records = send(app, "Refund A-1.")["agreements"]
    for record in records:
        del record["specification"]
        del record["calls"][0]["message_id"]
    app.update_state(THREAD, {"agreements": records})
    state = send(app, "yes")
    assert list_results(state) == ["A-1 is refunded"]
