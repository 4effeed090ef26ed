"""What an agent has plainly wrong is corrected before the user is content, once; what may be right is left alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.milestones.users.user import make_user
from tests.milestones.user_talk import CLINIC, SHOP, spec, talk

SKY: dict[str, Any] = {
    "intents": [
        {
            "request": "I want to reserve a telescope.",
            "slots": {
                "telescope": "Big Eye",
                "night": "2031-03-04",
                "time": "22:30",
                "guests": 4,
                "size": "large",
                "email": "ann@example.org",
            },
        },
        {"request": "And another one for my brother.", "slots": {"telescope": "Small Eye"}},
    ]
}
ASKED = "Which telescope, which night, what time, how many guests, what size and which email?"


def with_done(domain: dict[str, Any], pattern: str) -> dict[str, Any]:
    first, *rest = domain["intents"]
    return {**domain, "intents": [{**first, "done_when": pattern}, *rest]}


def corrected(message: str, domain: dict[str, Any] = SKY, asked: str = ASKED) -> str:
    """What the user corrects, once it has told what was asked for; nothing where it corrects nothing."""
    turns = talk(make_user(spec(domain), seed=0), asked, message)
    said = turns[2].text
    return said if said.startswith(("No, ", "Sorry, that is not right")) else ""


def test_everything_that_is_corrected_here_was_told():
    told = talk(make_user(spec(SKY), seed=0), ASKED)[1].text
    assert all(each in told for each in ("Big Eye", "2031-03-04", "22:30", "4", "large", "ann@example.org"))


@pytest.mark.parametrize(
    ("message", "right"),
    [
        ("Booked Small Eye for 2031-04-03.", "2031-03-04"),
        ("I have booked a telescope for the night of 3 April 2031.", "2031-03-04"),
        ("Your telescope is now reserved for 2031-04-03. Anything else?", "2031-03-04"),
        ("I have moved it to 2031-04-03.", "2031-03-04"),
        ("Your reservation is scheduled for the group on 2031-04-03.", "2031-03-04"),
        ("The night is 2031-03-18.", "2031-03-04"),
        ("Done:\n- Telescope: Big Eye\n- Night: 2031-03-18", "2031-03-04"),
        ("It is booked for 21:00.", "22:30"),
        ("I booked it for 2031-03-04 at 9 pm.", "22:30"),
        ("The time is set to 21:00.", "22:30"),
        ("I reserved it for 5 guests.", "4"),
        ("Your guests are 5.", "4"),
        ("The telescope is Little Star.", "Big Eye"),
        ("I have booked Small Eye.", "Big Eye"),
        ("Telescope: small eye", "Big Eye"),
        ("The size is medium.", "large"),
        ("Your email is bob@example.org.", "ann@example.org"),
    ],
)
def test_what_is_plainly_wrong_is_corrected(message, right):
    assert right in corrected(message)


@pytest.mark.parametrize(
    "message",
    [
        "Booked Big Eye for 2031-03-04.",
        "Booked it for 4 March 2031; on 2031-04-03 it is being repaired.",
        "Booked for March 4.",
        "Booked for tomorrow night.",
        "Big Eye is free on 2031-04-03 and on 2031-04-05.",
        "The next free night is 2031-04-03.",
        "Big Eye was booked for 2031-04-03.",
        "Big Eye is already booked for 2031-04-03.",
        "I could not book it for 2031-04-03.",
        "I have not booked it for 2031-04-03.",
        "I can book it for 2031-04-03 instead.",
        "If it is booked for 2031-04-03, it is cheaper.",
        "A reminder is scheduled for 2031-03-03.",
        "The observatory opens at 20:00.",
        "I have booked it and the doors close at 21:00.",
        "It is booked, and we meet at 21:00.",
        "The time is 21:00, 22:00 or 23:00.",
        "Nights:\n- Night: 2031-04-01\n- Night: 2031-04-02",
        "Your order of 2031-01-02 is registered.",
        "I have placed it on 2031-01-02.",
        "Today's date is 2031-01-02.",
        "I have booked it by 21:00.",
        "It is reserved for you at counter 5.",
        "You get 5 stars.",
        "I reserved it for 4 guests and 5 chairs.",
        "The telescope is ready.",
        "The telescope is Available.",
        "The telescope is the Big Eye.",
        "The telescope is BIG EYE.",
        "The telescope is booked and Small Eye is free.",
        "Small Eye is in the other dome.",
        "We also have Small Eye.",
        "The size is fine.",
        "I sent it to bob@example.org.",
        "The delivery time is 21:00.",
    ],
)
def test_what_may_be_right_or_speaks_of_something_else_is_not(message):
    assert corrected(message) == ""


@pytest.mark.parametrize(
    ("message", "is_wrong"),
    [
        ("The doctor is Dr. Braun.", True),
        ("Your doctor: Dr. Novak", True),
        ("The patient name is Bob Lee.", True),
        ("The doctor is Weber.", False),
        ("The doctor is Doctor Weber.", False),
        ("The doctor is Prof. Weber.", False),
        ("The patient name is A. Lee.", False),
        ("The patient name is Ann.", False),
        ("The doctor is Ann Lee.", False),
        ("The doctor is Swiss", True),
        ("The doctor is in.", False),
        ("The doctor is Unavailable.", False),
    ],
)
def test_a_name_is_wrong_where_it_is_said_to_be_another_and_not_where_it_is_shortened(message, is_wrong):
    assert bool(corrected(message, CLINIC, "Which doctor, and the patient name?")) is is_wrong


def test_of_two_days_none_is_taken_for_the_other():
    stay = {
        "intents": [{"request": "A room.", "slots": {"arrival": "2031-03-04", "departure": "2031-03-07"}}]
    }
    asked = "When is your arrival and when is your departure?"
    assert corrected("I have booked it for 2031-03-06.", stay, asked) == ""
    assert "2031-03-04" in corrected("Booked. The arrival is 2031-03-05.", stay, asked)


def test_what_the_user_itself_told_wrongly_is_corrected_when_it_is_done():
    size = {"intents": [{"request": "A coat.", "slots": {"fit": "wide"}}], "knowledge": {"person": "Ann"}}
    lied = spec(
        {"intents": [{"request": "A table.", "slots": {"town": "Oslo"}}]}, deviations={"incorrect": 1.0}
    )
    turns = talk(make_user(lied, seed=1), "Which town?")
    town = turns[1].text.removesuffix(".").rsplit(" ", 1)[-1]
    assert town != "Oslo"
    assert "Oslo" in talk(make_user(lied, seed=1), "Which town?", f"I have booked {town}.")[2].text
    assert corrected("I have ordered Berlin.", size, "Which fit?") == ""


DELAYED = with_done(SHOP, "delayed")


def test_a_wrong_value_in_the_very_message_that_serves_is_corrected_first():
    turns = talk(
        make_user(spec(DELAYED), seed=0), "Your order ID?", "Order ORD-1007 is delayed.", "ORD-1002 is late."
    )
    assert "ORD-1002" in turns[2].text
    assert turns[2].text.startswith(("No", "Sorry"))
    assert "jacket" in turns[3].text, "and then it goes on"


def test_it_is_corrected_once_and_then_the_user_is_content():
    wrong = "Booked OB78 for 2031-04-03."
    turns = talk(make_user(spec(with_done(SKY, r"OB\d+")), seed=0), "Which night?", wrong, wrong)
    assert "2031-03-04" in turns[2].text
    assert "brother" in turns[3].text
    other = "Booked OB79 for 2031-04-04."
    turns = talk(make_user(spec(with_done(SKY, r"OB\d+")), seed=0), "Which night?", wrong, other, other)
    assert "2031-03-04" in turns[3].text, "another value is another mistake"
    assert "brother" in turns[4].text


@pytest.mark.parametrize(
    ("message", "goes_on"),
    [
        ("I have changed it.", True),
        ("It is the night of 2031-03-04 then.", True),
        ("I could not change it.", False),
        ("For 2031-03-04, at what time?", False),
    ],
)
def test_once_it_is_mended_the_user_does_not_wait_for_the_same_words_again(message, goes_on):
    user = make_user(spec(with_done(SKY, r"OB\d+")), seed=0)
    turns = talk(user, "Which night?", "Booked OB78 for 2031-04-03.", message)
    assert ("brother" in turns[3].text) is goes_on


def test_a_new_number_that_the_user_waits_for_is_no_mistake():
    again = {
        "intents": [
            {"request": "Order it again.", "slots": {"order_id": "ORD-1002"}, "done_when": r"ORD-\d+"}
        ]
    }
    turns = talk(make_user(spec(again), seed=0), "Which order number?", "Your new order is ORD-2000.")
    assert turns[2].intent is None
    assert "ORD-1002" not in turns[2].text


def test_what_served_and_names_several_is_not_corrected():
    turns = talk(make_user(spec(DELAYED), seed=0), "Your order ID?", "ORD-1007 and ORD-1008 are delayed.")
    assert "jacket" in turns[2].text


def test_other_people_correct_nothing_that_they_do_not_know():
    user = make_user(spec(SKY, kind="unhelpful"), seed=0)
    assert not talk(user, "Which night?", "Booked for 2031-04-03.")[2].text.startswith(
        ("No, ", "Sorry, that")
    )


@settings(max_examples=40)
@given(st.dates().map(str), st.lists(st.sampled_from(["2031-03-04", "4 March 2031"]), min_size=1, max_size=2))
def test_whoever_names_the_right_day_is_never_corrected_whatever_else_is_named(other, right):
    for message in (
        f"Booked for {other}, not for {' or '.join(right)}.",
        f"The night is {right[0]}. Booked for {other}.",
    ):
        assert corrected(message) == ""


@settings(max_examples=40)
@given(st.dates().map(str).filter(lambda day: day != "2031-03-04"))
def test_whatever_other_day_is_booked_is_corrected(day):
    assert "2031-03-04" in corrected(f"I have booked Big Eye for {day}.")
