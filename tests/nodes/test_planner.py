"""Planning: one plan per request, refined after every result, and one action at a time."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from arq_graph import Agent, Guideline, create_preact_agent
from arq_graph.nodes import PreActPlanner, ReActPlanner, events
from tests.brain import act, brain, get_prompts, say
from tests.order_tools import A1, cancel, get_calls, get_order, ran

ASKED = HumanMessage("Where is A-1?", id="h1")
BOTH = pytest.mark.parametrize("node", [PreActPlanner, ReActPlanner])
FAILED = [ASKED, *ran("ConnectionError: no answer", status="error")]


def list_orders() -> str:
    """List all orders."""
    return "A-1"


DESK = Agent("Desk", "You help with orders.", tools=[get_order, cancel, list_orders])
PLAN = {
    "agent": "Desk",
    "turn": "h1",
    "steps": [
        {"description": "call get_order", "reason": "It tells.", "tool": "get_order"},
        {"description": "answer the customer", "reason": "Done."},
    ],
    "call": {"tool": "get_order", "arguments": A1, "expected": "where it is"},
}


def plan(moves, *, messages=(ASKED,), node=PreActPlanner, agent=DESK, state=None, **options):
    """Run a planner once; return its update, and what its model was asked."""
    model = brain(moves=moves)
    update = node(model, agent, **options).invoke({"messages": list(messages), **(state or {})})
    return update, get_prompts(model, "planner")


def get_reply(update):
    """The text of an update's messages."""
    return "".join(message.text for message in update.get("messages", ()))


@BOTH
@pytest.mark.parametrize("mode", ["arq", "direct"])
def test_the_first_step_is_the_action_that_is_taken(node, mode):
    fields = {"previous_steps": "I asked everybody.", "observation": "empty"} if node is PreActPlanner else {}
    update, prompts = plan([act("get_order", A1, **fields)], node=node, mode=mode)
    assert (get_calls(update), len(prompts)) == ([("get_order", A1)], 1)
    record = update["plan"][-1]
    # Nothing was done before a tool ran, whatever the model says.
    assert (record["previous_steps"], record["observation"], record["version"]) == (None, None, 1)
    assert [insight["kind"] for insight in update["tool_insights"]] == ["run"]
    steps = [step["tool"] for step in record["steps"]]
    assert steps == (["get_order", None] if node is PreActPlanner else ["get_order"])


def test_a_plan_is_refined_after_an_observation():
    update, (prompt,) = plan([say("It is late.")], messages=[ASKED, *ran()], state={"plan": [PLAN]})
    refined = update["plan"][-1]
    assert (refined["version"], refined["observation"]) == (2, "as_expected")
    assert refined["previous_steps"] == "so far: T1"
    assert refined["final_answer"] == get_reply(update) == "It is late."
    assert prompt.section("plan")["call"]["expected"] == "where it is"
    assert (prompt.section("plan")["told_by"], prompt.now["results"]) == (["T1"], ["T1"])


def test_a_new_message_of_the_customer_starts_a_new_plan():
    messages = [ASKED, *ran(), AIMessage("It is late.", id="a1"), HumanMessage("And A-2?", id="h2")]
    update, (prompt,) = plan([say("Late too.")], messages=messages, state={"plan": [PLAN]})
    assert (update["plan"][-1]["turn"], update["plan"][-1]["version"]) == ("h2", 1)
    assert prompt.section("plan") is None


CHANGE = {"observation": "failed", "change": {"what": "List them instead.", "why": "T1 failed."}}


@pytest.mark.parametrize(
    ("messages", "observation", "recorded"),
    [
        (FAILED, "as_expected", "failed"),  # code sees it, whatever the model says first
        ([ASKED, *ran("[]")], "empty", "empty"),
        ([ASKED, *ran()], "another_branch", "another_branch"),
    ],
)
def test_what_contradicts_the_plan_changes_it_and_the_plan_says_what_and_why(messages, observation, recorded):
    fields = {**CHANGE, "observation": observation}
    moves = [act("list_orders", **{**fields, "change": None}), act("list_orders", **fields)]
    update, prompts = plan(moves, messages=messages, state={"plan": [PLAN]})
    assert get_calls(update) == [("list_orders", {})]
    assert update["plan"][-1]["changes"] == [{"version": 2, **CHANGE["change"]}]
    assert (update["plan"][-1]["observation"], len(prompts)) == (recorded, 2)
    assert "say what changes in the plan, and why" in prompts[1].complaint


def test_code_classifies_a_result_by_its_form():
    results = {
        '{"results": [], "note": "closed today"}': set(),
        "Error: no such order": set(),
        '{"error": null, "ok": true, "results": []}': {"empty"},
        '[{"error": "no such order"}]': {"failed"},
    }
    for result, outcome in results.items():
        _, prompts = plan([say("I see.", **CHANGE)], messages=[ASKED, *ran(result)])
        assert {"failed", "empty"} & prompts[0].now.keys() == outcome


