"""The user that needs no model says more where it is asked to, and knows when it is asked for more."""

from __future__ import annotations

import pytest

from tests.milestones.user_talk import answer_to

LATE = {
    "intents": [
        {"request": "My parcel is late.", "slots": {"number": "P-7"}, "fallback": "Then a refund, please."}
    ]
}


@pytest.mark.parametrize(
    "question", ["Could you clarify?", "Sorry, could you rephrase that?", "Could you describe the problem?"]
)
def test_who_is_asked_to_say_it_again_does(question):
    assert "parcel is late" in answer_to(question, LATE)


@pytest.mark.parametrize("question", ["Would you like more details?", "Do you need more information?"])
def test_an_offer_to_tell_more_is_no_question_for_more(question):
    assert "No" in answer_to(question, LATE)


def test_who_is_asked_how_else_one_can_help_falls_back():
    late = {"intents": [{"request": "My parcel is late.", "fallback": "Then a refund, please."}]}
    assert "refund" in answer_to("Unfortunately I cannot find it. How else can I help you?", late)


def test_who_is_out_for_one_of_two_takes_that_one():
    tour = {"intents": [{"request": "I want to book a tour.", "accepts": ["the lake"]}]}
    assert "the lake" in answer_to("Would you prefer the mill or the lake?", tour)
