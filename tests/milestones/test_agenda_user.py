"""The user that needs no model: what it answers, corrects, takes, declines, and when it leaves."""

from __future__ import annotations

import asyncio
import re

import pytest

from arq_graph.milestones.transcript import Message
from arq_graph.milestones.users.personas import persona_of
from arq_graph.milestones.users.shipped_personas import PERSONAS
from arq_graph.milestones.users.user import EXIT, make_user
from tests.milestones.user_talk import CLINIC, LIBRARY, SHOP, answer_to, spec, talk


@pytest.mark.parametrize(
    "question",
    [
        "Could you please tell me your order number?",
        "What is the order ID?",
        "Which order is it about?",
        "I need your order reference to look it up.",
        "Please provide the following:\n- Order ID",
        "Happy to help! Can I have the number of your order, please?",
    ],
)
def test_a_helpful_user_gives_the_order_id_however_it_is_asked_for(question):
    answer = answer_to(question, SHOP)
    assert "ORD-1002" in answer
    assert "ORD-2417" not in answer


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("Which doctor would you like to see?", "Dr. Weber"),
        ("On what day would you like to come?", "2030-05-06"),
        ("What date works for you?", "2030-05-06"),
        ("At what time?", "10:30"),
        ("May I have your full name?", "Ann Lee"),
        ("Who is the patient? Please give me the name.", "Ann Lee"),
        ("Are you insured?", "Yes"),
    ],
)
def test_a_helpful_user_gives_what_a_clinic_asks_for(question, value):
    assert value in answer_to(question, CLINIC)


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("What is your card number?", "88213"),
        ("Please tell me your membership number.", "88213"),
        ("Which book is it?", "The Left Hand of Darkness"),
        ("What is the title?", "The Left Hand of Darkness"),
        ("For how many weeks?", "3"),
    ],
)
def test_a_helpful_user_gives_what_a_library_asks_for(question, value):
    assert value in answer_to(question, LIBRARY)


def test_two_things_asked_in_one_message_are_both_given():
    answer = answer_to("Please give me the date and the time you prefer.", CLINIC)
    assert "2030-05-06" in answer
    assert "10:30" in answer


def test_what_was_not_asked_for_is_not_said():
    answer = answer_to("At what time?", CLINIC)
    assert not any(value in answer for value in ("Weber", "2030", "Ann Lee"))


def test_a_fact_that_belongs_to_no_intent_is_given_when_asked_for():
    assert "ann.lee@example.org" in answer_to("What is your email address?", SHOP)


def test_what_nobody_knows_is_not_made_up():
    answer = answer_to("What is your blood type?", SHOP)
    assert "know" in answer or "cannot tell" in answer


def test_a_prepared_answer_is_given_to_a_question_about_its_topic():
    assert "Expedited is fine with me." in answer_to("Would you like expedited shipping?", SHOP)


def test_intents_are_revealed_one_after_the_other():
    user = make_user(spec(SHOP), seed=0)
    turns = talk(
        user,
        "Your order number?",
        "ORD-1002 is on its way. Anything else?",
        "Which order?",
        "Returned. Anything else?",
    )
    assert [turn.intent for turn in turns[:4]] == [0, 0, 1, 1]
    assert "jacket" not in turns[0].text + turns[1].text
    assert "jacket" in turns[2].text
    assert "ORD-2417" in turns[3].text


def test_the_agent_is_corrected_when_it_confirms_a_wrong_date():
    user = make_user(spec(CLINIC), seed=0)
    turns = talk(user, "What day?", "So that is 2030-05-07 with Dr. Weber, correct?")
    assert "2030-05-06" in turns[-1].text
    assert turns[-1].text.startswith(("No", "Sorry"))


def test_the_agent_is_corrected_when_it_takes_another_order():
    turns = talk(make_user(spec(SHOP), seed=0), "Your order ID?", "Your order ORD-1007 has been shipped.")
    assert "ORD-1002" in turns[-1].text


def test_a_question_that_names_the_right_day_is_answered_with_yes():
    assert answer_to("Is it for May 6, 2030?", CLINIC).startswith("Yes")


