"""Whatever an agent says: the user answers, keeps to its kind, and comes to an end."""

from __future__ import annotations

import re
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.milestones.users.inventing import wrong_value
from arq_graph.milestones.users.mishearing import misheard
from arq_graph.milestones.users.shipped_personas import PERSONAS
from arq_graph.milestones.users.user import EXIT, make_user
from arq_graph.milestones.users.withholding import is_kept_back, leaked, without_identifiers
from tests.milestones.user_talk import CLINIC, LIBRARY, SHOP, spec, talk

PHRASES = [
    "What is your order number?", "Could you give me the date and time?", "Which doctor do you want?",
    "I could not find order ORD-1002.", "There is no such card.", "Is it 2030-05-07?", "So the card is 88214, correct?",
    "Would you like a discount?", "Shall I go ahead?", "We have A, B or C.", "Which one would you like?",
    "Your email is ann.lee@example.org, right?", "Anything else?", "How can I help you?", "One moment, please.",
    "It is done.", "ORD-1002", "ORD-2417 was shipped.", "Unfortunately that is not possible.", "Dr. Weber is in.",
    "Please provide:\n- your name\n- your phone number", "Your order is on its way.", "Why?", "Are you insured?",
    "How many weeks?", "Would you like me to renew it?", "88213?", "", "Have a nice day!", "Goodbye!",
    "Sorry, could you repeat that?", "Is it The Left Hand of Darkness or Dune?",
]  # fmt: skip
MESSAGES = st.lists(st.one_of(st.sampled_from(PHRASES), st.text(max_size=60)), min_size=1, max_size=4).map(
    " ".join
)
DEVIATIONS = st.dictionaries(
    st.sampled_from(["partial", "incorrect", "off_topic", "asr"]), st.sampled_from([0.0, 0.5, 1.0])
)
DOMAINS = st.sampled_from([SHOP, CLINIC, LIBRARY])
KINDS = st.sampled_from(["helpful", "perturbed", "unhelpful"])
ROLES = st.sampled_from(["customer", "guide"])


@st.composite
def users(draw: Any, kinds: Any = KINDS) -> tuple[dict[str, Any], dict[str, Any]]:
    """A domain, and who the user is in it."""
    changes = {
        "kind": draw(kinds),
        "role": draw(ROLES),
        "persona": draw(st.sampled_from(list(PERSONAS))),
        "deviations": draw(DEVIATIONS),
        "patience": draw(st.integers(0, 3)),
        "max_turns": draw(st.integers(1, 15)),
    }
    return draw(DOMAINS), changes


@settings(max_examples=60)
@given(users(), st.lists(MESSAGES, min_size=1, max_size=12), st.integers(0, 5))
def test_every_conversation_ends_with_exit_within_its_bound(user, messages, seed):
    domain, changes = user
    turns = talk(make_user(spec(domain, **changes), seed=seed), *messages, then=messages[-1])
    assert len(turns) <= changes["max_turns"] + 1
    assert (turns[-1].text, turns[-1].ends) == (EXIT, True)
    assert all(turn.text.strip() and not turn.ends for turn in turns[:-1])


@settings(max_examples=40)
@given(users(), st.lists(MESSAGES, min_size=1, max_size=8), st.integers(0, 5))
def test_the_same_seed_and_the_same_agent_give_the_same_user(user, messages, seed):
    domain, changes = user
    one, other = (talk(make_user(spec(domain, **changes), seed=seed), *messages) for _ in range(2))
    assert one == other


@settings(max_examples=60)
@given(users(st.just("perturbed")), st.lists(MESSAGES, min_size=1, max_size=10), st.integers(0, 5))
def test_a_perturbed_user_never_says_a_digit_or_an_identifier(user, messages, seed):
    domain, changes = user
    who = spec(domain, **changes)
    for turn in talk(make_user(who, seed=seed), *messages):
        assert not any(map(str.isnumeric, turn.text)), turn
        assert "@" not in turn.text
        assert not leaked(turn.text, who.facts.items()), turn


@settings(max_examples=60)
@given(users(st.just("unhelpful")), st.lists(MESSAGES, min_size=1, max_size=10), st.integers(0, 5))
def test_an_unhelpful_user_never_says_a_true_value(user, messages, seed):
    domain, changes = user
    who = spec(domain, **changes)
    truths = [str(value) for value in who.values if not isinstance(value, bool)]
    for turn in talk(make_user(who, seed=seed), *messages):
        for truth in truths:
            assert not re.search(rf"(?<!\w){re.escape(truth)}(?!\w)", turn.text, re.IGNORECASE), turn


@settings(max_examples=60)
@given(st.integers(1, 999_999), st.integers(0, 50))
def test_a_patient_agent_gets_the_right_value_in_the_end_whatever_the_user_does_first(number, seed):
    value = f"ORD-{number}"
    domain = {"intents": [{"request": "Where is my order?", "slots": {"order_id": value}}]}
    rates = {"incorrect": 0.7, "partial": 0.7, "off_topic": 0.5}
    user = make_user(spec(domain, deviations=rates, patience=8), seed=seed)
    turns = talk(user, *["What is your order ID?"] * 6)
    assert any(value in turn.text for turn in turns)


@settings(max_examples=60)
@given(
    st.one_of(
        st.from_regex(r"[A-Z]{2,4}-[0-9]{2,6}", fullmatch=True),
        st.integers(-1000, 100_000),
        st.floats(0, 1000),
        st.dates().map(str),
        st.emails(),
        st.booleans(),
    ),
    st.randoms(use_true_random=False),
)
def test_an_invented_value_is_another_one_of_the_same_type(value, chance):
    invented = wrong_value("thing", value, chance, [value])
    assert invented is None or (invented != value and type(invented) is type(value))


@given(st.integers(0, 1_000))
def test_an_invented_value_is_none_of_the_true_ones(seed):
    assert wrong_value("daytime", "morning", Random(seed), ["morning", "Afternoon"]) == "evening"


@settings(max_examples=60)
@given(st.text(max_size=80), st.from_regex(r"[A-Z]{3}-[0-9]{3,5}", fullmatch=True))
def test_what_is_kept_back_is_found_and_taken_out(text, value):
    facts = [("order_id", value)]
    assert leaked(f"{text} {value} {text}", facts)
    assert leaked(f"my order is {misheard(value, Random(0))}", facts)
    assert not leaked(without_identifiers(f"{text} {value}. {text}", facts), facts)
    assert is_kept_back("order_id", value)
