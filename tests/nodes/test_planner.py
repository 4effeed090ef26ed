"""Planning: one plan a request, refined after every observation, and one action at a time."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from arq_graph import Agent, InputError, PlanStep, ToolInsight
from arq_graph.agent.state import NextMilestone, Progress
from arq_graph.nodes import PreActPlanner, ReActPlanner
from arq_graph.nodes.events import PlanMade
from tests.nodes.order_tools import A1, called, ran
from tests.nodes.planner_desk import ASKED, BOTH, DESK, FAILED, PLAN, plan, text_of
from tests.planning import act, planner, say


@BOTH
@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_the_first_step_is_taken_with_arguments_of_the_tool_s_types(runs, node, mode):
    update, asked = plan([act("get_order", A1)], node=node, mode=mode, runs=runs)
    assert called(update) == [("get_order", A1)]
    assert update["plan"][-1].call.arguments == A1
    assert update["plan"][-1].version == 1
    assert [insight.kind for insight in update["tool_insights"]] == ["run"]
    assert len(asked) == 1


def test_a_plan_has_every_step_up_to_the_final_answer_with_its_reason():
    update, _ = plan([act("get_order", A1, steps=["cancel"])])
    steps = update["plan"][-1].steps
    assert [step.tool for step in steps] == ["get_order", "cancel", None]
    assert all(step.reason for step in steps)
    assert update["plan"][-1].previous_steps is None
    assert update["plan"][-1].faults == ()


def test_nothing_was_done_before_a_tool_ran_whatever_the_model_says():
    update, _ = plan([act("get_order", A1, previous_steps="I have asked everybody.", observation="empty")])
    assert (update["plan"][-1].previous_steps, update["plan"][-1].observation) == (None, None)


def test_a_plan_is_refined_after_an_observation(runs):
    update, (asked,) = plan([say("It is late.")], messages=[ASKED, *ran()], state={"plan": [PLAN]}, runs=runs)
    refined = update["plan"][-1]
    assert (refined.version, refined.previous_steps, refined.observation) == (2, "so far: T1", "as_expected")
    assert refined.final_answer == text_of(update) == "It is late."
    assert asked.section("plan")["call"]["expected"] == "where it is"
    assert asked.section("plan")["told_by"] == ["T1"]
    assert asked.now["results"] == ["T1"]


def test_a_new_message_of_the_customer_starts_a_new_plan():
    messages = [ASKED, *ran(), AIMessage("It is late.", id="a1"), HumanMessage("And A-2?", id="h2")]
    update, (asked,) = plan(
        [act("get_order", {"order_id": "A-2"})], messages=messages, state={"plan": [PLAN]}
    )
    assert (update["plan"][-1].turn, update["plan"][-1].version, update["plan"][-1].results) == ("h2", 1, 0)
    assert asked.section("plan") is None
    assert "results" not in asked.now


NO_CHANGE = {"observation": "as_expected"}
CHANGE = {"observation": "failed", "change": {"what": "List them instead.", "why": "T1 failed."}}


def test_a_failure_changes_the_plan_and_it_says_what_and_why():
    script = [act("list_orders", steps=["get_order"], **CHANGE)]
    update, asked = plan(script, messages=FAILED, state={"plan": [PLAN]})
    changed = update["plan"][-1]
    assert called(update) == [("list_orders", {})]
    assert [(c.version, c.what, c.why) for c in changed.changes] == [(2, "List them instead.", "T1 failed.")]
    assert PlanMade(turn="h1", plan=changed).changed == changed.changes[0]
    assert asked[0].now["failed"] == ["T1"]


def test_a_failure_is_one_even_if_the_model_says_that_all_was_as_expected():
    script = [
        act("list_orders", steps=["get_order"], **NO_CHANGE),
        act("list_orders", steps=["get_order"], **CHANGE),
    ]
    update, asked = plan(script, messages=FAILED, state={"plan": [PLAN]})
    assert "say what changes in the plan, and why" in asked[1].complaint
    assert (update["plan"][-1].observation, len(update["plan"][-1].changes)) == ("failed", 1)


@pytest.mark.parametrize("text", ["Error: no such order", '{"error": "no such order"}'])
def test_a_failure_that_a_tool_reports_as_its_result_is_one_too(text):
    update, asked = plan([say("I cannot.", **CHANGE)], messages=[ASKED, *ran(text)], state={"plan": [PLAN]})
    assert (asked[0].now["failed"], update["plan"][-1].observation) == (["T1"], "failed")


@pytest.mark.parametrize("observation", ["empty", "another_branch"])
def test_whatever_contradicts_the_plan_changes_it(observation):
    messages = [ASKED, *ran("[]")]
    told = {"what": "Ask.", "why": "T1 is empty."}
    script = [
        say("Which one?", observation=observation),
        say("Which one?", observation=observation, change=told),
    ]
    update, asked = plan(script, messages=messages, state={"plan": [PLAN]})
    assert len(asked) == 2
    assert asked[0].now["empty"] == ["T1"]
    assert update["plan"][-1].changes[0].what == "Ask."


@BOTH
def test_a_model_that_insists_on_a_failed_call_ends_the_turn(runs, node):
    update, asked = plan(
        [act("get_order", A1, **CHANGE)], node=node, messages=FAILED, state={"plan": [PLAN]}, runs=runs
    )
    assert called(update) == []
    assert text_of(update) == DESK.fallback
    assert (update["plan"][-1].call, update["plan"][-1].final_answer) == (None, None)
    assert any("has failed already" in fault for fault in update["plan"][-1].faults)
    assert len(asked) == 3


def test_the_failed_tool_may_be_called_with_other_arguments():
    script = [act("get_order", {"order_id": "A-2"}, **CHANGE)]
    update, asked = plan(script, messages=FAILED, state={"plan": [PLAN]})
    assert called(update) == [("get_order", {"order_id": "A-2"})]
    assert len(asked) == 1


def test_a_plan_that_goes_on_as_if_nothing_had_failed_is_refused():
    before = PLAN.model_copy(
        update={
            "steps": (
                PLAN.steps[0],
                PlanStep(description="call cancel", reason="!", tool="cancel"),
                PLAN.steps[1],
            )
        }
    )
    update, asked = plan([act("cancel", A1, **CHANGE)], messages=FAILED, state={"plan": [before]})
    assert called(update) == []
    assert "the plan is the one from before, though T1 was not as expected" in asked[1].complaint
    assert text_of(update) == DESK.fallback


def test_a_call_may_be_repeated_once_another_one_has_changed_something():
    messages = [ASKED, *ran(), *ran("cancelled", tool="cancel", id="c2")]
    update, _ = plan([act("get_order", A1)], messages=messages)
    assert called(update) == [("get_order", A1)]


def test_a_call_that_an_operator_has_edited_is_not_proposed_as_it_was():
    messages = [ASKED, *ran(args={"order_id": "A-9"})]
    proposed = ToolInsight(turn="h1", tool="get_order", kind="run", arguments=A1)
    script = [act("get_order", A1), say("It is late.")]
    update, asked = plan(script, messages=messages, state={"tool_insights": [proposed]})
    assert called(update) == []
    assert "another one was made in its place" in asked[1].complaint


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([("call cancel", "cancel"), ("answer", None)], "the first step is the action taken now, get_order"),
        ([("call get_order", "get_order")], "the last step is the final answer"),
        ([("call get_order", "get_order"), ("think", None), ("answer", None)], "only the last step"),
    ],
)
def test_a_plan_that_is_none_is_asked_for_again_and_its_call_is_made_at_last(steps, problem):
    wrong = [{"step": step, "reason": "-", "tool": tool} for step, tool in steps]
    update, asked = plan([act("get_order", A1, next_steps=wrong), act("get_order", A1)])
    assert problem in asked[1].complaint
    assert (len(asked), update["plan"][-1].faults) == (2, ())
    update, asked = plan([act("get_order", A1, next_steps=wrong)])
    assert called(update) == [("get_order", A1)]
    assert any(problem in fault for fault in update["plan"][-1].faults)


def test_what_was_done_has_to_be_summed_up():
    script = [say("It is late.", previous_steps=None), say("It is late.")]
    _, asked = plan(script, messages=[ASKED, *ran()], state={"plan": [PLAN]})
    assert "sum up what was done" in asked[1].complaint


@BOTH
def test_an_empty_answer_or_one_that_gives_internals_away_is_not_sent(node):
    for text in ("  ", "I called get_order for you (T1)."):
        update, asked = plan([say(text)], node=node, messages=[ASKED, *ran()])
        assert text_of(update) == DESK.fallback
        assert len(asked) == 3


def test_a_draft_stays_in_the_plan():
    update, _ = plan([say("It is late.")], messages=[ASKED, *ran()], draft=True)
    assert "messages" not in update
    assert update["plan"][-1].final_answer == "It is late."


def test_a_react_step_keeps_its_thoughts():
    first, _ = plan([act("get_order", A1, thought="I look it up.")], node=ReActPlanner)
    before = first["plan"][-1].model_copy(update={"turn": "h1"})
    messages = [ASKED, *ran()]
    update, (asked,) = plan([say("Late.")], node=ReActPlanner, messages=messages, state={"plan": [before]})
    assert asked.section("plan")["steps"][0]["reason"] == "I look it up."
    assert update["plan"][-1].previous_steps == "I look it up. So: call get_order."
    assert "next_steps" not in asked.schema["properties"]


def test_both_planners_share_the_base_prompt_and_the_tools():
    heads = []
    for node in (PreActPlanner, ReActPlanner):
        _, (asked,) = plan([say("Hello.")], node=node, examples=[])
        heads.append(asked.head)
    pre_act, react = (head.split("\n\n") for head in heads)
    assert pre_act[0] == react[0]
    assert pre_act[1] != react[1]
    assert pre_act[2:] == react[2:]


def test_milestones_that_could_come_next_are_shown():
    progress = Progress(turn="h1", reached=(), next=(NextMilestone(name="looked up"),))
    _, (asked,) = plan([say("Hello.")], state={"progress": [progress]})
    assert "looked up" in str(asked.now["next_milestones"])
    _, (asked,) = plan([say("Hello.")])
    assert "next_milestones" not in asked.now


@pytest.mark.parametrize("steps", [0, -1, "3", None])
def test_a_bound_on_steps_must_be_one(steps):
    with pytest.raises(InputError, match="max_steps must be a whole number from 1 on"):
        PreActPlanner(planner([]), DESK, max_steps=steps)


@BOTH
def test_a_planner_alone_in_another_graph_loses_no_write(runs, node):
    model = planner([act("get_order", A1)])
    builder = StateGraph(MessagesState)
    builder.add_node("plan", node(model, DESK))
    builder.add_edge(START, "plan")
    builder.add_edge("plan", END)
    graph = builder.compile()
    (update,) = runs.stream(graph, {"messages": [ASKED]}, stream_mode="updates")
    assert set(update["plan"]) == {"plan", "tool_insights", "messages"}
    (event,) = runs.stream(graph, {"messages": [ASKED]}, stream_mode="custom")
    assert isinstance(event, PlanMade)
    assert (event.plan.call.tool, event.calls, event.changed) == ("get_order", 1, None)


def test_a_call_of_an_earlier_turn_that_nobody_answered_is_settled(runs):
    left = AIMessage(
        "", id="a1", tool_calls=[{"name": "cancel", "args": A1, "id": "c9", "type": "tool_call"}]
    )
    messages = [ASKED, left, HumanMessage("Hello?", id="h2")]
    builder = StateGraph(MessagesState)
    builder.add_node("plan", PreActPlanner(planner([say("Hello.")]), DESK))
    builder.add_edge(START, "plan")
    state = runs.invoke(builder.compile(), {"messages": messages})
    assert [message.type for message in state["messages"]] == ["human", "ai", "tool", "human", "ai"]


def test_a_tool_may_be_called_like_the_final_answer():
    def final_answer(text: str) -> str:
        """Send a letter."""
        return text

    agent = Agent("Desk", "You help.", tools=[final_answer])
    update, _ = plan([act("final_answer", {"text": "Hi"})], agent=agent)
    assert called(update) == [("final_answer", {"text": "Hi"})]


@BOTH
def test_an_agent_without_tools_answers(node):
    update, (asked,) = plan([say("Hello.")], node=node, agent=Agent("Desk", "You help."))
    assert text_of(update) == "Hello."
    assert asked.now["candidates"] == []
