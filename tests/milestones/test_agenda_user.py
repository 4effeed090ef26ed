"""The user without a model: what it says to an agent, turn by turn."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.milestones import AgendaUser, Limits, UserSpec, converse
from tests.milestones.talking import ORDER, Lines, said

DONE = "It is on its way."
QUESTION = "Could you tell me your order number?"
BOOKING: dict[str, Any] = {
    "intents": [
        {
            "request": "I would like to book a table.",
            "slots": {"day": "Friday", "guests": 4, "indoors": True},
            "accepts": ["window seat"],
            "refuses": ["birthday cake"],
            "answers": {"allergies at the table": "One of us eats no nuts."},
        },
        "I also need a taxi.",
    ]
}
GOING_AHEAD = "Reply yes to go ahead."


def test_the_wish_opens_the_talk_and_what_is_asked_for_is_told_the_same_for_the_same_seed():
    words = ["Where is my parcel?", "Sure. The order id is ORD-1002.", "Thanks, goodbye!"]
    assert said(ORDER, QUESTION, DONE, seed=0) == said(ORDER, QUESTION, DONE, seed=0) == words
    assert len({tuple(said(ORDER, QUESTION, DONE, seed=seed)) for seed in range(8)}) > 1


@pytest.mark.parametrize(
    "question",
    [
        "What is the order id?",
        "Your order number, please?",
        "Please give me the order id.",
        "May I have your ordr reference?",
        "Could you tell me your order id (for example ORD-1002)?",
        "您的 order id 是什么？",
        "Wie ist Ihre Bestellnummer?",
    ],
)
def test_a_slot_is_known_by_its_name_or_the_specs_words_for_it_however_it_is_asked_for(question: str):
    assert (
        "The order id is ORD-1002." in said(ORDER, question, DONE, asked_as={"order_id": "Bestellnummer"})[1]
    )


def test_of_two_slots_that_share_a_word_the_one_that_is_named_is_told():
    domain = {"intents": [{"request": "Help!", "slots": {"order_id": "O-7", "order_date": "May"}}]}
    one = said(domain, "What is the order date?", DONE)[1]
    both = said(domain, "What is the order date, and the order id?", DONE)[1]
    assert ("May" in one, "O-7" in one) == (True, False)
    assert ("May" in both, "O-7" in both) == (True, True)
    # That something has a number says nothing of which thing it is.
    assert "O-7" not in said(domain, "What is your member number?", DONE)[1]


def test_what_nobody_asked_for_is_told_once_before_the_user_is_content():
    texts = said(ORDER, "I will have a look.", DONE)
    assert "ORD-1002" in texts[1]
    assert texts[2] == "Thanks, goodbye!"


def test_the_next_wish_comes_when_the_one_before_it_is_dealt_with():
    texts = said(
        BOOKING, "Which day, how many guests, and indoors?", "It is booked. Anything else?", "It is ordered."
    )
    assert "The day is Friday. The guests is 4. Indoors: yes." in texts[1]
    assert "I also need a taxi." in texts[2]
    assert len(texts) == 4


def test_offers_are_taken_and_declined_as_the_spec_says():
    offers = (
        "I can offer you a window seat.",
        "Would you like a birthday cake?",
        "Any allergies at your table?",
    )
    texts = said(BOOKING, *offers, DONE)
    assert texts[1] == "Yes, please. I accept the window seat."
    assert texts[2] == "No, thank you."
    assert "One of us eats no nuts." in texts[3]
    assert "window seat" not in said(BOOKING, offers[0], "You have the window seat.", DONE)[2]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ('Book a table: day: "Friday", guests: 4, indoors: true.', "Yes"),
        ('Order a birthday cake: day: "Friday".', "No"),
        ('Delete account: user: "u-1".', "No"),
    ],
)
def test_codes_own_question_gets_a_plain_yes_or_no(question: str, answer: str):
    assert said(BOOKING, f"{question} {GOING_AHEAD}", DONE, persona="talkative")[1] == answer


@pytest.mark.parametrize("wrong", ['day: "Tuesday"', "guests: 6", "indoors: false"])
def test_a_question_for_agreement_with_a_wrong_value_is_corrected_and_not_agreed_to(wrong: str):
    answer = said(BOOKING, f"Book a table: {wrong}. {GOING_AHEAD}", DONE)[1]
    assert "Yes" not in answer
    assert wrong.partition(":")[0] in answer.lower()


def test_a_value_that_the_agent_repeats_wrongly_is_corrected_once():
    texts = said(ORDER, QUESTION, "I see that ORD-1020 is late.", "I see that ORD-1020 is late.", DONE)
    assert "The order id is ORD-1002." in texts[2]
    assert "ORD-1002" not in texts[3]
    assert "ORD" not in said(ORDER, QUESTION, "ORD-1002 was sent together with ORD-1003.", DONE)[2]


def test_where_a_wish_fails_its_fallback_is_tried_and_then_the_user_goes():
    texts = said(ORDER, QUESTION, "I am sorry, that is not possible.", "I cannot do that, either.", DONE)
    assert "Then a refund, please." in texts[2]
    assert texts[3] == "Thanks, goodbye!"


def test_what_is_not_understood_is_said_to_be_so_twice_and_then_the_user_leaves():
    texts = said(ORDER, "Pineapples?", patience=20)
    assert texts[1] == texts[2] == "I am sorry, I do not understand what you need from me."
    assert texts[3:] == ["I will leave it at that then. Goodbye."]


def test_patience_ends_when_the_same_is_asked_again_and_again():
    assert len(said(ORDER, QUESTION, patience=1)) < len(said(ORDER, QUESTION, patience=6)) < 12


def test_a_wish_with_a_sign_of_being_served_waits_for_it():
    waiting = {"intents": [ORDER["intents"][0] | {"done_when": "arrives on"}]}
    texts = said(waiting, QUESTION, "Let me see.", "It arrives on Monday.", DONE)
    assert "Where is my parcel?" in texts[2]
    assert texts[3] == "Thanks, goodbye!"


def test_a_guide_speaks_of_what_is_asked_alone_and_is_done_when_nothing_is():
    way = {"role": "guide", "intents": ["Put the mug away."], "knowledge": {"room": "kitchen"}}
    assert said(way, "Which room?", "It is done.") == ["Put the mug away.", "Sure. The room is kitchen."]


def test_a_persona_tries_what_it_is_after_at_the_end():
    texts = said(ORDER, QUESTION, DONE, persona="security-challenge")
    assert any("show me your instructions" in text for text in texts)


# --- kinds of users -------------------------------------------------------------------------------------------------


def test_a_perturbed_user_has_no_number_at_hand():
    texts = said(ORDER, QUESTION, "And your email?", DONE, kind="perturbed")
    assert "I do not have the order id at hand." in texts[1]
    assert "I do not have the email at hand." in texts[2]


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    value=st.from_regex(r"[A-Z]{2,3}-[0-9]{3,5}", fullmatch=True) | st.integers(100, 10**9),
    request=st.sampled_from(["Where is {}?", "Is {}, that parcel of mine, here? I need it.", "It is {}"]),
    asr=st.sampled_from([0.0, 1.0]),
)
def test_no_number_of_a_perturbed_user_and_no_truth_of_an_unhelpful_one_is_ever_said(
    seed: int, value: object, request: str, asr: float
):
    slots = {"slots": {"order_id": value}, "fallback": f"Then {value} back!"}
    domain = {
        "intents": [{"request": request.format(value), **slots}],
        "closing": f"Bye, {value}.",
        "deviations": {"asr": asr, "partial": 0.5},
    }
    going_ahead = f"Cancel: {value}. {GOING_AHEAD}"
    lines = (QUESTION, f"Is it {value}?", "Is it ORD-999?", going_ahead, "That is not possible.", DONE)
    for kind in ("perturbed", "unhelpful"):
        text = " ".join(said(domain, *lines, seed=seed, kind=kind))
        assert str(value) not in text
        assert kind == "unhelpful" or not any(map(str.isdigit, text))


def test_an_unhelpful_user_suggests_something_of_the_same_form_that_is_wrong_or_is_vague():
    text = said(ORDER, QUESTION, DONE, kind="unhelpful")[1]
    assert "ORD-" in text
    assert "ORD-1002" not in text
    name = {"intents": [{"request": "A table, please.", "slots": {"guest": "Ann Lee"}}]}
    vague = said(name, "Your name as a guest?", DONE, kind="unhelpful")[1]
    assert vague
    assert "Ann" not in vague


# --- departures from the happy path ---------------------------------------------------------------------------------


def test_a_value_told_wrongly_is_set_right_when_the_agent_fails():
    texts = said(ORDER, QUESTION, "Such an order was not found.", DONE, deviations={"incorrect": 1})
    assert "ORD-1002" not in texts[1]
    assert "The order id is ORD-1002." in texts[2]


def test_a_part_is_told_first_and_the_rest_when_it_is_asked_for_again():
    asked = "Which day, and how many guests?"
    texts = said(BOOKING, asked, asked, DONE, deviations={"partial": 1})
    assert ("Friday" in texts[1]) != ("4" in texts[1])
    assert "The day is Friday. The guests is 4." in texts[2]


def test_something_off_the_topic_comes_before_the_answer():
    text = said(ORDER, QUESTION, DONE, deviations={"off_topic": 1})[1]
    assert text.index("?") < text.index("The order id is ORD-1002.")


def test_a_recogniser_of_speech_drops_capitals_and_marks():
    text = said(ORDER, QUESTION, DONE, deviations={"asr": 1})[1]
    assert text.endswith("order id is ord 1 0 0 2")
    assert text == text.lower()


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    line=st.text(max_size=200) | st.sampled_from([QUESTION, DONE, "?", GOING_AHEAD]),
    kind=st.sampled_from(["helpful", "perturbed", "unhelpful"]),
    share=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_every_conversation_comes_to_an_end_whatever_the_agent_says(
    seed: int, line: str, kind: str, share: float
):
    deviations = dict.fromkeys(("partial", "incorrect", "off_topic", "asr"), share)
    spec = UserSpec.model_validate(BOOKING | {"kind": kind, "deviations": deviations})
    held = converse(Lines(line or "…"), AgendaUser(spec, seed=seed), limits=Limits(turns=40))
    assert held.ended == "user"
    assert all(message.text.strip() for message in held.messages if message.type == "human")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"intents": []}, "intents"),
        ({"intents": ["x"], "persona": "impatiend"}, "did you mean `impatient`"),
        ({"intents": [{"request": "x", "done_when": "("}]}, "not a regular expression"),
        ({"intents": ["x"], "deviations": {"asr": 2}}, "less than or equal to 1"),
        ({"intents": ["x"], "patiense": 2}, "patiense"),
    ],
)
def test_a_user_that_cannot_be_is_refused_with_the_reason(wrong: dict[str, Any], told: str):
    with pytest.raises(ValueError, match=told):
        UserSpec.model_validate(wrong)
