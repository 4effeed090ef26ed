"""Planning in the guided agent: guidelines are matched and tools gated as before, and the answer is the draft."""

from __future__ import annotations

import pytest

from arq_graph import InputError, create_guided_agent
from tests.apps.desk import active, desk, kinds, late, says
from tests.brain import asked_by
from tests.planning import act, planner, say

A1 = {"order_id": "A-1"}
BOTH = pytest.mark.parametrize("planning", ["pre-act", "react"])


@BOTH
@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_the_planner_stands_in_the_place_of_the_tool_caller(runs, planning, mode):
    model = planner(
        [act("get_order", A1), say("It is late.")], judge={"G1": 9}, reply="I am sorry, it is late."
    )
    app = create_guided_agent(model, desk(), planning=planning, mode=mode)
    state = runs.invoke(app, says("Where is A-1?"))
    assert kinds(state) == ["human", "ai", "tool", "ai"]
    assert state["messages"][-1].content == "I am sorry, it is late."
    assert state["plan"].final_answer == "It is late."
    assert active(state) == ["G1", "G4"]
    assert asked_by(model, "tools") == []


def test_the_final_answer_is_the_draft_of_the_reply(runs):
    model = planner([say("It is </draft> late.")], reply=lambda asked: asked.section("draft"))
    state = runs.invoke(create_guided_agent(model, desk(), planning="pre-act"), says("Where is A-1?"))
    assert state["messages"][-1].content == "It is </draft> late."
    (asked,) = asked_by(model, "message")
    assert asked.tail.count("</draft>") == 1


def test_without_planning_there_is_no_draft(runs):
    model = planner([], reply="Hello.")
    runs.invoke(create_guided_agent(model, desk()), says("Hi"))
    (asked,) = asked_by(model, "message")
    assert (asked.section("draft"), asked_by(model, "planner")) == (None, [])


@BOTH
def test_a_plan_is_refined_with_the_tools_that_a_result_has_made_available(runs, planning):
    model = planner(
        [act("get_order", A1, steps=["give_discount"]), act("give_discount", A1), say("Here.")],
        judge={"G1": 9, "G2": late},
    )
    state = runs.invoke(create_guided_agent(model, desk(), planning=planning), says("Where is A-1?"))
    assert [asked.now["candidates"] for asked in asked_by(model, "planner")] == [
        ["get_order"],
        ["get_order", "give_discount"],
        ["get_order", "give_discount"],
    ]
    assert [m.content for m in state["messages"] if m.type == "tool"] == ["A-1 is late", "5% off A-1"]
    assert active(state) == ["G1", "G2", "G4"]


@BOTH
def test_a_tool_that_no_active_guideline_grants_never_runs(runs, planning):
    model = planner([act("give_discount", A1)], judge={"G1": 9}, reply="I cannot.")
    state = runs.invoke(create_guided_agent(model, desk(), planning=planning), says("Give me a discount"))
    assert kinds(state) == ["human", "ai"]
    (asked,) = asked_by(model, "message")
    assert asked.section("draft") is None
    assert len(asked_by(model, "planner")) == 3


def test_a_missing_argument_is_asked_for_by_the_reply(runs):
    model = planner([act("get_order", {}), say("Which order?")], judge={"G1": 9}, reply="Which order is it?")
    state = runs.invoke(create_guided_agent(model, desk(), planning="pre-act"), says("Where is my order?"))
    (insight,) = state["tool_insights"]
    assert (insight.kind, insight.argument) == ("missing", "order_id")
    (asked,) = asked_by(model, "message")
    assert [entry["argument"] for entry in asked.section("insights")] == ["order_id"]
    assert asked.section("draft") == "Which order?"


def test_a_call_that_waits_for_the_customer_is_put_to_them_by_the_reply(runs):
    model = planner([act("get_order", A1), say("It is free.")], judge={"G1": 9}, reply="It is free.")
    agent = desk(confirm={"get_order": "customer"})
    state = runs.invoke(create_guided_agent(model, agent, planning="pre-act"), says("Where is A-1?"))
    assert [(i.kind, i.arguments) for i in state["tool_insights"]] == [("confirm", A1)]
    (shown,) = asked_by(model, "message")[0].section("insights")
    assert shown["kind"] == "confirm"
    assert state["messages"][-1].content == f"It is free.\n\n{shown['question']}"


def test_max_rounds_bounds_the_steps(runs):
    model = planner(lambda asked: act("get_order", {"order_id": f"A-{len(asked.turn)}"}), judge={"G1": 9})
    app = create_guided_agent(model, desk(), planning="pre-act", max_rounds=2)
    state = runs.invoke(app, says("Where is everything?"))
    assert kinds(state) == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert len(asked_by(model, "planner")) == 2 + 3


def test_a_turn_waits_for_few_models():
    """One call after another: match, plan, match again (G2 may have become active), plan, reply."""
    model = planner([act("get_order", A1), say("Late.")], judge={"G1": 9})
    create_guided_agent(model, desk(), planning="pre-act").invoke(says("Where is A-1?"))
    modules = [call.module for call in model.calls]
    assert modules == ["matcher", "matcher", "planner", "matcher", "planner", "message"]


def test_each_module_may_have_a_model_of_its_own(runs):
    model = planner([say("Hello.")], reply="Hello!")
    models = {"matcher": model, "planner": model, "message": model}
    app = create_guided_agent(models, desk(), planning="react")
    assert runs.invoke(app, says("Hi"))["messages"][-1].content == "Hello!"
    with pytest.raises(InputError, match="no model is given for planner"):
        create_guided_agent({"matcher": model, "tools": model, "message": model}, desk(), planning="react")
    with pytest.raises(InputError, match="no model is given for tools"):
        create_guided_agent(models, desk())


def test_the_paper_s_models_plan_too(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    create_guided_agent(None, desk(), preset="paper", planning="pre-act")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"planning": "plan"}, "planning is 'plan': it must be one of"),
        ({"planning": "react", "max_rounds": 0}, "max_rounds must be a whole number from 1 on, not 0"),
    ],
)
def test_a_wrong_setting_is_told_when_the_app_is_made(settings, problem):
    with pytest.raises(InputError, match=problem):
        create_guided_agent(planner([]), desk(), **settings)


def test_the_picture_shows_every_step():
    app = create_guided_agent(planner([]), desk(confirm={"get_order": "operator"}), planning="pre-act")
    picture = app.get_graph().draw_mermaid()
    for step in ("match", "plan", "approve", "tools", "match_again", "message"):
        assert f"{step}(" in picture


def test_an_agent_without_tools_plans_its_answer(runs):
    agent = desk(guidelines=desk().guidelines[2:])
    model = planner([say("Hello.")], reply="Hello!")
    state = runs.invoke(create_guided_agent(model, agent, planning="pre-act"), says("Hi"))
    assert (kinds(state), state["plan"].final_answer) == (["human", "ai"], "Hello.")
