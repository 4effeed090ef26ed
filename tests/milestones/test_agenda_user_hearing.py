"""What a user without a model hears in a message: what a question is about, who takes leave, who wants to help on."""

from __future__ import annotations

import pytest

from arq_graph.milestones.users.user import make_user
from tests.milestones.user_talk import CLINIC, SHOP, answer_to, spec, talk

HOURS = {"intents": ["When do you open?"]}


def test_a_question_is_about_what_was_said_just_before_it():
    assert "Expedited is fine with me." in answer_to("We have expedited shipping. Is that fine?", SHOP)
    apart = "We have expedited shipping. It is sunny here. Is that fine?"
    assert "Expedited is fine with me." not in answer_to(apart, SHOP)


@pytest.mark.parametrize("question", ["What is your order ID?", "Please tell me your order ID."])
def test_an_agent_that_takes_leave_and_asks_is_answered(question):
    turn = talk(make_user(spec(SHOP), seed=0), f"Our chat is closed now. {question}")[1]
    assert not turn.ends
    assert "ORD-1002" in turn.text


@pytest.mark.parametrize("question", ["Anything else?", "How can I help you?", "How can I help you further?"])
def test_an_agent_that_takes_leave_and_asks_for_nothing_in_particular_is_left(question):
    assert talk(make_user(spec(SHOP), seed=0), f"Goodbye! {question}")[1].ends


@pytest.mark.parametrize(
    "question", ["How can I help you further?", "Is there anything else?", "What else can I help you with?"]
)
def test_who_has_an_answer_and_is_asked_for_more_has_nothing_more(question):
    assert answer_to(f"We open at nine. {question}", HOURS) == "Thanks, goodbye!"


def test_a_guide_who_is_asked_for_more_is_done():
    assert answer_to("The doctor is here. Anything else?", CLINIC, role="guide") == "Thanks, goodbye!"
    assert answer_to("The doctor is here.", CLINIC, role="guide") != "Thanks, goodbye!"


def test_who_is_wished_a_nice_day_is_not_kept_waiting():
    assert answer_to("Hello, have a nice day!", HOURS) == "Thanks, goodbye!"
    assert answer_to("Hello, one moment!", HOURS) != "Thanks, goodbye!"


def test_a_statement_with_a_question_mark_is_answered_with_yes_and_one_with_which_is_not():
    assert answer_to("You would like to book an appointment?", CLINIC).startswith("Yes")
    assert "2030-05-06" in answer_to("You would like to come on which day?", CLINIC)
