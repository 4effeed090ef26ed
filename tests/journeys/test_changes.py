"""Journeys that don't go straight ahead: what is open again, what runs, and what is locked."""

import pytest

from arq_graph import Journey, JourneyStep
from tests.journeys.returns import Talk, exchange, get_order, make_shop, refund

WANTS_TO_RETURN = "the customer wants to return an item"
A301 = {"order_id": "A-301"}
ASKS = {"asks_for_something": True}


def make_talk(*steps: JourneyStep, **fields: object) -> Talk:
    return Talk(make_shop(journeys=[Journey("return", WANTS_TO_RETURN, steps)], **fields))


def test_a_choice_from_what_a_tool_found_is_judged_again_when_it_changes_and_so_is_what_follows():
    talk = make_talk(
        JourneyStep("item", "show the order's items", tools=[get_order], done_when="an item is chosen"),
        JourneyStep("reason", "ask what is wrong with the item", after="item"),
        JourneyStep("close", "ask for a rating", after="reason"),
    )
    talk.call["get_order"] = A301
    talk.steps["return-item"] = {"done_when_holds": True}
    talk.steps["return-reason"] = ASKS | {"answered_by": "M1"}
    talk.steps["return-close"] = ASKS
    talk.say("The lamp of order A-301 is broken.")
    assert talk.active == ["close"]
    talk.journeys = {"changed": [{"step": "return-item", "answered_by": "M3"}]}
    talk.steps["return-reason"] = ASKS
    talk.say("No, I mean the table.")
    assert talk.active == ["reason"]


@pytest.mark.parametrize("confirm", [{}, {"refund": "customer"}])
def test_a_call_that_did_a_step_stands_also_if_it_is_proposed_in_other_words(confirm):
    talk = make_talk(
        JourneyStep("refund", "refund it", tools=[refund]),
        JourneyStep("rating", "ask for a rating", after="refund"),
        confirm=confirm,
    )
    talk.call["refund"] = A301
    talk.steps["return-rating"] = ASKS
    talk.say("Refund order A-301.")
    if confirm:
        talk.say("Yes")
    assert talk.results == ["refunded A-301"]
    talk.journeys = {"changed": [{"step": "return-refund", "answered_by": "M3"}]}
    talk.call["refund"] = A301 if confirm else A301 | {"reason": ""}  # the default
    talk.say("It is A-301, isn't it?")
    talk.journeys = {}
    talk.call.clear()
    talk.say("Well?")
    assert talk.results == ["refunded A-301"]
    assert talk.active == ["rating"]


@pytest.mark.parametrize("condition", [None, "the item is faulty"])
def test_a_yes_counts_for_nothing_when_its_step_has_closed_because_an_earlier_one_changed(condition):
    talk = make_talk(
        JourneyStep("order", "look the order up", tools=[get_order]),
        JourneyStep("refund", "refund it", condition=condition, after="order", tools=[refund]),
        JourneyStep("close", "say goodbye", after="refund"),
        confirm={"refund": "customer"},
    )
    talk.call["get_order"] = talk.call["refund"] = A301
    talk.say("Refund order A-301.")
    talk.call["get_order"] = {"order_id": "A-302"}
    talk.journeys = {"changed": [{"step": "return-order", "answered_by": "M1"}]}
    talk.say("Yes")
    assert talk.results == ["A-301 has a lamp", "A-302 has a lamp"]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_journey_that_is_a_step_is_left_and_returned_to_with_the_one_around_it(is_first):
    identify = Journey("identify", None, [JourneyStep("name", "ask for the name")])
    steps = [JourneyStep("who", journey="identify"), JourneyStep("order", "ask for it", after="who")]
    journeys = [Journey("return", WANTS_TO_RETURN, steps)]
    journeys.insert(0 if is_first else 1, identify)
    talk = Talk(make_shop(journeys=journeys))
    talk.steps["identify-name"] = ASKS
    active: list[list[str]] = []
    for score in (9, 2, 9):
        talk.judge["return"] = score
        talk.say("Hello!")
        active.append(talk.active)
    assert active == [["name"], [], ["name"]]


def test_the_tools_of_a_journey_are_locked_again_once_it_is_done_in_the_same_turn():
    talk = make_talk(
        JourneyStep("refund", "refund it", condition="the item is faulty", tools=[refund]),
        JourneyStep("exchange", "exchange it", condition="it does not fit", tools=[exchange]),
    )
    asked: list[int] = []

    def propose(_: object) -> dict[str, str]:
        asked.append(1)
        return {"order_id": f"A-30{len(asked)}"}

    talk.call["refund"] = propose
    talk.say("Refund order A-301.")
    assert [text for text in talk.results if "refunded" in text] == ["refunded A-301"]
    assert talk.active == []


def test_a_way_that_was_not_needed_is_left_from_its_beginning():
    talk = make_talk(
        JourneyStep("phone", "ask for the phone number"),
        JourneyStep("mail", "ask for the mail address"),
        JourneyStep("call", "look the number up", after="phone", tools=[get_order]),
        JourneyStep("write", "look the address up", after="mail", tools=[exchange]),
        JourneyStep("reason", "ask what is wrong", after=["call", "write"]),
        JourneyStep("close", "ask for a rating", after="reason"),
    )
    talk.call["get_order"] = A301
    talk.steps["return-phone"] = talk.steps["return-reason"] = ASKS | {"answered_by": "M1"}
    talk.steps["return-mail"] = talk.steps["return-close"] = ASKS
    talk.say("My number is 0301, and the lamp is broken.")
    assert talk.active == ["close"]
    talk.say("Hm.")
    assert talk.active == ["close"]
