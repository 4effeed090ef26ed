"""What the offline model says was done: no more than the result says, and no less than was asked for."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline
from arq_graph.apps.guided import create_guided_agent
from tests.models.desks import ask


def booking(result: Any) -> Any:
    def reserve_court(court: str, day: str, start: str) -> Any:
        """Reserve a court.

        Args:
            court: The court, like COURT-1.
            day: The day, like 2026-12-01.
            start: When it begins, e.g. 22:00.
        """
        return result

    return reserve_court


def extending(result: Any) -> Any:
    def extend_permit(permit_id: str) -> Any:
        """Extend a permit.

        Args:
            permit_id: The permit, like PR-12.
        """
        return result

    return extend_permit


RESERVE = "Reserve COURT-3 on 2027-05-03 at 18:00"


@pytest.mark.parametrize(
    "result",
    [
        {"status": "sold out"},
        {"status": "rejected"},
        {"status": "declined"},
        {"state": "not available"},
        {"status": "failed"},
        {"outcome": "waiting_list", "position": 3},
        {"reserved": False},
        "The court is fully booked.",
        "COURT-3 cannot be reserved on a Monday.",
    ],
)
def test_a_result_that_says_no_is_not_told_as_done(result):
    calls, reply = ask([booking(result)], RESERVE)
    assert len(calls) == 1
    assert "did not work" in reply
    assert "I have reserved" not in reply


@pytest.mark.parametrize(
    ("result", "state"),
    [
        ({"status": "full"}, "full"),
        ({"status": "closed until May"}, "closed until May"),
        ({"status": "cancelled"}, "cancelled"),
        ({"status": "booked out"}, "booked out"),
        ({"status": "no places left"}, "no places left"),
        ({"status": "sold_out"}, "sold out"),
        ({"status": "impossible"}, "impossible"),
        ({"court_state": "taken"}, "taken"),
        ({"court": {"status": "closed"}}, "closed"),
    ],
)
def test_a_state_that_says_no_is_told_and_not_the_deed(result, state):
    reply = ask([booking(result)], RESERVE)[1]
    assert ("I have reserved" in reply, reply.count(state)) == (False, 1), reply


def close_case(case_id: str) -> dict[str, str]:
    """Close a case.

    Args:
        case_id: The case, like CS-12.
    """
    return {"status": "closed"}


def refill_tank(tank_id: str) -> dict[str, str]:
    """Refill a tank.

    Args:
        tank_id: The tank, like TK-12.
    """
    return {"status": "full"}


@pytest.mark.parametrize(
    ("called", "said", "done"),
    [
        (close_case, "Close the case CS-7", "I have closed the case CS-7"),
        (refill_tank, "Refill the tank TK-7", "I have refilled the tank TK-7"),
        (booking({"status": "pending"}), RESERVE, "I have reserved"),
        (booking({"state": "open"}), RESERVE, "I have reserved"),
    ],
)
def test_a_state_that_was_to_come_about_is_no_refusal(called, said, done):
    assert done in ask([called], said)[1]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"message": "PR-7 cannot be extended before May."}, "cannot be extended before May"),
        ({"extended": False, "reason": "a fee is open"}, "a fee is open"),
        ({"result": "rejected", "next_try": "in June"}, "next try is in June"),
    ],
)
def test_the_reason_is_told_instead(result, reason):
    reply = ask([extending(result)], "Extend my permit PR-7")[1]
    assert ("I have extended" in reply, reason in reply) == (False, True), reply


@pytest.mark.parametrize(
    "result",
    [
        {"status": "extended"},
        {"extended": True, "terms": "it cannot be extended twice"},
        "PR-7 is extended and cannot be extended again.",
        {"status": "ok", "note": "Refunds are not possible."},
    ],
)
def test_a_no_to_something_else_takes_nothing_back(result):
    assert "did not work" not in ask([extending(result)], "Extend my permit PR-7")[1]


def permit_status(permit_id: str) -> dict[str, str]:
    """Look up the status of a permit.

    Args:
        permit_id: The permit, like PR-12.
    """
    return {"status": "rejected"}


def test_a_look_up_that_finds_a_no_has_worked():
    reply = ask([permit_status], "What is the status of my permit PR-7?")[1]
    assert ("did not work" in reply, "rejected" in reply) == (False, True), reply


def decline_invitation(invitation_id: str) -> dict[str, str]:
    """Decline an invitation.

    Args:
        invitation_id: The invitation, like IN-12.
    """
    return {"status": "declined"}


def test_a_no_that_was_asked_for_is_done():
    reply = ask([decline_invitation], "Decline the invitation IN-7")[1]
    assert "I have declined the invitation IN-7" in reply


@pytest.mark.parametrize("result", ["ok", "The court is reserved.", {"status": "reserved"}, {}])
def test_a_booking_tells_the_day_and_the_hour_it_is_for(result):
    reply = ask([booking(result)], RESERVE)[1]
    assert ("2027-05-03" in reply, "18:00" in reply) == (True, True), reply


def test_what_the_result_tells_is_not_told_twice():
    reply = ask([booking("Reserved for 2027-05-03, 18:00.")], RESERVE)[1]
    assert reply.count("2027-05-03") == 1


def speed_up_repair(bike_id: str) -> dict[str, str]:
    """Speed up the repair of a bike.

    Args:
        bike_id: The bike, like B-7.
    """
    return {"queue": "first in line"}


def waive_charge(bike_id: str) -> str:
    """Waive the storage charge for a bike.

    Args:
        bike_id: The bike, like B-7.
    """
    return "It is off your bill."


@pytest.mark.parametrize(
    ("granted", "action", "yes"),
    [
        (
            speed_up_repair,
            "apologise and offer a speedy repair at no extra cost to them",
            "speed up the repair",
        ),
        (waive_charge, "apologise and offer to waive the charge out of courtesy to them", "waive the charge"),
    ],
)
def test_what_was_accepted_and_done_is_not_offered_again(granted, action, yes):
    guideline = Guideline("the customer complains that the repair is late", action, tools=[granted])
    desk = Agent("Bike shop", "You are the desk of a bike shop.", guidelines=[guideline])
    app = create_guided_agent("offline", desk, checkpointer=MemorySaver())
    thread: Any = {"configurable": {"thread_id": "t"}}
    app.invoke({"messages": [("user", "The repair of my bike B-7 is late!")]}, thread)
    said = f"Yes please, {yes}, the repair is late"
    reply = app.invoke({"messages": [("user", said)]}, thread)["messages"][-1].text
    assert ("I can offer" in reply, "Would you like" in reply) == (False, False), reply