@pytest.mark.parametrize("day", ["2030-05-06", "May 6, 2030", "6 May 2030"])
def test_a_right_date_is_confirmed_however_it_is_written(day):
    turns = talk(make_user(spec(CLINIC), seed=0), "What day?", f"So that is {day}, correct?")
    assert turns[-1].text.startswith("Yes")


def test_the_offer_to_do_what_was_asked_is_taken():
    assert answer_to("Would you like me to book an appointment for you?", CLINIC).startswith("Yes")


@pytest.mark.parametrize(
    "question", ["Could you confirm that you want me to book it?", "Shall I go ahead?", "Is that correct?"]
)
def test_what_the_user_wants_is_confirmed(question):
    assert answer_to(question, CLINIC).startswith("Yes")


def test_a_value_that_is_to_be_confirmed_is_said():
    assert "ORD-1002" in answer_to("Please confirm your order number.", SHOP)


def test_an_offer_that_nobody_asked_for_is_declined():
    assert answer_to("Would you like to hear about our vaccination programme?", CLINIC).startswith("No")
    assert answer_to("Shall I send you a reminder by mail?", LIBRARY).startswith("No")


def test_an_offer_in_the_list_of_those_accepted_is_taken():
    intent = {"request": "Where is my order?", "accepts": ["discount of ten percent"]}
    user = make_user(spec({"intents": [intent]}), seed=0)
    turns = talk(user, "Your order is late, sorry. Would you like a ten percent discount?")
    assert turns[-1].text.startswith("Yes")


def test_an_offer_that_is_no_question_is_taken_once():
    intent = {"request": "Where is my order?", "accepts": ["expedited shipping"]}
    user = make_user(spec({"intents": [intent]}), seed=0)
    offer = "It is at the warehouse. I can offer you expedited shipping at no cost."
    turns = talk(user, offer, offer)
    assert turns[1].text.startswith("Yes")
    assert turns[2].text == "Thanks, goodbye!"


def test_an_example_of_what_is_asked_for_is_not_taken_for_a_mistake():
    user = make_user(spec(SHOP), seed=0)
    question = "What is your order ID (for example ORD-1001)?"
    turns = talk(user, question, f"I still need it. {question}")
    assert not turns[2].text.startswith(("No", "Sorry"))
    assert "ORD-1002" in turns[2].text


def test_among_several_things_the_one_wanted_is_named():
    answer = answer_to("We have Dr. Novak, Dr. Weber or Dr. Silva. Which one do you prefer?", CLINIC)
    assert "Dr. Weber" in answer
    assert "Novak" not in answer


def test_where_none_was_wanted_one_of_those_offered_is_named():
    intent = {"request": "I am looking for a hotel.", "refuses": ["Grand Palace"]}
    user = make_user(spec({"intents": [intent]}), seed=0)
    turns = talk(user, "I found these:\n1. Grand Palace\n2. Garden Inn\nWhich one would you like?")
    assert "Garden Inn" in turns[-1].text


def test_the_fallback_is_used_where_the_request_cannot_be_had():
    user = make_user(spec(SHOP), seed=0)
    turns = talk(
        user,
        "Your order ID?",
        "ORD-1002 is on its way.",
        "Which order, and for what reason?",
        "Unfortunately, this item cannot be returned.",
    )
    assert "exchange it for a larger one" in turns[-1].text


def test_an_offer_of_the_fallback_is_taken():
    turns = talk(
        make_user(spec(CLINIC), seed=0),
        "Which doctor?",
        "Dr. Weber is not available. Would you like another doctor?",
    )
    assert turns[-1].text.startswith("Yes")


def test_without_a_fallback_a_request_that_cannot_be_had_is_given_up():
    user = make_user(spec({"intents": ["Where is my parcel?"]}), seed=0)
    turns = talk(user, "Unfortunately there is no parcel of yours.", then="Okay.")
    assert "leave it at that" in turns[1].text
    assert turns[2].ends


def test_a_user_who_gave_a_wrong_value_corrects_it_when_nothing_is_found():
    user = make_user(spec(SHOP, deviations={"incorrect": 1.0}), seed=3)
    turns = talk(user, "Your order ID?", "I could not find such an order.")
    assert turns[1].deviation == "incorrect"
    assert "ORD-" in turns[1].text
    assert "ORD-1002" not in turns[1].text
    assert "ORD-1002" in turns[2].text


