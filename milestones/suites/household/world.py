"""A small house made of text, and six types of household tasks in it: the kind of world of ReSpAct (3.1)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from arq_graph.agent.environment import Observation
from arq_graph.errors import InputError

House = Mapping[str, Sequence[str]]
"""The places of a house, each with what lies there when a task begins."""

HOUSES: Mapping[str, House] = json.loads(Path(__file__).with_name("houses.json").read_bytes())

Task = Literal["place", "light", "clean", "heat", "cool", "two"]
CLOSED = ("fridge", "microwave", "cabinet", "drawer", "wardrobe", "safe")
CHANGES = {"clean": ("sink", "clean"), "heat": ("microwave", "hot"), "cool": ("fridge", "cold")}
"""The actions that change a thing: where each can be done, and what the thing then is."""
LAMP = "lamp 1"


def get_kind(name: str) -> str:
    """Return what a thing or a place is: `mug` for `mug 2`."""
    return name.rpartition(" ")[0]


def get_preposition(place: str) -> str:
    """Return how a thing lies there: `in` a drawer, `on` a desk."""
    return "in" if get_kind(place) in (*CLOSED, "sink", "bin") else "on"


class Household:
    """One house with one task: an `Environment`.

    Actions: `go to PLACE`, `open PLACE`, `close PLACE`, `take THING from PLACE`, `put THING in PLACE` (`on` a surface),
    `clean`, `heat` or `cool THING in PLACE`, `use lamp 1`, `look`, `inventory`. One thing is held at a time. Those of
    `CLOSED` are closed at first, and what lies in them is not seen. The task ends as soon as it is done.

    Args:
        task: `place` a thing, or `two`; `clean`, `heat` or `cool` one and place it; look at one in the lamp's `light`.
        thing: The kind of thing, of which enough must lie in the house.
        target: The kind of place where it ends; empty for `light`.
        house: One of `HOUSES`.

    Attributes:
        done: True once the task is done.
        score: None, as it is not shown how far one is.
        where: The place of each thing that is not held, and of the lamp.

    Raises:
        InputError: There is no such task, house, thing or place.
    """

    score: float | None = None

    def __init__(self, task: Task, thing: str, target: str = "", house: str = "cottage") -> None:
        _require("task", task, get_args(Task))
        _require("house", house, HOUSES)
        self.task, self.thing, self.target = task, thing, target
        self.house = HOUSES[house]
        self._needed_things = 2 if task == "two" else 1
        self.reset()
        counts = Counter(map(get_kind, self._states))
        _require("thing", thing, [kind for kind, count in counts.items() if count >= self._needed_things])
        _require("target", target, {""} if task == "light" else set(map(get_kind, self.house)))

    def reset(self) -> str:
        """Begin anew; what lies where is the same each time."""
        self.where: dict[str, str] = {}
        for place, things in self.house.items():
            self.where |= dict.fromkeys(things, place)
        self._states: dict[str, set[str]] = {thing: set() for thing in self.where if thing != LAMP}
        self._closed = {place for place in self.house if get_kind(place) in CLOSED}
        self._place, self._held_thing, self.done = "", "", False
        return f"You are in the middle of a small house. Around you there are {', '.join(self.house)}."

    def actions(self) -> Sequence[str]:
        """Return the actions that are possible now; none once the task is done."""
        return tuple(self._list_actions())

    def step(self, action: str) -> Observation:
        """Take an action; one that is not possible now changes nothing."""
        actions = self._list_actions()
        if action not in actions:
            return Observation("Nothing happens.", valid=False)
        description = actions[action]()
        self.done = self._is_done()
        return Observation(description)

    def outcome(self) -> dict[str, bool]:
        """Return `success`: True once the task is done."""
        return {"success": self.done}

    def _list_actions(self) -> dict[str, Callable[[], str]]:
        if self.done:
            return {}
        place, held_thing = self._place, self._held_thing
        actions: dict[str, Callable[[], str]] = {"look": self._look, "inventory": self._describe_inventory}
        for other_place in self.house:
            if other_place != place:
                actions[f"go to {other_place}"] = partial(self._go_to, other_place)
        if get_kind(place) in CLOSED:
            verb = "open" if place in self._closed else "close"
            actions[f"{verb} {place}"] = partial(self._open_or_close, verb)
        if place and place not in self._closed:
            if held_thing:
                actions[f"put {held_thing} {get_preposition(place)} {place}"] = self._put
            else:
                for thing in self._list_things_here():
                    if thing != LAMP:
                        actions[f"take {thing} from {place}"] = partial(self._take, thing)
        if held_thing:
            for verb, (appliance, state) in CHANGES.items():
                if get_kind(place) == appliance:
                    actions[f"{verb} {held_thing} in {place}"] = partial(self._change, verb, state)
        if place and place == self.where.get(LAMP):
            actions[f"use {LAMP}"] = self._use_lamp
        return actions

    def _list_things_here(self) -> list[str]:
        return [thing for thing, place in self.where.items() if place == self._place]

    def _go_to(self, place: str) -> str:
        self._place = place
        return self._look()

    def _look(self) -> str:
        place = self._place
        if not place:
            return "You are in the middle of the house."
        if place in self._closed:
            return f"You are at {place}. It is closed."
        things = ", ".join(self._list_things_here()) or "nothing"
        return f"{get_preposition(place).capitalize()} {place} you see {things}."

    def _describe_inventory(self) -> str:
        return f"You hold {self._held_thing or 'nothing'}."

    def _open_or_close(self, verb: str) -> str:
        self._closed ^= {self._place}
        return f"You {verb} {self._place}. {self._look()}"

    def _take(self, thing: str) -> str:
        self._held_thing = thing
        self._states[thing].add("taken")
        return f"You take {thing} from {self.where.pop(thing)}."

    def _put(self) -> str:
        thing, self._held_thing = self._held_thing, ""
        self.where[thing] = self._place
        return f"You put {thing} {get_preposition(self._place)} {self._place}."

    def _change(self, verb: str, state: str) -> str:
        opposite = {"hot": "cold", "cold": "hot"}.get(state, "")
        self._states[self._held_thing].discard(opposite)
        self._states[self._held_thing].add(state)
        return f"You {verb} {self._held_thing} in {self._place}. It is {state} now."

    def _use_lamp(self) -> str:
        if not self._held_thing:
            return f"You switch {LAMP} on."
        self._states[self._held_thing].add("lit")
        return f"You switch {LAMP} on, and look at {self._held_thing} in its light."

    def _is_done(self) -> bool:
        """Return True if as many things as the task needs were changed as it says, and lie where they belong."""
        needed_state = "taken" if self.target else "lit"
        if self.task in CHANGES:
            _, needed_state = CHANGES[self.task]
        ready_things = 0
        for thing, states in self._states.items():
            is_in_place = not self.target or get_kind(self.where.get(thing, "")) == self.target
            if get_kind(thing) == self.thing and needed_state in states and is_in_place:
                ready_things += 1
        return ready_things >= self._needed_things


def _require(name: str, value: str, choices: Collection[str]) -> None:
    if value not in choices:
        raise InputError(f"{name} is {value!r}; it must be one of {', '.join(sorted(choices))}")
