"""Greetings are no answers, each part of a question is answered, and what was told is not told again."""

from __future__ import annotations

from typing import Any

import pytest

from arq_graph.milestones.users.hearing import heard
from arq_graph.milestones.users.user import make_user
from tests.milestones.user_talk import spec, talk

SUIT = {"intents": [{"request": "Is my suit ready?"}]}


@pytest.mark.parametrize(
    "greeting",
    [
        "Welcome to Spotless.",
        "Welcome!",
        "Welcome back, Ann!",
        "Hello and a warm welcome to Spotless.",
        "Thank you for calling.",
        "Thanks for contacting Spotless Dry Cleaning.",
        "Thank you very much for reaching out to us. Welcome!",
    ],
)
@pytest.mark.parametrize("kind", ["helpful", "unhelpful"])
def test_who_was_only_greeted_stays(greeting, kind):
    user = make_user(spec(SUIT, kind=kind), seed=0)
    turns = talk(user, greeting, "It is ready on Monday.")
    assert turns[1].text in ("Okay.", "All right.")
    assert turns[2].intent is None


@pytest.mark.parametrize(
    "message",
    [
        "You are welcome.",
        "Welcome to Spotless, your suit is ready.",
        "Welcome to Spotless. Your suit is ready.",
        "Thank you for calling about your suit, it is ready.",
        "Thank you for your order.",
        "Children are welcome at Spotless.",
    ],
)
def test_more_than_a_greeting_is_an_answer(message):
    assert not heard(message).only_waits


PICK_UP: dict[str, Any] = {
    "intents": [
        {
            "request": "Please have my clothes picked up at home.",
            "slots": {"street": "Elm 12", "express": True},
            "answers": {"which floor": "The third floor."},
        }
    ]
}


@pytest.mark.parametrize(
    "question",
    [
        "What street, and on which floor?",
        "On which floor and in what street?",
        "Which floor? And what street?",
    ],
)
def test_each_part_of_a_question_is_answered(question):
    answer = talk(make_user(spec(PICK_UP), seed=0), question)[1].text
    assert "third floor" in answer
    assert "Elm 12" in answer


def test_what_the_answer_was_written_for_is_answered_by_it_alone():
    taste = {
        "intents": [
            {
                "request": "A table.",
                "slots": {"wine": "Merlot", "day": "monday"},
                "answers": {"which wine": "Whatever is open."},
            }
        ]
    }
    answer = talk(make_user(spec(taste), seed=0), "Which wine, please?")[1].text
    assert "open" in answer
    assert "Merlot" not in answer


def night(request: str, **slots: Any) -> dict[str, Any]:
    return {"intents": [{"request": request, "slots": slots}]}


def test_a_value_that_was_confirmed_is_not_told_again():
    weather = night("What will the weather be?", night="2031-03-04")
    for asked in ("Do you mean the night of 2031-03-04?", "The night is 4 March 2031. Is that correct?"):
        turns = talk(make_user(spec(weather), seed=0), asked, "The sky is clear.")
        assert turns[1].text.startswith("Yes")
        assert turns[2].intent is None
    turns = talk(make_user(spec(weather), seed=0), "Shall I look it up?", "The sky is clear.")
    assert "2031-03-04" in turns[2].text, "nobody has spoken of the night"


def test_a_value_in_the_request_is_not_told_again():
    turns = talk(make_user(spec(night("When can I observe Mars?", target="Mars")), seed=0), "At nine.")
    assert turns[1].intent is None
    turns = talk(make_user(spec(night("Where is ORD-7 now?", order="ORD-7")), seed=0), "ORD-8 is here.")
    assert "ORD-7" in turns[1].text, "and what it says there is corrected"


def test_a_number_in_the_request_may_be_that_of_something_else():
    hotel = night("A room for 2 guests.", guests=2, nights=2)
    answer = talk(make_user(spec(hotel), seed=0), "We have rooms.")[1].text
    assert "nights is 2" in answer
    assert "guests" not in answer


def test_who_does_not_say_the_value_of_the_request_has_not_told_it():
    order = night("Where is ORD-1007 now?", order="ORD-1007")
    user = make_user(spec(order, kind="perturbed"), seed=0)
    assert "not" in talk(user, "We have parcels.")[1].text
