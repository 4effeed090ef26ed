"""What counts as a quote from a step."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.milestones import Call, Message, Result, Transcript
from arq_graph.milestones.quotes import is_quoted


def quoted(quote, text):
    return is_quoted(quote, Transcript((Message("agent", text),)), 1)


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("try again later", "Please try again later."),
        ("TRY  again\n later", "Please try\tagain later."),
        ("Please try again later.", "Please try again later."),
        ("I don’t agree", "Well, I don't agree."),
        ("cafe\u0301 au lait", "One caf\u00e9 au lait"),
        ("ORD-1002", "Order ORD-1002 is here"),
        ("straße 7 b", "In der STRASSE 7 B"),
        ("我同意取消", "好的，我同意取消这个订单。"),
        ("同意取消", "我同意取消"),
        ("Yes", "Yes."),
        ("ok", "OK!"),
        ("5", "5"),
        ("👍", "👍"),
    ],
)
def test_a_quote_is_found_whatever_its_case_its_white_space_and_its_marks(quote, text):
    assert quoted(quote, text)


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("", "Please try again later."),
        (" \n", "Please try again later."),
        ("call again later", "Please try again later."),
        ("Please try again later", "Please try again"),
        ("a", "I have a cat"),
        ("in the", "It is in the box"),
        ("yes", "Yes, and then some"),
        ("👍", "Good 👍"),
        ("again lat", "Please try again later."),
        ("lease try again", "Please try again later."),
        ("total is 10", "The total is 100"),
    ],
)
def test_what_is_not_there_or_stands_in_any_text_is_no_quote(quote, text):
    assert not quoted(quote, text)


def test_a_quote_may_come_later_than_where_it_first_seems_to_stand():
    assert quoted("order one", "reorder one thing, then order one more")


def test_calls_and_results_can_be_quoted_from_their_own_steps():
    talk = Transcript(
        (
            Call("cancel", {"order": "ORD-7", "why": "größer"}),
            Result(1, "cancel", '{"status": "cancelled"}'),
            Call("cancel", {(1, 2): "x"}),
            Call("cancel", {}, malformed='{"order": '),
        )
    )
    assert is_quoted('cancel({"order": "ORD-7", "why": "GRÖSSER"})', talk, 1)
    assert is_quoted('"status": "cancelled"', talk, 2)
    assert not is_quoted('"status": "cancelled"', talk, 1)
    assert is_quoted("cancel({(1, 2): 'x'})", talk, 3)
    assert is_quoted('cancel({"order": )', talk, 4)


@pytest.mark.parametrize("event", [0, -1, 2, 99])
def test_there_is_nothing_to_quote_from_a_step_that_does_not_exist(event):
    assert not is_quoted("anything at all", Transcript((Message("user", "anything at all"),)), event)


@given(text=st.text(min_size=1, max_size=80))
@settings(max_examples=80)
def test_the_whole_of_what_is_said_is_always_a_quote(text):
    assert quoted(text, text) == bool(text.strip())
