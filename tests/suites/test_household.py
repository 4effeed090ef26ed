"""The household: what is possible in it, and what is not."""

from __future__ import annotations

import pytest

from arq_graph import errors
from arq_graph.milestones.suites.household.world import CLOSED, Household, get_kind
from tests.suites.household import way


def test_after_a_reset_everything_lies_where_it_lay():
    house = Household("place", "pen", "drawer")

    def seen():
        return [house.reset(), *(house.step(f"go to {place}").text for place in house.house)]

    first = seen()
    assert house.step("take key 1 from side table 1").valid
    assert seen() == first


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
    closed = next(place for place in house.house if get_kind(place) in CLOSED)
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
