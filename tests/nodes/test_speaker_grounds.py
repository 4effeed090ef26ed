"""What a speaker may take for told, and what it holds a message against that breaks off."""

from __future__ import annotations

import pytest

from arq_graph import Agent, Variable
from tests.nodes.order_tools import A1, called, get_order, ran
from tests.nodes.speaker_desk import customer, move, said
from tests.speaking import act, ask, say

MINE = customer("Where is my order?")
HALF = customer("A-1 is a table for")


@pytest.mark.parametrize(
    "desk",
    [
        Agent("Desk", "All orders of today are in A-1.", tools=[get_order]),
        Agent("Desk", "You help.", tools=[get_order], variables=[Variable("last order", "Theirs.", "A-1")]),
    ],
)
def test_what_the_profile_or_a_variable_tells_is_no_guess(desk):
    update, asked = move([act("get_order", A1)], MINE, desk=desk)
    assert (len(asked), called(update)) == (1, [("get_order", A1)])
    other = act("get_order", {"order_id": "A-2"})
    assert called(move([other], MINE, desk=desk)[0]) == []


def test_a_half_request_is_not_asked_about_once_something_was_found():
    update, asked = move([say("It is late.")], HALF, *ran())
    assert "half_request" not in asked[0].now
    assert (len(asked), said(update)) == (1, "It is late.")


def test_nor_where_the_policy_is_off():
    update, asked = move([act("get_order", A1)], HALF, policies=["name_or_type"])
    assert "half_request" not in asked[0].now
    assert (len(asked), called(update)) == (1, [("get_order", A1)])


def test_a_half_request_is_answered_with_a_question_at_once():
    update, asked = move([ask("A table for how many?")], HALF)
    assert asked[0].now["half_request"]
    assert (len(asked), said(update)) == (1, "A table for how many?")
    update, asked = move([say("Fine."), ask("For how many?")], HALF)
    assert "only half said" in asked[1].complaint
    assert said(update) == "For how many?"
