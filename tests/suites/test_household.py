"""The household: six types of tasks, each done by one who knows the house, and what else happens in it."""

from __future__ import annotations

import pytest

from arq_graph import Environment, errors
from arq_graph.milestones.suites.household.world import CLOSED, Household, kind_of
from tests.suites.household import way

SEEN = [f"go to {place}" for place in Household("place", "pen", "drawer").house]


@pytest.mark.parametrize(
    "task",
    [
        ("place", "pen", "drawer", "villa"),
        ("light", "book", "", "flat"),
        ("clean", "mug", "shelf", "flat"),
        ("heat", "potato", "low table", "cottage"),
        ("cool", "egg", "sofa", "flat"),
        ("two", "pillow", "sofa", "cottage"),
    ],
    ids=lambda each: each[0],
)
def test_a_task_is_done_with_the_last_action_of_one_who_knows_the_house_and_not_before(task):
    house = Household(*task)
    assert isinstance(house, Environment)
    for action in way(house):
        assert action in house.actions() and house.outcome() == {"success": False}
        assert house.step(action).valid
    assert house.done and house.outcome() == {"success": True} and house.actions() == ()
    assert not house.step("look").valid


def test_a_house_is_the_same_each_time_and_another_house_another():
    houses = [
        Household("two", "pillow", "sofa"),
        Household("clean", "mug", "shelf"),
        Household("clean", "mug", "shelf", "flat"),
    ]
    first, same, other = [[house.reset(), *(house.step(each).text for each in SEEN)] for house in houses]
    assert first == same != other
    houses[0].step("close fridge 1")
    assert [houses[0].reset(), *(houses[0].step(each).text for each in SEEN)] == first


def test_what_is_not_possible_changes_nothing():
    house = Household("clean", "mug", "shelf")
    mug = house.where["mug 1"]
    for action in (
        f"take mug 1 from {mug}",
        "fly",
        "",
        "clean mug 1 in sink 1",
        "use lamp 1",
        "put mug 1 in sink 1",
    ):
        assert (house.step(action).text, house.step(action).valid) == ("Nothing happens.", False)
    assert house.where["mug 1"] == mug


def test_a_closed_place_shows_and_takes_nothing_until_it_is_opened():
    house = Household("place", "spoon", "cabinet")
    closed = next(place for place in house.house if kind_of(place) in CLOSED)
    assert house.step(f"go to {closed}").text == f"You are at {closed}. It is closed."
    assert f"open {closed}" in house.actions()
    assert f"In {closed} you see" in house.step(f"open {closed}").text
    assert "It is closed" in house.step(f"close {closed}").text


def test_a_thing_that_was_heated_and_cooled_again_is_not_hot():
    house = Household("heat", "potato", "desk")
    *before, to_the_desk, put = way(house)
    for action in [*before, "go to fridge 1", "cool potato 1 in fridge 1", to_the_desk, put]:
        assert house.step(action).valid
    assert not house.done


def test_one_thing_is_held_at_a_time_and_the_inventory_tells_how_it_is():
    house = Household("two", "pen", "sofa", "flat")
    assert house.step("inventory").text == "You hold nothing."
    for action in way(house):
        house.step(action)
        if action.startswith("take"):
            break
    assert not any(action.startswith("take") for action in house.actions())
    assert house.step("inventory").text.startswith("You hold pen")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("wash", "mug", "desk"), "task is 'wash'"),
        (("heat", "mugg", "desk"), "thing is 'mugg'"),
        (("heat", "mug", ""), "target is ''; it must be one of bed, bin"),
        (("light", "mug", "desk"), "target is 'desk'"),
        (("two", "pen", "desk"), "thing is 'pen'; it must be one of pillow"),
        (("light", "mug", "", "castle"), "house is 'castle'; it must be one of cottage, flat, villa"),
    ],
)
def test_a_task_that_there_is_not_is_told(given, said):
    with pytest.raises(errors.InputError, match=said):
        Household(*given)
