"""Two agents under one parent: each judges its own, and neither opens the other's gate."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph

from arq_graph import Agent, AgentState, Guideline, create_guided_agent
from arq_graph.milestones import MilestoneGraph
from tests.agreement.deciding import STRATEGIES, Deciding

GOAL = MilestoneGraph.parse_yaml("""
- {name: Start, type: NFC}
- {name: refund, type: FC, dependencies: [Start]}
- {name: End, type: NFC, dependencies: [refund]}
""")


def refund(order_id: str) -> str:
    """Refund an order."""
    return f"{order_id} is refunded"


def agent(name: str, **fields: Any) -> Agent:
    guidelines = [
        Guideline("the customer wants a refund", "refund the order", tools=[refund]),
        Guideline("the customer is angry", "calm them down"),
    ]
    return Agent(name, f"You are {name}.", guidelines, **fields)


def parent(first: Agent, second: Agent, first_model: Any, second_model: Any, strategy: Any) -> Any:
    """One graph in which both agents answer every message, and whose state both share."""
    builder = StateGraph(AgentState)
    for spec, model in ((first, first_model), (second, second_model)):
        milestones = GOAL if strategy == "pre-act" else None
        app = create_guided_agent(
            model,
            spec,
            strategy=strategy,
            mode="direct",
            milestones=milestones,
            input_schema=AgentState,
        )
        builder.add_node(spec.name, app)
    builder.add_edge(START, first.name)
    builder.add_edge(first.name, second.name)
    builder.add_edge(second.name, END)
    return builder.compile(checkpointer=MemorySaver())


def say(app: Any, text: str) -> dict[str, Any]:
    state: dict[str, Any] = app.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "1"}})
    return state


def by_agent(state: dict[str, Any], channel: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for each in state.get(channel, ()):
        found.setdefault(each["agent"], []).append(each)
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_one_agent_judges_opens_no_gate_of_the_other(strategy: str) -> None:
    wanted = ("refund", {"order_id": "A-1"})
    granting = Deciding(lambda n: wanted if n == 1 else None, says="I do what I can.")
    barred = Deciding(lambda n: wanted if n == 1 else None, says="Hello there.", judge={"G1": False})
    app = parent(agent("Shop"), agent("Bank"), granting.model, barred.model, strategy)
    state = say(app, "I want a refund of A-1!")

    matches = by_agent(state, "guideline_matches")
    assert [(each["guideline"], each["active"]) for each in matches["Shop"]] == [("G1", True), ("G2", True)]
    assert [(each["guideline"], each["active"]) for each in matches["Bank"]] == [("G1", False), ("G2", True)]
    ran = [each.text for each in state["messages"] if isinstance(each, ToolMessage)]
    assert ran == ["A-1 is refunded"]
    decided = by_agent(state, "tool_insights")
    assert {each["kind"] for each in decided["Shop"]} >= {"run"}
    assert all(each["kind"] != "run" for each in decided.get("Bank", ()))


def test_the_plan_and_the_progress_of_each_agent_are_kept() -> None:
    calling = Deciding(lambda n: ("refund", {"order_id": "A-1"}) if n == 1 else None, says="Done with it.")
    silent = Deciding(says="Nothing to do for me.")
    app = parent(agent("Shop"), agent("Bank"), calling.model, silent.model, "pre-act")
    state = say(app, "I want a refund of A-1!")

    plans = {name: [each["final_answer"] for each in kept] for name, kept in by_agent(state, "plan").items()}
    assert plans == {"Shop": ["Done with it."], "Bank": ["Nothing to do for me."]}
    assert sorted(by_agent(state, "progress")) == ["Bank", "Shop"]


def test_a_yes_to_one_agent_is_none_to_the_other() -> None:
    wanted = ("refund", {"order_id": "A-1"})
    silent = Deciding(says="Hello there.", judge={"G1": True})
    asking = Deciding(lambda _: wanted, says="Very well.")
    confirm = {"refund": "customer"}
    app = parent(
        agent("Shop", confirm=confirm), agent("Bank", confirm=confirm), silent.model, asking.model, "tools"
    )
    put = say(app, "I want a refund of A-1!")
    assert put["messages"][-1].text.endswith("Reply yes to go ahead.")
    state = say(app, "yes")
    callers = [each.name for each in state["messages"] if getattr(each, "tool_calls", None)]
    assert callers == []  # what the first agent says comes between the question and the yes
    assert list(by_agent(state, "agreements")) == ["Bank"]


def test_what_one_agent_applied_does_not_count_as_applied_by_the_other() -> None:
    class Following(Deciding):
        def __call__(self, call: Any) -> Any:
            answer = super().__call__(call)
            if "revisions" in answer:
                answer["revisions"][-1]["followed"] = ["G2"]
            return answer

    shop = Following(says=lambda n: f"I am sorry to hear it, {n}.").model
    bank = Deciding(says=lambda n: f"Good day to you, {n}.").model
    app = parent(agent("Shop"), agent("Bank"), shop, bank, "tools")
    state = say(app, "I am so angry!")
    applied = by_agent(state, "applied_guidelines")
    assert {name: [each["guideline"] for each in kept] for name, kept in applied.items()} == {"Shop": ["G2"]}
    say(app, "Still angry!")
    told = {
        name: ['"applied"' in call.messages[-1].text for call in model.calls if call.module == "matcher"]
        for name, model in (("Shop", shop), ("Bank", bank))
    }
    assert told == {"Shop": [False, True], "Bank": [False, False]}
