"""Two agents under one parent: each judges its own, and neither opens the other's gate."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph

from arq_graph import Agent, AgentState, Guideline, create_guided_agent
from arq_graph.milestones import MilestoneGraph
from tests.agreement.desk import SETTINGS
from tests.brain import Move, act, asked_by, brain, say

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


def told(app: Any, text: str) -> dict[str, Any]:
    state: dict[str, Any] = app.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "1"}})
    return state


def by_agent(state: dict[str, Any], channel: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for each in state.get(channel, ()):
        found.setdefault(each["agent"], []).append(each)
    return found


WANTED = act("refund", {"order_id": "A-1"})
BOTH = {"G1": 9, "G2": 9}


def once(move: Move) -> Any:
    """Make a move at the first decision, and speak from then on."""
    moves = iter([move])
    return lambda _: next(moves, say())


@pytest.mark.parametrize("strategy", SETTINGS)
def test_what_one_agent_judges_opens_no_gate_of_the_other(strategy: str) -> None:
    granting = brain(BOTH, reply="I do what I can.", moves=once(WANTED))
    barred = brain({"G2": 9}, reply="Hello there.", moves=once(WANTED))
    state = told(parent(agent("Shop"), agent("Bank"), granting, barred, strategy), "I want a refund of A-1!")
    matches = by_agent(state, "guideline_matches")
    active = {name: [each["guideline"] for each in kept if each["active"]] for name, kept in matches.items()}
    assert active == {"Shop": ["G1", "G2"], "Bank": ["G2"]}
    assert [each.text for each in state["messages"] if each.type == "tool"] == ["A-1 is refunded"]
    decided = by_agent(state, "tool_insights")
    assert "run" in {each["kind"] for each in decided["Shop"]}
    assert "run" not in {each["kind"] for each in decided.get("Bank", ())}
    kept = {"pre-act": ("plan", "progress"), "react": ("plan",), "respact": ("moves",)}.get(strategy, ())
    assert all(by_agent(state, channel).keys() == {"Shop", "Bank"} for channel in kept)


def test_a_yes_to_one_agent_is_none_to_the_other() -> None:
    specs = [agent(name, confirm={"refund": "customer"}) for name in ("Shop", "Bank")]
    silent = brain(BOTH, reply="Hello there.")
    asking = brain(BOTH, reply="Very well.", moves=[WANTED], wants=lambda: True)
    app = parent(*specs, silent, asking, "tools")
    put = told(app, "I want a refund of A-1!")
    assert put["messages"][-1].text.endswith("Reply yes to go ahead.")
    state = told(app, "yes")
    # What the first agent says comes between the question and the yes.
    assert [each.name for each in state["messages"] if getattr(each, "tool_calls", None)] == []
    assert list(by_agent(state, "agreements")) == ["Bank"]


def test_what_one_agent_applied_does_not_count_as_applied_by_the_other() -> None:
    shop, bank = brain(BOTH), brain(BOTH, reply=lambda _: {"content": "Good day to you.", "followed": []})
    app = parent(agent("Shop"), agent("Bank"), shop, bank, "tools")
    applied = by_agent(told(app, "I am so angry!"), "applied_guidelines")
    assert applied.keys() == {"Shop"}
    told(app, "Still angry!")
    assert [bool(asked.now.get("applied")) for asked in asked_by(shop, "matcher")] == [False, True]
    assert [bool(asked.now.get("applied")) for asked in asked_by(bank, "matcher")] == [False, False]
