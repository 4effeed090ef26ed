"""ALFWorld (Shridhar et al. 2021) as a suite: its houses, and the tasks in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from typing_extensions import TypedDict

from arq_graph.milestones.suites.household.world import CHANGES, LAMP, get_kind, get_preposition
from examples.public_data.suite_writer import (
    NonEmptyText,
    SkippedTask,
    find_files,
    read_smallest,
    write_suite,
)

House = dict[str, list[str]]
"""The things that lie in each place."""


class Errand(NamedTuple):
    """A kind of task: its name in the shipped household, its use case, and the customer's words."""

    task: str
    use_case: str
    request: str


ERRANDS = {
    "pick_and_place_simple": Errand("place", "pick and place", "Put a {} in or on a {}."),
    "look_at_obj_in_light": Errand("light", "examine in light", "Look at a {} in the light of the lamp."),
    "pick_clean_then_place_in_recep": Errand("clean", "clean and place", "Put a clean {} in or on a {}."),
    "pick_heat_then_place_in_recep": Errand("heat", "heat and place", "Put a hot {} in or on a {}."),
    "pick_cool_then_place_in_recep": Errand("cool", "cool and place", "Put a cold {} in or on a {}."),
    "pick_two_obj_and_place": Errand(
        "two", "pick two and place", "Put two things of the kind {} in or on a {}."
    ),
}


class _Game(TypedDict):
    pddl_problem: NonEmptyText


def write_alfworld_suite(folder: Path, out: Path, limit: int = 134) -> Path:
    """Write tasks of the form `TASK-THING-None-PLACE-SCENE/TRIAL/game.tw-pddl`, as in `valid_unseen`, as a suite.

    The things in a house, their places and the tasks are ALFWorld's. The actions, and what they show, are those of the
    shipped household: neither TextWorld nor a planner is needed, and figures aren't those of ALFWorld's own engine. A
    basin is a sink, the lamp of a task is `lamp 1`, and of the things for a pair two remain. A house is skipped if its
    lamp stands on the floor, or if the task can't be done in it.

    Args:
        folder: The unpacked data.
        out: A new folder for the suite.
        limit: The number of tasks, at most.

    Raises:
        InputError: A file is missing or isn't as published, no task is left, or `out` exists.
    """
    games = find_files(folder, "game.tw-pddl", "ALFWorld")
    houses: dict[str, House] = {}
    return write_suite(out, "household", _make_scenarios(games, houses), limit, {"houses.json": houses})


def _make_scenarios(
    games: Iterable[Path], houses: dict[str, House]
) -> Iterator[dict[str, Any] | SkippedTask]:
    """Yield a scenario for each game, and add its house to `houses`."""
    for game in games:
        parts = game.parent.parent.name.split("-")
        if len(parts) != 5 or parts[0] not in ERRANDS or parts[2] != "None":
            yield SkippedTask("the household has no task of that kind")
            continue
        yield _make_scenario(game, ERRANDS[parts[0]], parts[1].lower(), parts[3].lower(), houses)


def _make_scenario(
    game: Path, errand: Errand, thing: str, place: str, houses: dict[str, House]
) -> dict[str, Any] | SkippedTask:
    renamed_kinds = {"sinkbasin": "sink"}
    if errand.task == "light":
        renamed_kinds[place] = "lamp"
        target = ""
    else:
        target = renamed_kinds.get(place, place)
    problem = read_smallest(game.parent, game.name, _Game, "ALFWorld")["pddl_problem"]
    house = _read_house(problem, renamed_kinds)
    places = {name: place for place, things in house.items() for name in things}
    matching_things = sorted(name for name in places if get_kind(name) == thing)
    needed_things = 2 if errand.task == "two" else 1
    needed_kinds = {target or "lamp"}
    if errand.task in CHANGES:
        appliance, _ = CHANGES[errand.task]
        needed_kinds.add(appliance)
    kinds_in_house = {get_kind(name) for name in [*house, *places]}
    if len(matching_things) < needed_things or not needed_kinds <= kinds_in_house:
        return SkippedTask("the house lacks what is needed")
    if errand.task == "two":
        for surplus in matching_things[2:]:
            house[places.pop(surplus)].remove(surplus)

    conjunction = " and " if errand.task == "two" else " or "
    knowledge = {}
    for kind in (thing, "lamp") if errand.task == "light" else (thing,):
        spots = [f"{get_preposition(spot)} {spot}" for name, spot in places.items() if get_kind(name) == kind]
        knowledge[kind] = conjunction.join(spots)
    name = f"{game.parent.parent.name} {game.parent.name}"
    houses[name] = house
    return {
        "name": name,
        "use_case": errand.use_case,
        "milestones": f"{errand.task}.yaml",
        "world": {
            "of": "world:Household",
            "task": errand.task,
            "thing": thing,
            "target": target,
            "house": name,
        },
        "user": {"role": "guide", "intents": [errand.request.format(thing, target)], "knowledge": knowledge},
    }


def _read_house(problem: str, renamed_kinds: Mapping[str, str]) -> House:
    """Return the places of a planning problem with the things in them that can be moved, and the lamp."""
    initial_state = problem.partition("(:goal")[0]
    facts = [fact.split() for fact in re.findall(r"\(([^()]+)\)", initial_state)]
    movable_ids = {fact[1] for fact in facts if fact[0] == "pickupable"}
    place_names = _number_by_kind(facts, "receptacleType", renamed_kinds)
    thing_names = _number_by_kind(facts, "objectType", renamed_kinds)
    house: House = {place: [] for place in place_names.values()}
    for fact in facts:
        if fact[0] != "inReceptacle" or len(fact) != 3:
            continue
        _, thing_id, place_id = fact
        if thing_id not in thing_names or place_id not in place_names:
            continue
        if thing_id in movable_ids or thing_names[thing_id] == LAMP:
            house[place_names[place_id]].append(thing_names[thing_id])
    return house


def _number_by_kind(
    facts: Iterable[list[str]], predicate: str, renamed_kinds: Mapping[str, str]
) -> dict[str, str]:
    """Return names such as `cabinet 2` by the ids of a problem, from the facts that state their types."""
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for _, thing_id, type_name in sorted(f for f in facts if f[0] == predicate and len(f) == 3):
        kind = type_name.removesuffix("Type").lower()
        kind = renamed_kinds.get(kind, kind)
        counts[kind] += 1
        names[thing_id] = f"{kind} {counts[kind]}"
    return names
