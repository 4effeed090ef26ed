"""The user that needs no model chooses among what it is offered, and never the question itself."""

from __future__ import annotations

import pytest

from tests.milestones.user_talk import answer_to

TOUR = {"intents": [{"request": "I want to book a tour.", "accepts": ["a tour"], "fallback": "Any will do."}]}


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("Which one do you prefer, 1 or 4?", {"1", "4"}),
        ("Which day suits you, Monday or Friday?", {"Monday", "Friday"}),
        (
            "We have two left. What would you like, the gorge, the lake or the mill?",
            {"the gorge", "the lake", "the mill"},
        ),
        ("Which start do you prefer – 10:00 or 14:30?", {"10:00", "14:30"}),
        ("Do you prefer 10:00 or 14:30?", {"10:00", "14:30"}),
        ("Would you like the gorge or the lake?", {"the gorge", "the lake"}),
        ("Should it be a small group or a large one?", {"a small group", "a large one"}),
    ],
)
def test_what_is_taken_is_one_of_the_things_that_are_named(question, options):
    answer = answer_to(question, TOUR)
    assert answer.removeprefix("I take ").removesuffix(", please.").rstrip(".") in options


@pytest.mark.parametrize(
    "question",
    [
        "Would you like the long and steep one?",
        "Would you like a map or not?",
        "Do you want a seat or anything else?",
    ],
)
def test_what_can_only_be_taken_or_left_is_not_chosen_among(question):
    assert "I take" not in answer_to(question, TOUR)


def test_of_what_stands_behind_the_question_that_is_taken_which_it_is_out_for():
    tour = {
        "intents": [{"request": "I want to book a tour.", "accepts": ["the lake"], "refuses": ["the gorge"]}]
    }
    assert "the lake" in answer_to("Which one do you prefer, the gorge or the lake?", tour)
