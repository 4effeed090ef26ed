"""An observatory, a donation centre and a tailor: what conversations with them have shown."""

from __future__ import annotations

from typing import Any

import pytest

from arq_graph.models.offline.actions import segments
from tests.models.desks import ask
from tests.models.prompts import TEXT, WHOLE, arguments_of, judge, reply, tool

RESERVE = "reserve the place, tell the visitor the code, and offer a star chart"
NIGHTS = ("list_nights", {}, [{"night": "Moon walk at 20:30"}, {"night": "Saturn night at 21:00"}])


def reserved(result: dict[str, Any]) -> tuple[str, dict[str, str], dict[str, Any]]:
    return ("reserve_place", {"night": "Moon walk at 20:30"}, result)


@pytest.mark.parametrize(
    ("result", "offered"), [({"code": "OB-41", "status": "reserved"}, True), ({"status": "full"}, False)]
)
def test_what_is_offered_once_something_is_done_is_not_offered_where_it_failed(result, offered):
    said = reply("Please reserve a place", reserved(result), guidelines={"G1": RESERVE})
    assert ("star chart" in said, "OB-41" in said) == (offered, offered), said


def test_it_is_not_offered_while_something_is_asked_that_it_takes_either():
    lacking = [{"tool": "reserve_place", "kind": "missing", "argument": "visitor"}]
    said = reply("Please reserve a place", NIGHTS, guidelines={"G1": RESERVE}, insights=lacking)
    assert ("star chart" in said, "Moon walk" in said, "visitor" in said) == (False, True, True), said


def test_them_is_what_was_looked_up():
    find = {"G1": "find the free slots and offer them"}
    assert "Which one would you like?" in reply(
        "When?", ("find_slots", {}, ["09:00", "11:30"]), guidelines=find
    )
    assert "my help" not in reply("I do not know", guidelines=find)


def test_a_day_that_is_named_is_not_stated():
    done = ("order_alteration", {}, {"ready_on": "2031-06-01"})
    said = reply("Shorten it", done, guidelines={"G1": "order it and tell the day when it is ready"})
    assert ("2031-06-01" in said, "day when" in said) == (True, False), said


def test_a_note_that_the_customer_gave_is_not_said_back():
    done = ("add_note", {"code": "OB-4", "note": "I am late"}, {"code": "OB-4", "note": "I am late"})
    assert reply("Add the note", done, guidelines={"G1": "add the note"}) == "I have added the note."


@pytest.mark.parametrize(
    ("question", "said", "answer"),
    [
        ("What is the day?", "I am afraid I cannot tell you that.", "Without it"),
        ("What is the day?", "I do not have the day at hand.", "Without it"),
        ("What is the day?", "I will leave it at that then. Goodbye.", "Goodbye"),
    ],
)
def test_who_cannot_answer_is_neither_thanked_nor_pitied(question, said, answer):
    assert reply("Hi", f"agent: {question}", said).startswith(answer)


def test_a_complaint_about_the_fit_is_that_it_does_not_fit():
    condition = "the customer complains about the fit"
    assert judge(condition, "I have to complain: the coat does not fit.")["condition_applies"]
    assert not judge(condition, "I have to complain: the coat is late.")["condition_applies"]


def test_a_question_between_two_deeds_is_a_part_of_its_own():
    parts = segments("express sympathy, ask when it was, and offer a call")
    assert [part.deed for part in parts] == ["sympathise", "ask", "offer"]


def test_each_label_takes_its_own_value():
    moved = tool("change_address", street=(TEXT, "Street and house number."), city=(TEXT, "The city."))
    said = "Please change my address: the street is Elm Road 4 and the city is Oslo."
    assert arguments_of(moved, said) == {"street": "Elm Road 4", "city": "Oslo"}


def test_a_text_is_told_beside_other_values():
    left = tool("leave_message", tailor=(TEXT, "Name of the tailor."), message=(TEXT, "What it says."))
    asked = "agent: Could you please tell me the tailor (name of the tailor) and the message (what it says)?"
    said = "The tailor is Olga and the message is the lining is too warm."
    found = arguments_of(left, "I want to leave a message", asked, said)
    assert found == {"tailor": "Olga", "message": "the lining is too warm"}


NIGHT = tool("reserve_place", night=(TEXT, "The name of the night."), places=(WHOLE, "How many places."))


@pytest.mark.parametrize("name", ["Moon walk at 20:30", "Saturn night at 21:00"])
def test_the_name_of_a_night_is_no_date_and_keeps_its_hour(name):
    said = f"The night is {name} and the places is 2."
    assert arguments_of(
        NIGHT, "I want to reserve places", "agent: Which night, and how many places?", said
    ) == {
        "night": name,
        "places": 2,
    }


def test_who_says_something_once_more_gives_no_name():
    asked = "agent: Could you please tell me the night (the name of the night)?"
    assert arguments_of(NIGHT, "Reserve 2 places", asked, "As I said: I do not have the night.") == {
        "places": 2
    }


def test_what_an_error_says_is_no_listed_name():
    def reserve_night(night: str) -> str:
        """Reserve a night.

        Args:
            night: The name of the night.
        """
        raise ValueError(f"there is no night called {night}")

    calls, _ = ask(
        [reserve_night], "Please reserve the night Saturn", "Please reserve the night Saturn again"
    )
    assert all(call == {"night": "Saturn"} for call in calls)


def test_a_street_is_no_city():
    moved = tool("change_address", street=(TEXT, "Street and house number."), city=(TEXT, "The city."))
    said = "I moved to Elm Road 4 in Oslo, please change my address"
    assert arguments_of(moved, said) == {"street": "Elm Road 4", "city": "Oslo"}


def test_a_number_beside_a_deed_says_only_which_one_it_is():
    assert judge("the visitor wants to cancel a reservation", "Please cancel OB-41")["condition_applies"]
    assert not judge("the visitor wants to cancel a reservation", "Please cancel my subscription")[
        "condition_applies"
    ]


@pytest.mark.parametrize(
    "profile", ["You are a tailor's desk. The shop is at Mill Lane 8.", "You are a desk."]
)
def test_where_the_house_is_is_told_by_the_profile_and_by_no_earlier_result(profile):
    changed = ("change_address", {}, {"address": "Elm Road 4"})
    said = reply(
        "Change it", changed, "agent: I have changed the address.", "Where are you?", profile=profile
    )
    assert ("Mill Lane 8" in said, "Elm Road" in said) == ("Mill" in profile, False)
