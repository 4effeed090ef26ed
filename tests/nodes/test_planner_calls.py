"""A planner's calls: the gate, the arguments and what they rest on, the customer's word."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from arq_graph import Agent, Guideline, GuidelineMatch, ToolInsight
from tests.nodes.order_tools import A1, called, cancel, get_order
from tests.nodes.planner_desk import ASKED, BOTH, plan, text_of
from tests.planning import act, say

GUIDED = Agent(
    "Desk",
    "You help.",
    [
        Guideline("they ask about an order", "look it up", tools=[get_order]),
        Guideline("they cancel", "cancel it", tools=[cancel]),
    ],
)
MATCHES = [
    GuidelineMatch(guideline="G1", turn="h1", active=True, matched=True, score=9),
    GuidelineMatch(guideline="G2", turn="h1", active=False, matched=False, score=1),
]


@BOTH
def test_a_tool_that_no_active_guideline_grants_is_refused(node):
    script = [act("cancel", A1), act("get_order", A1)]
    update, asked = plan(script, node=node, agent=GUIDED, state={"guideline_matches": MATCHES})
    assert called(update) == [("get_order", A1)]
    assert asked[0].now["candidates"] == ["get_order"]
    assert "cancel cannot be called now; the tools that can: get_order" in asked[1].complaint
    update, _ = plan(script[:1], node=node, agent=GUIDED, state={"guideline_matches": MATCHES})
    assert (called(update), text_of(update)) == ([], GUIDED.fallback)


def test_a_later_step_may_need_a_tool_that_is_not_available_yet():
    script = [act("get_order", A1, steps=["cancel"])]
    update, asked = plan(script, agent=GUIDED, state={"guideline_matches": MATCHES})
    assert [step.tool for step in update["plan"].steps] == ["get_order", "cancel", None]
    assert len(asked) == 1


def test_the_planner_sees_the_active_guidelines_in_full():
    _, (asked,) = plan([say("Hello.")], agent=GUIDED, state={"guideline_matches": MATCHES})
    (shown,) = asked.section("active_guidelines")
    assert (shown["id"], shown["action"]) == ("G1", "look it up")
    _, (asked,) = plan([say("Hello.")])
    assert asked.section("active_guidelines") is None


@BOTH
def test_a_missing_argument_is_asked_for(node):
    script = [act("get_order", {}), say("Which order?", asks_for=[("get_order", "order_id")])]
    update, asked = plan(script, node=node)
    assert (called(update), text_of(update)) == ([], "Which order?")
    assert "order_id: it is missing" in asked[1].complaint
    kinds = {(i.kind, i.tool, i.argument, i.description) for i in update["tool_insights"]}
    assert kinds == {("missing", "get_order", "order_id", "The order's number.")}


def test_what_a_final_answer_asks_for_is_known_to_the_next_turn():
    update, asked = plan([say("Which order?", asks_for=[("get_order", "order_id"), ("no_tool", "x")])])
    assert [(i.kind, i.tool, i.argument) for i in update["tool_insights"]] == [
        ("missing", "get_order", "order_id")
    ]
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("basis", "problem"),
    [("another_request", "was stated for another request"), ("inferred", "is inferred")],
)
@pytest.mark.parametrize("mode", ["arq", "direct"])
def test_a_value_of_another_request_or_a_guess_is_confirmed_first(basis, problem, mode):
    doubtful = act("cancel", A1, bases={"order_id": basis})
    ask = say("Do you mean A-1?", asks_for=[("cancel", None)])
    update, asked = plan([doubtful, ask], mode=mode)
    assert (called(update), text_of(update)) == ([], "Do you mean A-1?")
    assert f'"A-1" {problem}' in asked[1].complaint
    (insight,) = update["tool_insights"]
    assert (insight.kind, insight.tool, insight.arguments) == ("confirm", "cancel", A1)


@pytest.mark.parametrize("basis", ["this_request", "known"])
def test_a_value_that_was_stated_or_found_is_used(basis):
    update, asked = plan([act("cancel", A1, bases={"order_id": basis})])
    assert (called(update), len(asked)) == ([("cancel", A1)], 1)


def test_an_optional_value_that_nobody_gave_is_left_out():
    args = {**A1, "reason": "I think they moved"}
    update, _ = plan([act("cancel", args, bases={"reason": "nobody"})])
    assert called(update) == [("cancel", A1)]


def test_a_required_value_that_nobody_gave_is_missing():
    script = [act("cancel", A1, bases={"order_id": "nobody"}), say("Which one?")]
    update, asked = plan(script)
    assert "order_id: it is missing (nobody gave it)" in asked[1].complaint
    assert called(update) == []


CONFIRMED = Agent("Desk", "You help.", tools=[get_order, cancel], confirm={"cancel": "customer"})
ASK = say("Shall I cancel A-1?", asks_for=[("cancel", None)])


def test_a_call_that_the_customer_has_to_agree_to_is_put_to_them_first(runs):
    update, asked = plan([act("cancel", A1), ASK], agent=CONFIRMED, runs=runs)
    assert (called(update), text_of(update)) == ([], "Shall I cancel A-1?")
    assert "the customer has not agreed to these arguments yet" in asked[1].complaint
    (insight,) = update["tool_insights"]
    assert (insight.kind, insight.arguments) == ("confirm", A1)


def test_a_call_runs_once_the_customer_has_agreed_to_those_arguments():
    waits = ToolInsight(turn="h1", tool="cancel", kind="confirm", arguments=A1)
    messages = [ASKED, AIMessage("Shall I cancel A-1?", id="a1"), HumanMessage("Yes", id="h2")]
    script = [act("cancel", A1, affirmed_in="M3", bases={"order_id": "another_request"})]
    update, (asked,) = plan(script, agent=CONFIRMED, messages=messages, state={"tool_insights": [waits]})
    assert called(update) == [("cancel", A1)]
    assert asked.now["awaiting_confirmation"][0]["arguments"] == A1
    other = [act("cancel", {"order_id": "A-2"}, affirmed_in="M3"), say("No.")]
    update, _ = plan(other, agent=CONFIRMED, messages=messages, state={"tool_insights": [waits]})
    assert called(update) == []


@pytest.mark.parametrize("answer", ["No", "Yes, but for Bob", "Forget it", "Nein", "No, don't do it!"])
def test_a_no_is_a_no_whatever_the_planner_makes_of_it(answer):
    waits = ToolInsight(turn="h1", tool="cancel", kind="confirm", arguments=A1)
    messages = [ASKED, AIMessage("Shall I cancel A-1?", id="a1"), HumanMessage(answer, id="h2")]
    script = [act("cancel", A1, affirmed_in="M3"), say("As you like.")]
    update, _ = plan(script, agent=CONFIRMED, messages=messages, state={"tool_insights": [waits]})
    assert called(update) == []


def test_an_answer_about_something_else_asks_for_no_yes():
    tea = say("Do you like tea?", asks_for=[("cancel", None)])
    update, _ = plan([act("cancel", A1), tea], agent=CONFIRMED)
    assert [insight.kind for insight in update["tool_insights"]] == ["declined"]


def test_no_yes_counts_for_a_call_that_the_answer_did_not_ask_about():
    update, _ = plan([act("cancel", A1), say("What a day!")], agent=CONFIRMED)
    assert [insight.kind for insight in update["tool_insights"]] == ["declined"]
    update, _ = plan([act("cancel", A1)], agent=CONFIRMED)
    assert text_of(update) == CONFIRMED.fallback
    assert [insight.kind for insight in update["tool_insights"]] == ["declined"]


def test_an_answer_cannot_ask_about_a_call_whose_arguments_nobody_knows():
    update, asked = plan([ASK, act("cancel", A1), ASK], agent=CONFIRMED)
    assert "take the call of cancel as the action, with its arguments" in asked[1].complaint
    assert [insight.arguments for insight in update["tool_insights"]] == [A1]