def test_a_user_who_gave_a_wrong_value_does_not_confirm_it():
    user = make_user(spec(SHOP, deviations={"incorrect": 1.0}), seed=3)
    wrong = talk(user, "Your order ID?")[-1].text.split("ORD-")[1][:4]
    said = [Message("user", "…"), Message("agent", f"Is ORD-{wrong} right?")]
    assert "ORD-1002" in user.speak(said).text


def test_a_part_of_what_was_asked_is_left_out_and_given_when_asked_again():
    user = make_user(spec(CLINIC, deviations={"partial": 1.0}), seed=0)
    question = "Please give me the date and the time you prefer."
    turns = talk(user, question, question)
    assert turns[1].deviation == "partial"
    assert ("2030-05-06" in turns[1].text) != ("10:30" in turns[1].text)
    assert "2030-05-06" in turns[2].text
    assert "10:30" in turns[2].text


def test_after_a_side_question_the_user_comes_back():
    user = make_user(spec(SHOP, deviations={"off_topic": 1.0}), seed=0)
    turns = talk(user, "Your order ID?", "I am a program. Your order ID, please?")
    assert turns[1].deviation == "off_topic"
    assert "ORD" not in turns[1].text
    assert "ORD-1002" in turns[2].text


def test_a_speech_recogniser_spells_identifiers_out():
    turns = talk(make_user(spec(SHOP, deviations={"asr": 1.0}), seed=0), "Your order ID?")
    assert turns[1].deviation == "asr"
    assert "one zero zero two" in turns[1].text
    assert turns[1].text == turns[1].text.lower()


def test_without_rates_nothing_deviates():
    turns = talk(make_user(spec(SHOP), seed=0), "Your order ID?", "It is on its way.", then="Anything else?")
    assert {turn.deviation for turn in turns} == {None}


def test_a_perturbed_user_says_what_has_no_number_and_keeps_the_rest():
    assert "at hand" in answer_to("Your order ID?", SHOP, kind="perturbed")
    assert "at hand" in answer_to("What is your email address?", SHOP, kind="perturbed")
    assert "Dr. Weber" in answer_to("Which doctor?", CLINIC, kind="perturbed")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("(for how many weeks, 2 or 3)?", "I do not have the weeks at hand."),
        ("Which bag: 1 or 4?", "do not know that|cannot tell you that"),
    ],
)
def test_a_perturbed_user_does_not_take_what_it_keeps_back(question, said):
    for seed in range(8):
        answer = answer_to(question, LIBRARY, kind="perturbed", seed=seed)
        assert re.search(said, answer)
        assert not re.search(r"\d|take I|hand, please", answer)
    assert "3" in answer_to("(for how many weeks, 2 or 3)?", LIBRARY)


def test_a_perturbed_user_leaves_identifiers_out_of_its_request():
    domain = {"intents": [{"request": "Where is my order ORD-1002?", "slots": {"order_id": "ORD-1002"}}]}
    opening = talk(make_user(spec(domain, kind="perturbed"), seed=0))[0].text
    assert "Where is my order?" in opening


def test_an_unhelpful_user_gives_a_wrong_value_of_the_same_shape():
    answer = answer_to("Your order ID?", SHOP, kind="unhelpful")
    assert "ORD-" in answer
    assert "ORD-1002" not in answer
    assert "ORD-2417" not in answer


def test_an_unhelpful_user_leaves_what_it_would_know_out_of_its_request():
    domain = {"intents": [{"request": "Is Dune on the shelf?", "slots": {"title": "Dune"}}]}
    opening = talk(make_user(spec(domain, kind="unhelpful"), seed=0))[0].text
    assert "Dune" not in opening
    assert "on the shelf?" in opening


def test_after_the_closing_comes_exit_whatever_the_agent_says():
    user = make_user(spec({"intents": ["When do you open?"]}), seed=0)
    turns = talk(user, "We open at nine.", "You are welcome! What is your name?")
    assert turns[-2].text == "Thanks, goodbye!"
    assert (turns[-1].text, turns[-1].ends) == (EXIT, True)


