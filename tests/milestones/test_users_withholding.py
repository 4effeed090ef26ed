"""What a user keeps back stays back, in whatever form it is said; what is no such thing is left as it is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph import ScriptedChatModel
from arq_graph.milestones.users.spoken_numbers import in_digits
from arq_graph.milestones.users.user import make_user
from arq_graph.milestones.users.withholding import leaked, without_identifiers
from tests.milestones.test_users_simulated import ignorant, speaking
from tests.milestones.user_talk import spec

KEPT = {
    "phone": "+49 30 5557788",
    "order_id": "SL-204",
    "date": "2027-03-04",
    "time": "19:00",
    "pnr_code": "KXQWZT",
    "weeks": 3,
    "amount": 1299.0,
}
DOMAIN = {"intents": [{"request": "Where is my parcel?", "slots": KEPT}]}
SAID = {
    "0305557788": "phone",
    "030 555 77 88": "phone",
    "call +49 (30) 5557788": "phone",
    "0049305557788": "phone",
    "oh three oh five five five seven seven eight eight": "phone",
    "My number is ＳＬ-２０４": "order_id",
    "s l ٢٠٤": "order_id",
    "S\u200bL 2\u200b0\u200b4": "order_id",
    "My number is two hundred and four.": "order_id",
    "it is two-oh-four": "order_id",
    "the fourth of March": "date",
    "on March the fourth, please": "date",
    "March fourth, twenty twenty-seven": "date",
    "the 4th of march": "date",
    "On 4.3. then": "date",
    "around 7 pm": "time",
    "K X Q W Z T": "pnr_code",
    "for three weeks": "weeks",
    "I paid 1,299 for it": "amount",
    "thirteen hundred? No, one thousand two hundred ninety-nine": "amount",
}


@pytest.mark.parametrize(("said", "name"), SAID.items())
def test_a_value_is_known_in_other_words_and_taken_out(said, name):
    value = KEPT[name]
    assert leaked(said, [(name, value)]) == [str(int(value) if isinstance(value, float) else value)]
    rest = without_identifiers(said, KEPT.items())
    assert not leaked(rest, KEPT.items()), rest
    assert not any(map(str.isnumeric, rest)), rest


@pytest.mark.parametrize("said", SAID)
def test_a_perturbed_user_that_a_model_plays_lets_no_form_of_it_through(said):
    model = ScriptedChatModel(lambda call: speaking(said))
    turn = make_user(spec(DOMAIN, kind="perturbed"), seed=0, model=model).speak([])
    assert not turn.ends
    assert said.rstrip(".") not in turn.text
    assert not leaked(turn.text, KEPT.items()), turn.text


@pytest.mark.parametrize(
    "said",
    [
        "That one is fine.",
        "Oh, one moment. One more thing: where is it?",
        "The second order, not the first.",
        "I may call in March … “perhaps”.",
        "It was the fourth of July.",
        "Naïve? ½ of it, or Ⅳ.",
    ],
)
def test_words_that_tell_nothing_of_it_are_no_leak(said):
    assert leaked(said, KEPT.items()) == []


def test_what_holds_no_number_is_left_as_it_is():
    said = "Oh, one moment … the second one, as in March – I may take it 👩‍💻."
    assert without_identifiers(said, KEPT.items()) == said


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("I need it on the fourth of March.", "I need it on that day."),
        ("My number is two hundred and four.", "My number is not at hand."),
        ("We are twenty-one people.", "We are some people."),
    ],
)
def test_what_is_left_can_be_read(said, left):
    assert without_identifiers(said, KEPT.items()) == left


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("two hundred and four", "204"),
        ("a hundred and five of them", "105 of them"),
        ("one thousand two hundred and four", "1204"),
        ("nine hundred ninety-nine thousand and one", "999001"),
        ("twenty four seventeen", "2417"),
        ("ten oh two", "1002"),
        ("nineteen ninety nine", "1999"),
        ("one and two", "one and two"),
        ("four", "four"),
    ],
)
def test_number_words_are_read_as_they_are_meant(said, written):
    assert in_digits(said) == written


UNITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TEENS = [
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def in_words(number: int) -> str:
    """A number below a million in words."""
    if number < 20:
        return (UNITS + TEENS)[number]
    if number < 100:
        return TENS[number // 10 - 2] + (f"-{UNITS[number % 10]}" if number % 10 else "")
    size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    rest = f" and {in_words(number % size)}" if number % size else ""
    return f"{in_words(number // size)} {name}{rest}"


@settings(max_examples=80)
@given(st.integers(20, 999_999))
def test_every_number_that_is_said_as_a_whole_is_known(number):
    assert in_digits(f"it is {in_words(number)}.", {str(number)}) == f"it is {number}."
    assert leaked(f"it is {in_words(number)}.", [("order_id", f"A-{number}")])


@pytest.mark.parametrize("said", ["My number is SL-204.", "sl-204", "It is for 3 weeks, KXQWZT!"])
def test_an_unhelpful_user_that_a_model_plays_says_nothing_true(said):
    model = ScriptedChatModel(lambda call: ignorant(said))
    turn = make_user(spec(DOMAIN, kind="unhelpful"), seed=0, model=model).speak([])
    assert not turn.ends
    for value in ("SL-204", "KXQWZT", "3 weeks"):
        assert value.lower() not in turn.text.lower()
    assert "something" in turn.text


def test_a_helpful_user_says_what_it_knows():
    model = ScriptedChatModel([speaking("My number is SL-204, for 3 weeks.")])
    assert make_user(spec(DOMAIN), seed=0, model=model).speak([]).text == "My number is SL-204, for 3 weeks."
