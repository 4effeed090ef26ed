"""The planning agent alone: plan, act, observe, refine, answer."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from arq_graph import Agent, InputError, SpecError, create_planning_agent
from arq_graph.nodes import PlanMade
from tests.apps.desk import desk, get_order, give_discount, kinds, says, thread
from tests.brain import asked_by
from tests.planning import act, planner, say

A1 = {"order_id": "A-1"}
BOTH = pytest.mark.parametrize("planning", ["pre-act", "react"])
TOOLS = [get_order, give_discount]


def broken(order_id: str) -> str:
    """Look up an order.

    Args:
        order_id: The order's number.
    """
    raise ConnectionError("the warehouse does not answer")


@BOTH
def test_one_step_after_the_other_up_to_the_final_answer(runs, planning):
    model = planner(
        [act("get_order", A1, steps=["give_discount"]), act("give_discount", A1), say("Here you are.")]
    )
    state = runs.invoke(create_planning_agent(model, TOOLS, planning=planning), says("A-1 is late!"))
    assert kinds(state) == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert state["messages"][-1].content == "Here you are."
    assert (state["plan"].version, state["plan"].final_answer) == (3, "Here you are.")
    assert len(model.calls) == 3


def test_a_plan_that_meets_a_failing_tool_changes(runs):
    change = {"observation": "failed", "change": {"what": "Ask a colleague.", "why": "T1 failed."}}
    model = planner([act("broken", A1, steps=["give_discount"]), say("I cannot see it now.", **change)])
    app = create_planning_agent(model, [broken, give_discount])
    events = runs.stream(app, says("Where is A-1?"), stream_mode="custom")
    first, second = (event for event in events if isinstance(event, PlanMade))
    assert [step.tool for step in first.plan.steps] == ["broken", "give_discount", None]
    assert [step.tool for step in second.plan.steps] == [None]
    assert (first.changed, second.changed.what) == (None, "Ask a colleague.")
    assert second.plan.observation == "failed"


@BOTH
def test_a_model_that_answers_the_same_for_ever_comes_to_an_end(runs, planning):
    model = planner([act("broken", A1)])
    state = runs.invoke(create_planning_agent(model, [broken], planning=planning), says("Where is A-1?"))
    assert kinds(state) == ["human", "ai", "tool", "ai"]
    assert len(model.calls) == 1 + 3


@BOTH
def test_steps_are_bounded(runs, planning):
    model = planner(lambda asked: act("get_order", {"order_id": f"A-{len(asked.turn)}"}))
    app = create_planning_agent(model, TOOLS, planning=planning, max_steps=4)
    state = runs.invoke(app, says("Where is everything?"))
    assert kinds(state).count("tool") == 4
    assert state["messages"][-1].content == Agent("x", "x").fallback
    assert len(model.calls) == 4 + 3


def test_many_steps_need_no_setting_of_the_graph(runs):
    model = planner(lambda asked: act("get_order", {"order_id": f"A-{len(asked.turn)}"}))
    app = create_planning_agent(model, TOOLS, max_steps=20)
    assert kinds(runs.invoke(app, says("Where is everything?"))).count("tool") == 20


def test_a_new_message_starts_a_new_plan_and_the_old_one_is_not_shown(runs):
    model = planner([act("get_order", A1), say("Late."), say("You are welcome.")])
    app = create_planning_agent(model, TOOLS, checkpointer=MemorySaver())
    first = runs.invoke(app, says("Where is A-1?"), thread())["plan"]
    second = runs.invoke(app, says("Thanks"), thread())["plan"]
    assert (first.version, second.version) == (2, 1)
    assert first.turn != second.turn
    assert second.previous_steps is None
    assert asked_by(model, "planner")[-1].section("plan") is None


def test_the_customer_agrees_to_a_call_in_the_next_turn(runs):
    ask = say("Shall I give 5% off A-1?", asks_for=[("give_discount", None)])
    model = planner([act("give_discount", A1), ask, act("give_discount", A1, affirmed_in="M3"), say("Done.")])
    agent = Agent("Desk", "You help.", tools=TOOLS, confirm={"give_discount": "customer"})
    app = create_planning_agent(model, agent, checkpointer=MemorySaver())
    assert kinds(runs.invoke(app, says("A discount!"), thread())) == ["human", "ai"]
    state = runs.invoke(app, says("Yes"), thread())
    assert kinds(state) == ["human", "ai", "human", "ai", "tool", "ai"]


def test_an_operator_is_asked_before_a_call_runs(runs):
    change = {"observation": "failed", "change": {"what": "No discount.", "why": "T1: refused."}}
    model = planner([act("give_discount", A1), say("I may not.", **change)])
    agent = Agent("Desk", "You help.", tools=TOOLS, confirm={"give_discount": "operator"})
    app = create_planning_agent(model, agent, checkpointer=MemorySaver())
    assert runs.invoke(app, says("A discount!"), thread())["__interrupt__"]
    rejected = Command(resume={"decisions": [{"type": "reject", "message": "too much"}]})
    state = runs.invoke(app, rejected, thread())
    assert state["messages"][-1].content == "I may not."
    assert state["plan"].observation == "failed"


def test_a_list_of_tools_may_have_a_profile(runs):
    model = planner([say("Hello.")])
    app = create_planning_agent(model, TOOLS, profile="You are Kim.", name="kim")
    runs.invoke(app, says("Hi"))
    (asked,) = asked_by(model, "planner")
    assert (app.name, asked.section("profile")["text"]) == ("kim", "You are Kim.")


def test_the_prompt_can_be_replaced_block_by_block(runs):
    model = planner([say("Hello.")])
    prompt = '{% extends "pre_act_planner.md" %}{% block task %}You are the strict one.{% endblock %}'
    runs.invoke(create_planning_agent(model, TOOLS, prompt=prompt), says("Hi"))
    (asked,) = asked_by(model, "planner")
    assert asked.head.startswith("You are the strict one.")
    assert "Plan before you act" in asked.head


@pytest.mark.parametrize(
    ("agent", "settings", "error", "problem"),
    [
        (desk(), {}, InputError, "'Desk' has guidelines, .*create_guided_agent"),
        (TOOLS, {"planning": "act"}, InputError, "planning is 'act': it must be one of 'react', 'pre-act'"),
        (TOOLS, {"planning": None}, InputError, "planning is None"),
        (TOOLS, {"max_steps": 0}, InputError, "max_steps must be a whole number from 1 on, not 0"),
        ("get_order", {}, InputError, "agent is a str: give an Agent without guidelines, or a list of tools"),
        (get_order, {}, InputError, "agent is a function"),
        (
            Agent("Desk", "You help."),
            {"profile": "You are Kim."},
            InputError,
            "profile belongs to a list of tools",
        ),
        ([3], {}, SpecError, "tool"),
    ],
)
def test_a_wrong_setting_is_told_when_the_app_is_made(agent, settings, error, problem):
    with pytest.raises(error, match=problem):
        create_planning_agent(planner([]), agent, **settings)


def test_an_agent_without_guidelines_and_tools_only_answers(runs):
    state = runs.invoke(
        create_planning_agent(planner([say("Hello.")]), Agent("Desk", "You help.")), says("Hi")
    )
    assert kinds(state) == ["human", "ai"]