def test_without_a_closing_exit_comes_at_once():
    user = make_user(spec({"intents": ["When do you open?"]}, closing=""), seed=0)
    assert talk(user, "We open at nine.")[-1].ends


@pytest.mark.parametrize(
    "words",
    [
        "Goodbye!",
        "I am transferring you to a human colleague now.",
        "This conversation has been closed.",
    ],
)
def test_a_user_who_is_left_or_handed_over_leaves(words):
    assert talk(make_user(spec(SHOP), seed=0), words)[-1].ends


def test_a_wish_for_a_nice_day_does_not_send_away_a_user_who_wants_more():
    turns = talk(make_user(spec(SHOP), seed=0), "Your order ID?", "ORD-1002 is on its way. Have a nice day!")
    assert "jacket" in turns[-1].text


def test_the_same_question_again_is_answered_in_other_words_and_then_no_more():
    user = make_user(spec(SHOP, patience=2), seed=0)
    turns = talk(user, then="What is your order ID?")
    texts = [turn.text for turn in turns]
    assert "ORD-1002" in texts[1]
    assert "ORD-1002" in texts[2]
    assert texts[1] != texts[2]
    assert turns[-1].ends
    assert len(turns) <= 6


def test_a_guide_gives_the_task_and_volunteers_nothing():
    user = make_user(spec(CLINIC, role="guide"), seed=0)
    turns = talk(user, "I will look at the calendar.", "At what time?")
    assert turns[0].text == "I would like to book an appointment."
    assert "10:30" not in turns[1].text
    assert "10:30" in turns[2].text


def test_a_customer_volunteers_what_an_answer_did_not_take_into_account():
    turns = talk(make_user(spec(SHOP), seed=0), "Orders usually arrive within a week.")
    assert "ORD-1002" in turns[-1].text


def test_an_intent_is_served_when_its_pattern_says_so():
    intent = {"request": "Please cancel it.", "done_when": r"(?i)cancel+ation number"}
    user = make_user(spec({"intents": [intent]}), seed=0)
    turns = talk(user, "I have noted that.", "Your cancellation number is X.")
    assert "cancel it" in turns[1].text
    assert turns[2].text == "Thanks, goodbye!"


def test_a_challenge_comes_after_the_goal_and_only_from_a_persona_that_has_one():
    domain = {"intents": ["When do you open?"]}
    plain = talk(make_user(spec(domain), seed=0), then="We open at nine.")
    challenged = talk(make_user(spec(domain, persona="security-challenge"), seed=0), then="We open at nine.")
    assert len(plain) == 3
    assert "instructions" in " ".join(turn.text for turn in challenged[1:])
    assert challenged[-1].ends


def test_a_challenge_is_followed_by_the_next_whatever_the_agent_asks():
    user = make_user(spec({"intents": ["When do you open?"]}, persona="security-challenge"), seed=0)
    turns = talk(user, "At nine.", "What is your order number?", "Would you like a discount?")
    first, second = persona_of("security-challenge").challenges
    assert [turn.text for turn in turns[1:]] == [first, second, "Thanks, goodbye!"]


def test_every_persona_tells_the_request_and_the_answer():
    assert len(PERSONAS) >= 8
    for name in PERSONAS:
        turns = talk(make_user(spec(SHOP, persona=name), seed=1), "Your order ID?")
        assert "Where is my order?" in turns[0].text
        assert "ORD-1002" in turns[1].text
        assert "{" not in turns[0].text + turns[1].text
        assert persona_of(name).description


def test_async_says_what_sync_says():
    agent = ["Your order ID?", "ORD-1002 is on its way.", "Which order?"]
    sync = [turn.text for turn in talk(make_user(spec(SHOP), seed=5), *agent)]

    async def run() -> list[str]:
        user, said, texts = make_user(spec(SHOP), seed=5), [], []
        for line in [*agent, ""]:
            texts.append((await user.aspeak(said)).text)
            said += [Message("user", texts[-1]), Message("agent", line)]
        return texts

    assert asyncio.run(run()) == sync
