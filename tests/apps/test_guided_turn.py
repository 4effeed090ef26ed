"""A turn of the guided agent, from the customer's message to the reply."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, ToolError, create_guided_agent
from tests.apps.desk import active, desk, get_order, kinds, late, says, thread
from tests.brain import DONE, Call, asked_by, brain

ORDER = {"order_id": "A-1"}


def test_a_tool_is_called_with_what_the_customer_gave_and_the_reply_follows(runs):
    model = brain(judge={"G1": 9}, call={"get_order": ORDER}, reply="It is late, I am sorry.")
    state = runs.invoke(create_guided_agent(model, desk()), says("Where is A-1?"))
    assert kinds(state) == ["human", "ai", "tool", "ai"]
    assert state["messages"][1].tool_calls[0]["args"] == ORDER
    assert state["messages"][2].content == "A-1 is late"
    assert state["messages"][-1].content == "It is late, I am sorry."
    assert active(state) == ["G1", "G4"]


def test_a_tool_result_activates_another_guideline_in_the_same_turn_and_its_tool_gets_its_round(runs):
    calls = {"get_order": ORDER, "give_discount": ORDER}
    model = brain(judge={"G1": 9, "G2": late}, call=calls)
    state = runs.invoke(create_guided_agent(model, desk()), says("Where is A-1?"))
    assert active(state) == ["G1", "G2", "G4"]
    assert [m.content for m in state["messages"] if m.type == "tool"] == ["A-1 is late", "5% off A-1"]
    reply = asked_by(model, "message")[-1]
    assert [guideline["id"] for guideline in reply.section("active_guidelines")] == ["G1", "G2", "G4"]


def test_the_second_look_judges_only_what_a_tool_result_could_make_true(runs):
    model = brain(judge={"G1": 9, "G2": late}, call={"get_order": ORDER})
    runs.invoke(create_guided_agent(model, desk()), says("Where is A-1?"))
    judged = [asked.now["judge"] for asked in asked_by(model, "matcher")]
    assert judged == [["G1", "G2"], ["G3"], ["G2"]] or judged == [["G3"], ["G1", "G2"], ["G2"]]


def test_a_batch_that_is_wholly_active_is_not_asked_again(runs):
    model = brain(judge={"G1": 9, "G2": 9}, call={"get_order": ORDER})
    runs.invoke(create_guided_agent(model, desk()), says("A-1 is late. Where is it?"))
    assert len(asked_by(model, "matcher")) == 2  # G1 and G2, and G3: none of them a second time


def test_without_a_call_there_is_no_second_look(runs):
    model = brain()
    state = runs.invoke(create_guided_agent(model, desk()), says("Hello"))
    assert kinds(state) == ["human", "ai"]
    assert len(asked_by(model, "matcher")) == 2  # one call for each batch
    assert asked_by(model, "tools") == []  # no active guideline grants one


def test_a_one_time_guideline_is_not_applied_twice_and_a_continuous_one_stays(runs):
    greeting = Guideline(None, "greet the customer", continuous=False)
    agent = desk(guidelines=[greeting, Guideline(None, "be polite", continuous=True)])
    seen = []

    def greet(asked):
        seen.append(asked.now.get("applied"))
        return DONE if asked.now.get("applied") else 9

    app = create_guided_agent(brain(judge={"G1": greet}), agent, checkpointer=MemorySaver())
    assert active(runs.invoke(app, says("Hi"), thread())) == ["G1", "G2"]
    state = runs.invoke(app, says("Are you there?"), thread())
    assert active(state) == ["G2"]
    assert seen == [None, [{"guideline": "G1", "reply": "M2"}]]
    applied = {record.guideline: record.times for record in state["applied_guidelines"]}
    assert applied == {"G1": 1, "G2": 2}


def test_several_calls_of_one_tool_run_each_in_its_own_task(runs):
    model = brain(judge={"G1": 9}, call={"get_order": [{"order_id": "A-1"}, {"order_id": "A-2"}]})
    app = create_guided_agent(model, desk())
    tasks = runs.stream(app, says("Where are A-1 and A-2?"), stream_mode="tasks")
    started = [task["input"] for task in tasks if task["name"] == "tools" and "input" in task]
    assert [[call["args"]["order_id"] for call in task] for task in started] == [["A-1"], ["A-2"]]


def test_the_same_call_twice_in_one_answer_is_made_once(runs):
    model = brain(judge={"G1": 9}, call={"get_order": [ORDER, ORDER]})
    state = runs.invoke(create_guided_agent(model, desk()), says("Where is A-1?"))
    assert kinds(state) == ["human", "ai", "tool", "ai"]
    assert len(state["messages"][1].tool_calls) == 1


def test_a_missing_argument_is_asked_for(runs):
    model = brain(judge={"G1": 9}, call={"get_order": {}}, reply="Which order do you mean?")
    state = runs.invoke(create_guided_agent(model, desk()), says("Where is my order?"))
    assert kinds(state) == ["human", "ai"]
    (insight,) = [insight for insight in state["tool_insights"] if insight.kind == "missing"]
    assert (insight.tool, insight.argument) == ("get_order", "order_id")
    (shown,) = asked_by(model, "message")[0].section("insights")
    assert shown["description"] == "The order's number, such as A-1."


def test_what_the_last_reply_asked_for_is_still_wanted_in_the_next_turn(runs):
    def order_given(asked):
        return {"order_id": "A-1"} if "A-1" in asked.tail else {}

    model = brain(judge={"G1": 9}, call={"get_order": order_given})
    app = create_guided_agent(model, desk(), checkpointer=MemorySaver())
    runs.invoke(app, says("Where is my order?"), thread())
    runs.invoke(app, says("A-1"), thread())
    unfinished = [
        asked.now.get("unfinished") for asked in asked_by(model, "matcher") if "G1" in asked.now["judge"]
    ]
    assert unfinished == [None, ["G1"]]


def test_a_failing_tool_does_not_end_the_turn(runs):
    def broken(order_id: str) -> str:
        """Look up an order.

        Args:
            order_id: The number.
        """
        raise ConnectionError("the warehouse does not answer")

    agent = desk(guidelines=[Guideline("the customer asks about an order", "look it up", tools=[broken])])
    model = brain(judge={"G1": 9}, call={"broken": ORDER}, reply="I cannot see it right now.")
    state = runs.invoke(create_guided_agent(model, agent), says("Where is A-1?"))
    result = state["messages"][2]
    assert (result.status, result.content) == ("error", "ConnectionError: the warehouse does not answer")
    assert state["messages"][-1].content == "I cannot see it right now."
    assert asked_by(model, "message")[0].lines[-1]["error"] is True


def test_an_async_only_tool_is_a_clear_error_in_a_sync_run_and_works_in_an_async_one(runs):
    async def look_up(order_id: str) -> str:
        """Look up an order.

        Args:
            order_id: The number.
        """
        return f"{order_id} is here"

    agent = desk(guidelines=[Guideline("the customer asks about an order", "look it up", tools=[look_up])])
    app = create_guided_agent(brain(judge={"G1": 9}, call={"look_up": ORDER}), agent)
    if runs.is_async:
        assert runs.invoke(app, says("Where is A-1?"))["messages"][2].content == "A-1 is here"
    else:
        with pytest.raises(ToolError, match=r"'look_up' is async only.*ainvoke"):
            runs.invoke(app, says("Where is A-1?"))


def test_an_agent_without_tools_matches_and_replies(runs):
    agent = Agent("Desk", "You are polite.", [Guideline("the customer greets", "greet back")])
    app = create_guided_agent(brain(judge={"G1": 9}, reply="Hello!"), agent)
    state = runs.invoke(app, says("Hi"))
    assert (active(state), state["messages"][-1].content) == (["G1"], "Hello!")


def test_an_agent_without_guidelines_can_still_use_the_tools_that_are_always_available(runs):
    agent = Agent("Desk", "You help with orders.", tools=[get_order])
    model = brain(call={"get_order": ORDER})
    state = runs.invoke(create_guided_agent(model, agent), says("Where is A-1?"))
    assert kinds(state) == ["human", "ai", "tool", "ai"]
    assert asked_by(model, "matcher") == []


def test_a_better_tool_runs_instead_of_the_one_that_was_proposed(runs):
    agent = desk(guidelines=[Guideline("always", "help", tools=[get_order]), *desk().guidelines[1:2]])
    calls = {
        "get_order": Call(ORDER, {"potentially_better_tool_name": "give_discount"}),
        "give_discount": ORDER,
    }
    state = runs.invoke(
        create_guided_agent(brain(judge={"G1": 9, "G2": 9}, call=calls), agent), says("A-1 is late")
    )
    assert [m.name for m in state["messages"] if m.type == "tool"] == ["give_discount"]
