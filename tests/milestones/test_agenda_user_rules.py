"""How the user that needs no model weighs what it hears: what it bears, what it corrects, when it moves on."""

from __future__ import annotations

import pytest

from arq_graph.milestones.users.user import UserTurn, make_user
from tests.milestones.user_talk import CLINIC, LIBRARY, SHOP, spec, talk

NOT_FOUND = "I could not find such an order."
BOOK = {"request": "Is the book on the shelf?", "slots": {"title": "Dune"}}


def told(domain: dict, *agent: str, seed: int = 0, **changes: object) -> list[UserTurn]:
    return talk(make_user(spec(domain, **changes), seed=seed), *agent)


@pytest.mark.parametrize("patience", [0, 1, 3])
def test_so_many_fruitless_turns_are_borne_and_no_more(patience):
    user = make_user(spec({"intents": ["Where is my parcel?"]}, patience=patience), seed=0)
    turns = talk(user, then="Please hold on a moment.")
    borne = [turn.text for turn in turns[1:] if turn.intent == 0]
    assert len(borne) == patience
    assert "leave it at that" in turns[patience + 1].text


def test_a_wrong_value_that_was_put_right_is_not_put_right_again():
    wrong = {"incorrect": 1.0}
    turns = told(SHOP, "Your order ID?", "Your order ID, please?", NOT_FOUND, seed=3, deviations=wrong)
    assert turns[1].deviation == "incorrect"
    assert "ORD-1002" in turns[2].text
    assert "jacket" in turns[3].text


def test_what_a_speech_recogniser_may_have_garbled_is_said_again_when_nothing_is_found():
    turns = told(SHOP, "Your order ID?", NOT_FOUND, deviations={"asr": 1.0})
    assert "one zero zero two" in turns[2].text


def test_an_agent_that_asks_how_to_help_is_told_the_request_again():
    turns = told({"intents": ["When do you open?"]}, "Hello! How can I help you?")
    assert turns[1].text.endswith("When do you open?")
    later = told({"intents": ["When do you open?"]}, "I booked a table. How can I help you?")
    assert later[1].text == "Thanks, goodbye!"


def test_who_has_what_was_asked_for_does_not_mind_what_else_failed():
    unasked = "Dune is on the shelf. Unfortunately the reading room is closed."
    assert told({"intents": [BOOK]}, "Which book?", unasked)[2].text == "Thanks, goodbye!"
    missing = "Unfortunately we have no such book."
    assert "leave it at that" in told({"intents": [BOOK]}, "Which book?", missing)[2].text


def test_who_has_a_fallback_uses_it_although_something_was_told():
    book = {**BOOK, "fallback": "Then please reserve it."}
    half = "Dune is in our catalogue. Unfortunately all copies are on loan."
    assert "Then please reserve it." in told({"intents": [book]}, "Which book?", half)[2].text


def test_another_date_is_a_mistake_only_where_it_is_to_be_confirmed():
    asked = told(CLINIC, "What day?", "Shall I book it for 2030-05-07?")
    assert asked[2].text.startswith("No")
    assert "2030-05-06" in asked[2].text
    stated = told(CLINIC, "What day?", "Dr. Novak comes back on 2030-06-01.")
    assert "2030-05-06" not in stated[2].text


def test_a_number_that_was_told_is_corrected_although_other_things_are_still_unsaid():
    turns = told(LIBRARY, "What is your card number?", "I have card 88214 here.")
    assert "88213" in turns[2].text
    assert "Darkness" not in turns[2].text


def test_what_was_prepared_for_a_later_request_is_said_when_it_is_asked_about_now():
    gift = {"request": "I also want to send a gift.", "answers": {"gift wrapping": "Wrap it in red."}}
    turns = told({"intents": ["Where is my order?", gift]}, "It is sent. Would you like gift wrapping?")
    assert "Wrap it in red." in turns[1].text


@pytest.mark.parametrize(
    ("offer", "word"), [("Shall I book the appointment?", "Yes"), ("Would you like some tea?", "No")]
)
def test_yes_or_no_is_said_beside_what_else_was_asked(offer, word):
    answer = told(CLINIC, f"{offer} At what time?")[1].text
    assert answer.startswith(word)
    assert "10:30" in answer


def test_who_is_asked_for_more_details_tells_what_was_not_said_yet():
    answer = told(CLINIC, "On which date?", "Could you give me more details?")[2].text
    assert "I would like to book an appointment." in answer
    assert "10:30" in answer
    assert "2030-05-06" not in answer


