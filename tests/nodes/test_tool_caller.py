"""Which of the proposed calls are made, and what becomes of the others."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage

from arq_graph import Agent, Guideline, create_guided_agent
from arq_graph.nodes import ToolCaller
from tests.brain import act, asked_by, brain
from tests.nodes.order_tools import A1, called, cancel, get_order, ran

ASKED = HumanMessage("Where is A-1?", id="h1")
RAN = [ASKED, *ran()]


def search(words: str) -> str:
    """Search the help pages.

    Args:
        words: What for.
    """
    return words


DESK = Agent(
    "Desk",
    "You help with orders.",
    [
        Guideline("they ask about an order", "look it up", tools=[get_order]),
        Guideline("they cancel", "cancel it", tools=[cancel]),
    ],
    tools=[search],
)


def matched(*active, turn="h1"):
    return [
        {"agent": "Desk", "guideline": id, "turn": turn, "active": id in active, "matched": id in active}
        for id in ("G1", "G2")
    ]


def decide(call, *, active=("G1", "G2"), messages=(ASKED,), insights=(), mode="direct", **options):
    """The calls, what is kept about them, and the model."""
    model = brain(call=call)
    node = ToolCaller(model, DESK, mode=mode, **options)
    update = node.invoke(
        {
            "messages": list(messages),
            "guideline_matches": matched(*active, turn=messages[-1].id if len(messages) > 3 else "h1"),
            "tool_insights": list(insights),
        }
    )
    return called(update), update.get("tool_insights"), model


def said(insights, tool="get_order"):
    return [(each["kind"], each.get("problem", "")) for each in insights if each["tool"] == tool]


def test_only_tools_that_active_guidelines_grant_and_those_always_available_are_offered():
    _, insights, model = decide({}, active=["G2"])
    offered = {asked.now["candidates"][0]: asked for asked in asked_by(model, "tools")}
    assert offered.keys() == {"cancel", "search"} == {insight["tool"] for insight in insights}
    assert said(insights, "cancel") == [("declined", "no call was proposed")]
    assert offered["cancel"].now == {
        "turn": "M1",
        "candidates": ["cancel"],
        "active": ["G2"],
        "other_candidates": ["search"],
    }


BETTER = "potentially_better_tool_name"


@pytest.mark.parametrize(
    ("verdict", "problem"),
    [
        ({"score": 4}, "score 4 is below 5"),
        ({"score": 5}, None),
        ({"should_run": False}, "the model says that it should not run"),
        ({BETTER: "search"}, "search fits better"),
        ({BETTER: "search", "better_tool_should_run_in_tandem": True}, None),
        ({BETTER: "get_order"}, None),  # itself
        ({BETTER: "cancel"}, None),  # which no active guideline grants
    ],
)
def test_a_call_that_is_not_called_for_is_declined_and_says_why(verdict, problem):
    calls, insights, _ = decide({"get_order": act("get_order", A1, **verdict)}, active=["G1"], mode="arq")
    assert calls == ([] if problem else [("get_order", A1)])
    assert said(insights) == [("declined", problem) if problem else ("run", "")]


@pytest.mark.parametrize("justified", [True, False])
def test_a_call_is_made_again_in_a_turn_only_where_that_is_justified(justified):
    again = {"get_order": lambda _: act("get_order", A1, repeat_is_justified=justified)}
    calls, insights, _ = decide(again, messages=RAN)
    assert calls == ([("get_order", A1)] if justified else [])
    assert justified or "already made in this turn" in said(insights)[0][1]


def test_two_equal_calls_in_one_answer_are_made_once():
    calls, insights, _ = decide({"get_order": [A1, A1, {"order_id": "A-2"}]})
    assert calls == [("get_order", A1), ("get_order", {"order_id": "A-2"})]
    assert ("declined", "the same call was proposed twice") in said(insights)


def test_what_ran_earlier_in_the_turn_stays_on_record():
    earlier = {"agent": "Desk", "turn": "h1", "tool": "get_order", "kind": "run", "arguments": A1}
    old = {"agent": "Desk", "turn": "h0", "tool": "search", "kind": "run"}
    _, insights, _ = decide({}, messages=RAN, insights=[earlier, old])
    assert said(insights)[0] == ("run", "")
    assert {insight["turn"] for insight in insights} == {"h1"}


def test_without_a_candidate_no_model_is_asked():
    model = brain()
    node = ToolCaller(model, Agent("Desk", "You help.", DESK.guidelines))
    update = node.invoke({"messages": [ASKED], "guideline_matches": matched()})
    assert update == {"tool_insights": []}
    assert model.calls == []


def test_each_tool_is_decided_on_in_a_call_of_its_own_and_all_that_are_wanted_are_called_together():
    calls, _, model = decide({"get_order": A1, "cancel": A1})
    assert calls == [("get_order", A1), ("cancel", A1)]
    tools = [tool for asked in asked_by(model, "tools") for tool in asked.section("tools")]
    granted_by = {tool["name"]: [each["id"] for each in tool["granted_by"]] for tool in tools}
    assert granted_by == {"get_order": ["G1"], "cancel": ["G2"], "search": []}


def test_another_round_is_asked_for_only_where_a_tool_has_become_available():
    for granted_later, rounds in ((2, 2), (9, 4)):
        judge = {"G1": 9, "G2": lambda asked, score=granted_later: score if asked.turn else 2}
        model = brain(judge=judge, call={"get_order": A1})
        agent = Agent("Desk", "You help.", DESK.guidelines)
        create_guided_agent(model, agent, mode="direct").invoke({"messages": [ASKED]})
        assert len(asked_by(model, "tools")) == rounds
