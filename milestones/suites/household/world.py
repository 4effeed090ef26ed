"""A small house made of text, and six types of household tasks in it: the kind of world of ReSpAct (3.1)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Literal, get_args

from arq_graph.agent.environment import Observation
from arq_graph.errors import InputError

HOUSES = Path(__file__).with_name("houses.json")
"""The houses by name: their places, each with what lies there when a task begins."""

Task = Literal["place", "light", "clean", "heat", "cool", "two"]
CLOSED = ("fridge", "microwave", "cabinet", "drawer", "wardrobe", "safe")
CHANGES = {"clean": ("sink", "clean"), "heat": ("microwave", "hot"), "cool": ("fridge", "cold")}
"""The actions that change a thing: where each can be done, and what the thing then is."""
LAMP = "lamp 1"


def kind_of(name: str) -> str:
    """What a thing or a place is: `mug` for `mug 2`."""
    return name.rpartition(" ")[0]


def preposition(place: str) -> str:
    """How a thing lies there: `in` a drawer, `on` a desk."""
    return "in" if kind_of(place) in {*CLOSED, "sink", "bin"} else "on"


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
        done: Whether the task is done.
        score: None, as it is not shown how far one is.
        where: The place of each thing that is not held, and of the lamp.

    Raises:
        InputError: There is no such task, house, thing or place.
    """

    score: float | None = None

    def __init__(self, task: Task, thing: str, target: str = "", house: str = "cottage") -> None:
        self.house = _houses().get(house, {})
        self._count = 2 if task == "two" else 1
        kinds = Counter(kind_of(each) for lying in self.house.values() for each in lying if each != LAMP)
        checks: list[tuple[str, str, Iterable[str]]] = [
            ("task", task, get_args(Task)),
            ("house", house, _houses()),
            ("thing", thing, [kind for kind, count in kinds.items() if count >= self._count]),
            ("target", target, [""] if task == "light" else {kind_of(place) for place in self.house}),
        ]
        for name, given, choices in checks:
            if given not in choices:
                raise InputError(f"{name} is {given!r}; it must be one of {', '.join(sorted(choices))}")
        self.task, self.thing, self.target = task, thing, target
        self.reset()

    def reset(self) -> str:
        """Begin anew; what lies where is the same each time."""
        self.where = {thing: place for place, things in self.house.items() for thing in things}
        self._states: dict[str, set[str]] = {thing: set() for thing in self.where if thing != LAMP}
        self._closed = {place for place in self.house if kind_of(place) in CLOSED}
        self._at, self._held, self.done = "", "", False
        return f"You are in the middle of a small house. Around you there are {', '.join(self.house)}."

    def actions(self) -> Sequence[str]:
        """The actions that are possible now; none once the task is done."""
        return () if self.done else tuple(self._possible())

    def step(self, action: str) -> Observation:
        """Take an action; one that is not possible now changes nothing."""
        if self.done or action not in (possible := self._possible()):
            return Observation("Nothing happens.", valid=False)
        shown = possible[action]()
        self.done = self._is_done()
        return Observation(shown)

    def outcome(self) -> dict[str, bool]:
        """`success`: whether the task is done."""
        return {"success": self.done}

    def _possible(self) -> dict[str, Callable[[], str]]:
        here, held, kind = self._at, self._held, kind_of(self._at)
        can: dict[str, Callable[[], str]] = {"look": self._look, "inventory": self._inventory}
        can |= {f"go to {place}": partial(self._look, place) for place in self.house if place != here}
        if kind in CLOSED:
            can[f"{'open' if here in self._closed else 'close'} {here}"] = self._turn
        if here and here not in self._closed:
            things = [] if held else [thing for thing in self._seen() if thing != LAMP]
            can |= {f"take {thing} from {here}": partial(self._take, thing) for thing in things}
            if held:
                can[f"put {held} {preposition(here)} {here}"] = self._put
        for verb, (place, state) in CHANGES.items():
            if held and kind == place:
                can[f"{verb} {held} in {here}"] = partial(self._change, verb, state)
        if here and here == self.where.get(LAMP):
            can[f"use {LAMP}"] = self._use_lamp
        return can

    def _seen(self) -> list[str]:
        return [thing for thing, place in self.where.items() if place == self._at]

    def _look(self, at: str = "") -> str:
        self._at = at = at or self._at
        if not at:
            return "You are in the middle of the house."
        if at in self._closed:
            return f"You are at {at}. It is closed."
        return f"{preposition(at).capitalize()} {at} you see {', '.join(self._seen()) or 'nothing'}."

    def _inventory(self) -> str:
        return f"You hold {self._held or 'nothing'}."

    def _turn(self) -> str:
        self._closed ^= {self._at}
        return f"You {'close' if self._at in self._closed else 'open'} {self._at}. {self._look()}"

    def _take(self, thing: str) -> str:
        self._held = thing
        self._states[thing].add("taken")
        return f"You take {thing} from {self.where.pop(thing)}."

    def _put(self) -> str:
        thing, self._held = self._held, ""
        self.where[thing] = self._at
        return f"You put {thing} {preposition(self._at)} {self._at}."

    def _change(self, verb: str, state: str) -> str:
        opposite = {"hot": "cold", "cold": "hot"}.get(state, "")
        self._states[self._held].discard(opposite)
        self._states[self._held].add(state)
        return f"You {verb} {self._held} in {self._at}. It is {state} now."

    def _use_lamp(self) -> str:
        if not self._held:
            return f"You switch {LAMP} on."
        self._states[self._held].add("lit")
        return f"You switch {LAMP} on, and look at {self._held} in its light."

    def _is_done(self) -> bool:
        """Whether as many things as the task takes were changed as it says, and lie where they belong."""
        state = CHANGES[self.task][1] if self.task in CHANGES else "taken" if self.target else "lit"
        ready = [
            each for each, states in self._states.items() if kind_of(each) == self.thing and state in states
        ]
        if self.target:
            ready = [each for each in ready if kind_of(self.where.get(each, "")) == self.target]
        return len(ready) >= self._count


@cache
def _houses() -> dict[str, Mapping[str, Sequence[str]]]:
    found: dict[str, Mapping[str, Sequence[str]]] = json.loads(HOUSES.read_text(encoding="utf-8"))
    return found