@pytest.mark.parametrize("changes", [{"role": "guide"}, {"kind": "unhelpful"}])
def test_a_guide_and_who_knows_nothing_only_repeat_the_request(changes):
    answer = told(CLINIC, "Could you give me more details?", **changes)[1].text
    assert answer.endswith("I would like to book an appointment.")


@pytest.mark.parametrize(("number", "is_said"), [("ORD-1002", False), ("ORD-2417", True)])
def test_what_is_still_true_of_the_next_request_is_not_volunteered_again(number, is_said):
    back = {"request": "I want to return one.", "slots": {"order_id": number, "reason": "it is too small"}}
    shop = {"intents": [SHOP["intents"][0], back]}
    turns = told(shop, "Your order ID?", "ORD-1002 was delivered.", "Returns take a week.")
    assert "too small" in turns[3].text
    assert (number in turns[3].text) is is_said


def test_a_guide_goes_on_once_it_is_done_and_waits_before():
    assert told(CLINIC, "The calendar is open.", role="guide")[1].intent == 0
    assert told(CLINIC, "Your appointment is booked.", role="guide")[1].text == "Thanks, goodbye!"


def test_what_was_not_said_yet_is_no_mistake_of_an_agent_that_states_something():
    turns = told(LIBRARY, "For how many weeks?", "I see card 88214 on my desk.")
    assert not turns[2].text.startswith(("No", "Sorry"))


def test_a_part_of_an_identifier_is_told_and_the_whole_when_asked_again():
    turns = told(SHOP, "Your order ID?", "Your order ID, please?", deviations={"partial": 1.0})
    assert turns[1].deviation == "partial"
    assert "ends with 02" in turns[1].text
    assert "ORD-1002" not in turns[1].text
    assert "ORD-1002" in turns[2].text


def test_questions_that_differ_are_answered_without_patience_and_the_same_again_is_not():
    different = told(CLINIC, "What day?", "At what time?", "Which doctor?", patience=0)
    assert [turn.intent for turn in different] == [0] * 4
    again = told(CLINIC, "What day?", "What day?", patience=0)
    assert "leave it at that" in again[2].text


def test_a_user_speaks_as_often_as_it_may_and_then_leaves():
    questions = ("What day?", "At what time?", "Which doctor?", "Your name?")
    turns = told(CLINIC, *questions, max_turns=3)
    assert [turn.ends for turn in turns] == [False, False, False, True]


TOURS = "We have these:\n- {}\n- {}\nWhich one would you like?"


@pytest.mark.parametrize(
    ("accepts", "question", "taken"),
    [
        ("the lake", TOURS.format("The gorge with a picnic", "The lake with a boat trip and dinner"), "lake"),
        ("an afternoon at the lake with a guide", TOURS.format("The gorge", "The lake"), "lake"),
        ("the lake", "Do you prefer the lake, the mill or the gorge?", "lake"),
        ("a picnic", TOURS.format("The gorge and then " + "another long walk " * 3, "The mill"), "mill"),
        ("a picnic", TOURS.format("...", "The mill"), "mill"),
    ],
)
def test_of_what_is_named_the_one_that_is_wanted_is_taken_or_else_the_first_of_a_few_words(
    accepts, question, taken
):
    tour = {"request": "I want to book a tour.", "accepts": [accepts]}
    answer = told({"intents": [tour]}, question)[1].text
    assert taken in answer
    assert not any(other in answer for other in {"gorge", "mill", "lake", "..."} - {taken})


def test_where_nothing_is_named_nothing_is_taken():
    question = "Which one do you prefer, my dear guest, for today?"
    answer = told({"intents": ["I want to book a tour."]}, question)[1].text
    assert not any(word in answer for word in ("guest", "today"))


@pytest.mark.parametrize("said", ["Your appointment is booked.", "Dr. Weber is in on Mondays."])
def test_who_hears_of_what_was_asked_for_or_that_it_is_done_volunteers_nothing(said):
    assert told(CLINIC, said)[1].text == "Thanks, goodbye!"


def test_what_is_both_accepted_and_refused_is_declined():
    tour = {"request": "I want to book a tour.", "accepts": ["a discount"], "refuses": ["a discount"]}
    assert told({"intents": [tour]}, "Would you like a discount?")[1].text.startswith("No")
