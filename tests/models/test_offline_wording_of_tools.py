"""How the offline model names a deed whose tool's name holds no verb, and what it takes for no deed at all."""

from __future__ import annotations

import pytest

from arq_graph.models.offline.toolnames import ToolName
from tests.models.desks import ask
from tests.models.prompts import JUDGEMENT, closed, judge, prompt, reply
from tests.models.prompts import ask as answer_of


@pytest.mark.parametrize(
    ("name", "description", "order", "put", "done"),
    [
        (
            "weather", "The weather forecast for a night.",
            "look up the weather", "go ahead with this: weather", "looked up the weather",
        ),
        (
            "price_of", "What cleaning a garment costs.",
            "look up the price", "go ahead with this: price", "looked up the price",
        ),
        (
            "pickup", "Have clothes picked up.",
            "have clothes picked up", "have clothes picked up", "taken care of this: pickup",
        ),
        (
            "vet_visit", "The visit of a vet is arranged.",
            "go ahead with this: vet visit", "go ahead with this: vet visit", "taken care of this: vet visit",
        ),
        ("dome_status", "Status of the dome.", "look up the dome status", "go ahead with this: dome status", None),
        ("tune", "Tune an instrument.", "tune", "tune", "tuned it"),
        ("cancel", "An order is cancelled.", "cancel", "cancel", "cancelled it"),
        ("order_cancel", "Cancel an order.", "cancel the order", "cancel the order", "cancelled the order"),
        ("stamp_letter", "", "stamp the letter", "stamp the letter", "stamped the letter"),
    ],
)  # fmt: skip
def test_a_thing_is_not_said_as_a_deed(name, description, order, put, done):
    named = ToolName(name, description)
    assert (named.as_order, named.as_put) == (order, put)
    assert done is None or named.as_done == done


def test_a_result_of_what_has_no_verb_is_told_in_whole_words():
    assert "priced" not in reply("What does it cost?", ("price_of", {"garment": "suit"}, {"euros": 18}))


def cancel_night(booking: str) -> dict[str, str]:
    """Cancel a reservation of a telescope.

    Args:
        booking: The number of the reservation, like OB77.
    """
    return {"cancelled": booking}


def book_night(telescope: str, night: str) -> dict[str, str]:
    """Reserve a telescope for one night.

    Args:
        telescope: The name of the telescope, like Big Eye.
        night: The date, like 2031-03-04.
    """
    return {"booking": "OB78"}


@pytest.mark.parametrize("said", ["Please cancel my reservation.", "Please cancel my booking."])
def test_what_another_tool_is_done_to_asks_for_no_tool(said):
    calls, answer = ask([book_night, cancel_night], said, "OB77")
    assert calls == [{"booking": "OB77"}]
    assert "telescope" not in answer, answer


def test_who_wants_both_is_asked_for_both():
    calls, answer = ask(
        [book_night, cancel_night], "Please cancel my reservation OB77 and reserve a telescope."
    )
    assert "telescope" in answer, (calls, answer)


def test_a_condition_is_not_met_by_what_another_deed_is_done_to():
    guidelines = [
        {"id": "G1", "condition": "the customer wants to reserve", "action": "reserve it"},
        {"id": "G2", "condition": "the customer wants to cancel a reservation", "action": "cancel it"},
    ]
    for said, applies in (("Please cancel my reservation.", False), ("I want to reserve.", True)):
        asked = prompt(said, head={"guidelines": guidelines}, now={"judge": ["G1", "G2"]})
        verdicts = answer_of(asked, closed(G1=JUDGEMENT, G2=JUDGEMENT))
        assert verdicts["G1"]["condition_applies"] is applies


@pytest.mark.parametrize(
    ("condition", "result", "applies"),
    [
        ("the garment is damaged", {"garment": "coat", "state": "damaged"}, True),
        ("the garment is broken", {"garment": "coat", "state": "broken"}, True),
        ("the garment is faulty", {"garment": "coat", "state": "faulty"}, True),
        ("the garment is damaged", {"garment": "coat", "state": "ready"}, False),
        ("the garment is not damaged", {"garment": "coat", "state": "damaged"}, False),
        ("the payment failed", {"payment": "failed"}, True),
        ("the payment was declined", {"payment": "ok", "status": "done"}, False),
        ("the ticket was rejected", {"ticket": "T-1", "error": "too old"}, True),
    ],
)
def test_a_damaged_thing_is_no_failed_call(condition, result, applies):
    held = ("find_ticket", {"ticket": "T-1"}, result)
    assert judge(condition, "Where is my coat? The ticket is T-1.", held)["condition_applies"] is applies


def test_an_amount_in_its_unit_is_said_as_such():
    assert "18 euros" in reply("What does it cost?", ("price_of", {"garment": "suit"}, {"euros": 18}))
    told = reply("How long is it?", ("get_route", {"to": "Oslo"}, {"length_miles": 7, "stops": 2}))
    assert "the length is 7 miles" in told.lower() and "the stops are 2" in told.lower(), told


def test_who_asks_when_something_leaves_does_not_take_leave():
    condition = "the customer asks when a ferry leaves"
    assert judge(condition, "When does the ferry leave?")["condition_applies"]
    assert not judge(condition, "Thanks, bye")["condition_applies"]
    assert judge("the customer leaves", "Thanks, bye")["condition_applies"]


def test_a_yes_to_a_second_deed_of_the_same_kind_is_one():
    said = (
        "I want to reserve a telescope.",
        "agent: I have booked the night.",
        "Once more: I want to reserve a telescope.",
        "agent: Shall I book the night (telescope: Big Eye)? Please confirm.",
    )
    wish, deed = "the customer wants to reserve a telescope", "reserve the telescope"
    assert judge(wish, *said, "Yes, please.", action=deed, applied="M2")["should_apply"]
    assert not judge(wish, *said[:2], "Yes, that is right.", action=deed, applied="M2")["should_apply"]


def test_a_yes_please_wishes_for_nothing_of_its_own():
    profile = "You are the desk of an observatory where amateurs reserve telescopes."
    said = (
        "agent: What can I do for you?",
        "Yes, please.",
        "agent: All right.",
        "And what will the weather be?",
    )
    wish = "the customer wants to reserve a telescope"
    assert not judge(wish, *said, profile=profile)["condition_applies"]
