"""Planning with the offline model: it plans from the words of the tools, and takes another way after a failure."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, create_guided_agent, create_planning_agent
from arq_graph.nodes import PlanMade
from tests.apps.desk import says, thread
from tests.apps.offline_tools import cancel_order, search_books

BOTH = pytest.mark.parametrize("planning", ["pre-act", "react"])


def find_order(order_id: str) -> str:
    """Look up an order.

    Args:
        order_id: The order's number, such as A-1.
    """
    raise ConnectionError("the warehouse does not answer")


def track_parcel(order_id: str) -> str:
    """Track where the parcel of an order is.

    Args:
        order_id: The order's number, such as A-1.
    """
    return f"The parcel of {order_id} is in Bremen"


def turn(app, text):
    """One turn: the plans that were made, the calls that ran, the reply."""
    events = list(app.stream(says(text), thread(), stream_mode="custom"))
    plans = [event.plan for event in events if isinstance(event, PlanMade)]
    ran = [(event.tool, event.status) for event in events if event.type == "tool_called"]
    return plans, ran, app.get_state(thread()).values["messages"][-1].content


def app_of(*tools, **options):
    agent = Agent("Desk", "You help with orders.", tools=list(tools), **options)
    return create_planning_agent("offline", agent, checkpointer=MemorySaver())


def test_it_plans_what_to_call_and_answers():
    plans, ran, reply = turn(app_of(track_parcel), "Where is the parcel of my order A-17?")
    assert [[step.tool for step in plan.steps] for plan in plans] == [["track_parcel", None], [None]]
    assert ran == [("track_parcel", "success")]
    assert "Bremen" in reply
    assert all(step.reason for plan in plans for step in plan.steps)
    assert [plan.faults for plan in plans] == [(), ()]


def test_a_plan_that_meets_a_failing_tool_changes():
    plans, ran, reply = turn(app_of(find_order, cancel_order), "Please find and cancel my order A-17")
    assert [[step.tool for step in plan.steps] for plan in plans] == [
        ["find_order", "cancel_order", None],
        [None],
    ]
    assert ran == [("find_order", "error")]
    assert "did not work" in reply
    (change,) = plans[-1].changes
    assert "T1 failed" in change.why
    assert plans[-1].observation == "failed"


def test_after_a_failure_another_look_up_takes_its_place():
    plans, ran, reply = turn(app_of(find_order, track_parcel), "Find order A-17 and track its parcel")
    assert ran == [("find_order", "error"), ("track_parcel", "success")]
    assert "Bremen" in reply
    assert plans[1].changes[0].version == 2
    assert [plan.version for plan in plans] == [1, 2, 3]


def test_an_empty_result_is_told():
    plans, _, reply = turn(app_of(search_books), "Do you have books with Dune in the title?")
    assert plans[-1].observation == "empty"
    assert "nothing" in plans[-1].steps[-1].description
    assert "no matching" in reply


def test_what_is_missing_is_asked_for_and_used_in_the_next_turn():
    app = app_of(track_parcel)
    plans, ran, reply = turn(app, "Where is my parcel?")
    assert (ran, plans[-1].call) == ([], None)
    assert reply.endswith("?")
    _, ran, reply = turn(app, "A-17")
    assert ran == [("track_parcel", "success")]


def test_a_value_of_an_earlier_request_is_confirmed_before_it_is_used():
    app = app_of(track_parcel, cancel_order)
    turn(app, "Where is the parcel of A-17?")
    _, ran, reply = turn(app, "Now please cancel my order")
    assert ran == []
    assert "A-17" in reply and reply.rstrip(".").endswith("confirm")
    _, ran, _ = turn(app, "yes")
    assert ran == [("cancel_order", "success")]


def test_the_customer_agrees_before_a_call_that_needs_it():
    app = app_of(cancel_order, confirm={"cancel_order": "customer"})
    _, ran, reply = turn(app, "Cancel order A-17")
    assert (ran, "Shall I" in reply) == ([], True)
    assert turn(app, "No, wait")[1] == []
    turn(app, "Cancel order A-17")
    assert turn(app, "Yes, do it")[1] == [("cancel_order", "success")]


@BOTH
@pytest.mark.parametrize("mode", ["cot", "direct"])
def test_it_plans_in_every_mode(planning, mode):
    app = create_planning_agent(
        "offline", [find_order, track_parcel], planning=planning, mode=mode, checkpointer=MemorySaver()
    )
    _, ran, reply = turn(app, "Find order A-17 and track its parcel")
    assert ran == [("find_order", "error"), ("track_parcel", "success")]
    assert "Bremen" in reply


@BOTH
def test_the_guided_agent_plans_too(planning):
    agent = Agent(
        "Desk",
        "You help with orders.",
        [
            Guideline("the customer asks about an order", "look the order up", tools=[track_parcel]),
            Guideline("the customer greets you", "greet them back"),
        ],
    )
    app = create_guided_agent("offline", agent, planning=planning, checkpointer=MemorySaver())
    plans, ran, reply = turn(app, "Hello! Where is my order A-17?")
    assert ran == [("track_parcel", "success")]
    assert "Bremen" in reply
    assert plans[-1].final_answer
    plans, ran, _ = turn(app, "Thank you, bye")
    assert (ran, [plan.version for plan in plans]) == ([], [1])