@BOTH
def test_a_failed_call_is_made_once_more_and_a_model_that_insists_ends_the_turn(node):
    again = [act("get_order", A1, **CHANGE)]
    update, _ = plan(again, node=node, messages=FAILED, state={"plan": [PLAN]})
    assert get_calls(update) == [("get_order", A1)]
    twice = [*FAILED, *ran("ConnectionError: no answer", status="error")]
    update, prompts = plan(again, node=node, messages=twice, state={"plan": [PLAN]})
    assert (get_calls(update), get_reply(update), len(prompts)) == ([], DESK.fallback, 3)
    assert update["plan"][-1]["call"] is None
    assert "has failed already" in update["plan"][-1]["faults"][-1]


@BOTH
def test_a_call_that_no_active_guideline_grants_is_refused_and_the_model_is_told_what_can_be_called(node):
    agent = Agent("Desk", "You help.", [Guideline("they cancel", "do it", tools=[cancel])], tools=[get_order])
    inactive = {"agent": "Desk", "guideline": "G1", "turn": "h1", "active": False, "matched": False}
    moves = [act("cancel", A1), say("That is not possible.")]
    update, prompts = plan(moves, node=node, agent=agent, state={"guideline_matches": [inactive]})
    assert (get_calls(update), [insight["kind"] for insight in update["tool_insights"]]) == ([], ["declined"])
    assert "no active guideline grants it; tools that can be called now: get_order" in prompts[1].complaint


def test_a_plan_that_continues_as_if_nothing_had_failed_is_refused():
    then = {"description": "call cancel", "reason": "!", "tool": "cancel"}
    before = {**PLAN, "steps": [PLAN["steps"][0], then, PLAN["steps"][1]]}
    update, prompts = plan([act("cancel", A1, **CHANGE)], messages=FAILED, state={"plan": [before]})
    assert get_calls(update) == []
    assert "the plan is the one from before" in prompts[1].complaint


@pytest.mark.parametrize("between", [[], ran("cancelled", tool="cancel", id="c2")], ids=len)
def test_a_call_may_be_repeated_once_another_one_has_changed_something(between):
    update, _ = plan([act("get_order", A1)], messages=[ASKED, *ran(), *between])
    assert get_calls(update) == ([("get_order", A1)] if between else [])


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([("call cancel", "cancel"), ("answer", None)], "the first step is the action taken now, get_order"),
        ([("call get_order", "get_order"), ("think", None), ("answer", None)], "only the last step"),
    ],
)
def test_an_invalid_plan_is_asked_for_again_and_its_call_is_made_at_last(steps, problem):
    wrong = [{"step": step, "reason": "-", "tool": tool} for step, tool in steps]
    update, prompts = plan([act("get_order", A1, next_steps=wrong)])
    assert problem in prompts[1].complaint
    assert get_calls(update) == [("get_order", A1)]
    assert any(problem in fault for fault in update["plan"][-1]["faults"])


@pytest.mark.parametrize(
    ("node", "text"), [(PreActPlanner, "  "), (ReActPlanner, "I called get_order for you (T1).")]
)
def test_an_empty_answer_or_one_that_gives_internals_away_is_not_sent(node, text):
    update, prompts = plan([say(text)], node=node, messages=[ASKED, *ran()])
    assert (get_reply(update), len(prompts)) == (DESK.fallback, 3)


def test_a_react_step_keeps_its_thoughts():
    first, _ = plan([act("get_order", A1, thought="I look it up.")], node=ReActPlanner)
    state = {"plan": first["plan"]}
    update, (prompt,) = plan([say("Late.")], node=ReActPlanner, messages=[ASKED, *ran()], state=state)
    assert prompt.section("plan")["steps"][0]["reason"] == "I look it up."
    assert update["plan"][-1]["previous_steps"] == "I look it up. So: call get_order."
    assert "next_steps" not in prompt.schema["properties"]


def test_each_plan_is_an_event_and_the_bound_on_steps_leaves_only_the_final_answer():
    moves = [act("get_order", {"order_id": f"A-{n}"}) for n in range(9)]
    model = brain(moves=lambda _: moves.pop(0) if moves else say("Enough."))
    stream = create_preact_agent(model, DESK).stream({"messages": [ASKED]}, stream_mode="custom")
    plans = [event.plan for event in stream if isinstance(event, events.PlanMade)]
    assert [plan.call is not None for plan in plans] == [*[True] * 8, False]
    assert plans[-1].final_answer == "Enough."
    assert get_prompts(model, "planner")[-1].now["steps_left"] == 0


@pytest.mark.parametrize(
    ("basis", "kind"), [("this_request", "run"), ("inferred", "confirm"), ("nobody", "missing")]
)
def test_the_customer_confirms_a_guess_and_is_asked_for_a_value_that_nobody_gave(basis, kind):
    update, _ = plan([act("get_order", A1, bases={"order_id": basis}), say("One moment.")])
    assert [insight["kind"] for insight in update["tool_insights"]] == [kind]
    assert bool(get_calls(update)) is (kind == "run")
