"""Which value a user without a model gives to a question, in what words, and which one it takes for wrong."""

from __future__ import annotations

import pytest

from arq_graph.milestones.users.user import make_user
from arq_graph.milestones.users.withholding import leaked, without_identifiers
from tests.milestones.user_talk import LIBRARY, SHOP, answer_to, spec, talk

HOTEL = {
    "intents": [
        {"request": "I need a room.", "slots": {"number_of_guests": 4, "number_of_nights": 2, "town": "Oslo"}}
    ]
}


def member(name: str, value: object) -> dict:
    return {"intents": [{"request": "I want to join.", "slots": {name: value, "town": "Oslo"}}]}


@pytest.mark.parametrize(("question", "number"), [("How many guests?", "4"), ("How many nights?", "2")])
def test_of_two_numbers_the_one_is_told_that_is_asked_for(question, number):
    answer = answer_to(question, HOTEL)
    assert {each for each in "42" if each in answer} == {number}


def test_the_only_number_is_what_how_many_asks_for_and_of_two_none_is_guessed():
    assert "3" in answer_to("How many would you like?", LIBRARY)
    assert not any(each in answer_to("How many would you like?", HOTEL) for each in "42")


def test_a_sign_that_is_no_word_may_stand_for_a_name():
    library = {**LIBRARY, "synonyms": {"card_number": ["№"]}}
    assert "88213" in answer_to("And your №, please?", library)
    assert "88213" not in answer_to("And your shoe size, please?", library)


@pytest.mark.parametrize(
    ("question", "is_wrong"),
    [
        ("Shall I renew it for 2 weeks?", True),
        ("Shall I renew it at counter 2?", False),
        ("Shall I renew it for some weeks?", False),
        ("Shall I renew it for 3 weeks?", False),
    ],
)
def test_another_number_is_wrong_only_where_it_is_said_of_the_same_thing(question, is_wrong):
    turns = talk(make_user(spec(LIBRARY), seed=0), "For how many weeks?", question)
    assert turns[2].text.startswith("No, the weeks") is is_wrong


@pytest.mark.parametrize(
    ("told", "begins"), [("bob@example.org", "No"), ("ANN@example.org", "Yes"), ("2030-05-06", "Yes")]
)
def test_another_address_of_mail_is_corrected(told, begins):
    user = make_user(spec(member("email", "ann@example.org")), seed=0)
    turns = talk(user, "Your email?", f"So it is {told}, correct?")
    assert turns[2].text.startswith(begins)


@pytest.mark.parametrize(
    ("name", "value", "question", "told", "is_wrong"),
    [
        ("parcel", "P-1234", "Which parcel?", "P-9999 is here.", True),
        ("card_number", "1234", "Your card number?", "I see 4567 here.", True),
        ("card_number", "123", "Your card number?", "I see 456 here.", False),
        ("card_number", "12345", "Your card number?", "I see 4567 here.", False),
        ("street", "1234", "Which street?", "I see 4567 here.", False),
    ],
)
def test_what_looks_like_an_identifier_of_the_user_is_taken_for_it(name, value, question, told, is_wrong):
    turns = talk(make_user(spec(member(name, value)), seed=0), question, told)
    assert value in turns[1].text
    assert (value in turns[2].text) is is_wrong


def test_to_confirm_a_wish_is_to_say_yes_and_to_confirm_a_value_is_to_say_it():
    assert answer_to("Please confirm that you want to join.", member("name", "Ann")).startswith("Yes")
    assert "Ann" in answer_to("Please confirm your name.", member("name", "Ann"))


@pytest.mark.parametrize(
    ("name", "said"), [("name", "My name is Ann Lee."), ("patient_name", "The patient name is Ann Lee.")]
)
def test_a_name_is_told_as_one_tells_it(name, said):
    assert said in answer_to("What is your name?", member(name, "Ann Lee"))


@pytest.mark.parametrize(("kind", "is_told"), [("helpful", True), ("perturbed", False), ("unhelpful", False)])
def test_only_who_helps_tells_the_end_of_a_number(kind, is_told):
    answer = answer_to("What is your card number?", LIBRARY, kind=kind, deviations={"partial": 1.0})
    assert ("ends with 13" in answer) is is_told


def test_who_knows_nothing_still_says_something():
    answer = answer_to("What is your blood type?", SHOP, kind="unhelpful")
    assert len(answer.split()) > 3


def test_a_request_has_its_true_number_from_who_helps_and_one_like_it_from_who_does_not():
    shop = {"intents": [{"request": "Where is my order ORD-1002?", "slots": {"order_id": "ORD-1002"}}]}
    helpful, unhelpful = (
        talk(make_user(spec(shop, kind=kind), seed=0))[0].text for kind in ("helpful", "unhelpful")
    )
    assert "ORD-1002" in helpful
    assert "ORD-1002" not in unhelpful
    assert "ORD-" in unhelpful


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("It is for 3 weeks.", "It is for some weeks."),
        ("My card is 88213.", "My card is not at hand."),
        ("Take 4B weeks.", "Take weeks."),
    ],
)
def test_a_number_that_counts_gives_way_to_some_and_any_other_to_nothing(text, rest):
    assert without_identifiers(text, []) == rest


@pytest.mark.parametrize(
    ("text", "is_said"),
    [
        ("Call 04155550187.", True),
        ("Call 041555501879.", True),
        ("Call 03099887766.", False),
    ],
)
def test_a_phone_number_is_said_by_its_end_whatever_stands_for_the_country(text, is_said):
    phone = "+1-415-555-0187"
    assert leaked(text, [("phone", phone)]) == ([phone] if is_said else [])


@pytest.mark.parametrize("text", ["I come tomorrow.", "I come in 4 days."])
@pytest.mark.parametrize("day", ["2030-01-02", "2030-01-05"])
def test_a_day_that_depends_on_today_says_no_date(text, day):
    assert leaked(text, [("date", day)]) == []


def test_a_day_without_a_number_is_no_number():
    assert without_identifiers("I come tomorrow morning.", []) == "I come tomorrow morning."
