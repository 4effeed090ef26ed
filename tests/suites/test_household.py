"""The household: six types of tasks, each done by one who knows the house, and what else happens in it."""

from __future__ import annotations

import pytest

from arq_graph import Environment, errors
from arq_graph.milestones.suites.household.world import CLOSED, PLACES, Household, kind_of
from tests.suites.household import way

TASKS = [
    ("place", "pen", "drawer"),
    ("light", "book", ""),
    ("clean", "mug", "shelf"),
    ("heat", "potato", "low table"),
    ("cool", "egg", "sofa"),
    ("two", "pillow", "sofa"),
]


@pytest.mark.parametrize("task", TASKS, ids=[each[0] for each in TASKS])
@pytest.mark.parametrize("layout", range(3))
def test_a_task_is_done_by_one_who_knows_the_house_and_not_before_the_last_action(task, layout):
    house = Household(*task, layout=layout)
    assert isinstance(house, Environment)
    scores = []
    for action in way(house):
        assert action in house.actions() and house.outcome()["success"] is False
        assert house.step(action).valid
        scores.append(house.conditions)
    assert house.outcome() == {"success": True, "conditions": 1.0}
    assert scores == sorted(scores) and 0.0 < scores[-2] < 1.0
    assert house.done and house.actions() == ()
    assert not house.step("look").valid


def test_the_same_arguments_make_the_same_house_and_another_layout_another():
    houses = [Household("heat", "mug", "desk", layout=layout) for layout in (1, 1, 2)]
    seen = []
    for house in houses:
        seen.append([house.reset(), *(house.step(f"go to {place}").text for place in PLACES)])
        assert [house.reset(), *(house.step(f"go to {place}").text for place in PLACES)] == seen[-1]
    assert seen[0] == seen[1] != seen[2]


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
    assert house.where["mug 1"] == mug and house.conditions == 0.0


def test_a_closed_place_shows_and_takes_nothing_until_it_is_opened():
    house = Household("place", "spoon", "cabinet", layout=4)
    closed = next(place for place in PLACES if kind_of(place) in CLOSED)
    assert house.step(f"go to {closed}").text == f"You are at {closed}. It is closed."
    assert f"open {closed}" in house.actions()
    assert f"In {closed} you see" in house.step(f"open {closed}").text
    assert "It is closed" in house.step(f"close {closed}").text


def test_a_thing_that_was_heated_and_cooled_again_is_not_hot():
    house = Household("heat", "potato", "desk")
    *before, to_the_desk, put = way(house)
    for action in [*before, "go to fridge 1", "cool potato 1 in fridge 1", to_the_desk, put]:
        assert house.step(action).valid
    assert not house.done and house.conditions == pytest.approx(2 / 3)


def test_one_thing_is_held_at_a_time_and_the_inventory_tells_how_it_is():
    house = Household("two", "pen", "sofa")
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
    ],
)
def test_a_task_that_there_is_not_is_told(given, said):
    with pytest.raises(errors.InputError, match=said):
        Household(*given)
