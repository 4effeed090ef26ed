"""The agent's own place is not where a parcel, a guide or anybody else is."""

from __future__ import annotations

import pytest

from tests.models.desks import ask
from tests.models.prompts import judge


def pharmacies_on_duty() -> dict[str, str]:
    """Look up the places and addresses of the pharmacies that are on duty."""
    return {"address": "Elm Road 1"}


def find_guide() -> dict[str, str]:
    """Find out where a guide is: the place and its address."""
    return {"address": "Elm Road 1"}


def where_parcel(parcel_id: str) -> dict[str, str]:
    """Tell at which place or address a parcel is.

    Args:
        parcel_id: The parcel, like PC-12.
    """
    return {"address": "Elm Road 1"}


def office_address() -> dict[str, str]:
    """Look up the address of our office."""
    return {"address": "Elm Road 1"}


def locations() -> list[str]:
    """List our locations."""
    return ["Elm Road 1"]


@pytest.mark.parametrize("called", [pharmacies_on_duty, find_guide, where_parcel])
@pytest.mark.parametrize("said", ["Where are you?", "Hi, where are you located?", "What is your address?"])
def test_the_place_of_something_else_is_no_answer(called, said):
    calls, reply = ask([called], said)
    assert (calls, "Elm Road" in reply, "parcel" in reply) == ([], False, False), reply


@pytest.mark.parametrize("called", [office_address, locations])
@pytest.mark.parametrize("said", ["Where are you?", "Where is your office?"])
def test_the_place_of_the_house_is_looked_up(called, said):
    calls, reply = ask([called], said)
    assert (calls, "Elm Road 1" in reply) == ([{}], True), reply


@pytest.mark.parametrize(
    ("called", "said", "calls"),
    [
        (find_guide, "Where is the guide?", [{}]),
        (find_guide, "Where is the fountain?", []),
        (office_address, "Where is the fountain?", []),
        (where_parcel, "Where is my parcel PC-7?", [{"parcel_id": "PC-7"}]),
    ],
)
def test_what_a_tool_neither_speaks_of_nor_takes_is_not_asked_of_it(called, said, calls):
    assert ask([called], said)[0] == calls


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("the customer asks where their parcel is", False),
        ("the customer asks where the guide is", False),
        ("the customer asks where the shop is", True),
    ],
)
def test_a_condition_about_another_place_does_not_hold(condition, holds):
    assert judge(condition, "Where are you?")["condition_applies"] is holds
