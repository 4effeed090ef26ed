"""A small house made of text, and six types of household tasks in it: the kind of world of ReSpAct (3.1).

A task is given by its type, the kind of thing that it is about and, but for `light`, the kind of place where that ends.
`layout` says what lies where. The same arguments make the same house.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from typing import Literal, get_args

from arq_graph.agent.environment import Observation
from arq_graph.errors import InputError, suggestion

Task = Literal["place", "light", "clean", "heat", "cool", "two"]

ROOMS = {
    "kitchen": "fridge 1, microwave 1, sink 1, stove 1, counter 1, counter 2, cabinet 1, cabinet 2, cabinet 3, bin 1",
    "living room": "sofa 1, low table 1, shelf 1, shelf 2, drawer 1, drawer 2",
    "bedroom": "bed 1, desk 1, wardrobe 1, side table 1",
}
PLACES = tuple(place for places in ROOMS.values() for place in places.split(", "))

THINGS = {
    "mug": ("cabinet", "counter", "shelf", "desk"),
    "plate": ("cabinet", "counter", "low table"),
    "spoon": ("drawer", "counter", "sink"),
    "potato": ("counter", "bin", "low table"),
    "tomato": ("counter", "fridge", "sink"),
    "egg": ("counter", "fridge", "cabinet"),
    "cloth": ("sink", "cabinet", "drawer"),
    "book": ("shelf", "bed", "desk", "sofa"),
    "pillow": ("bed", "wardrobe", "low table"),
    "pen": ("desk", "drawer", "shelf"),
    "key": ("side table", "wardrobe", "shelf"),
    "watch": ("side table", "drawer", "sofa"),
}
"""The kinds of things, and the kinds of places where each may lie."""

CLOSED = frozenset(("fridge", "microwave", "cabinet", "drawer", "wardrobe"))
"""The kinds of places that have a door, or are pulled out: closed at first."""

CHANGES = {"clean": ("sink", "clean"), "heat": ("microwave", "hot"), "cool": ("fridge", "cold")}
"""The actions that change a thing: where each can be done, and what the thing then is."""

LAMP = "lamp 1"


def kind_of(name: str) -> str:
    """What a thing or a place is: `mug` for `mug 2`."""
    return name.rpartition(" ")[0]


class Household:
    """One house with one task: an `Environment`.

    Actions: `go to PLACE`, `open PLACE`, `close PLACE`, `take THING from PLACE`, `put THING in PLACE` (`on` a surface),
    `clean`, `heat` or `cool THING in PLACE`, `use lamp 1`, `look`, `inventory`. One thing is held at a time, and what
    lies in a closed place is not seen. The task has ended as soon as it is done.

    Args:
        task: `place` a thing, or `two`; `clean`, `heat` or `cool` one and place it; look at one in the lamp's `light`.
        thing: The kind of thing, one of `THINGS`.
        target: The kind of place where it ends; empty for `light`.
        layout: What chance depends on.

    Attributes:
        done: Whether the task is done.
        score: None, as it is not shown how far one is.
        conditions: The share of what the task takes that is done: taken, changed, placed.
        where: The place of each thing that is not held, and of the lamp.

    Raises:
        InputError: There is no such task, thing or place.
    """

    def __init__(self, task: Task, thing: str, target: str = "", layout: int = 0) -> None:
        targets = ("",) if task == "light" else {kind_of(place): 1 for place in PLACES}
        fields = ("task", task, get_args(Task)), ("thing", thing, THINGS), ("target", target, targets)
        for name, given, known in fields:
            if given not in known:
                near, there = suggestion(given, known), ", ".join(map(repr, known))
                raise InputError(f"{name} is {given!r}{near}; it must be one of {there}")
        self.task, self.thing, self.target, self.layout = task, thing, target, layout
        self.score: float | None = None
        self.reset()

    def reset(self) -> str:
        """Begin anew; what lies where is the same each time."""
        chance = Random(f"{self.layout}/{self.task}/{self.thing}/{self.target}")
        self.where: dict[str, str] = {}
        for kind, usual in THINGS.items():
            count, elsewhere = chance.randint(0, 2), {self.target}
            if kind == self.thing:
                count = 2 if self.task == "two" else 1
                elsewhere.add(CHANGES.get(self.task, ("",))[0])
            may_lie = [each for each in PLACES if kind_of(each) in set(usual) - elsewhere]
            for number in range(1, count + 1):
                self.where[f"{kind} {number}"] = chance.choice(may_lie or PLACES)
        self._states: dict[str, set[str]] = {thing: set() for thing in self.where}
        self.where[LAMP] = chance.choice(["desk 1", "side table 1", "low table 1"])
        self._at, self._held = "", ""
        self._closed = {place for place in PLACES if kind_of(place) in CLOSED}
        self._measure()
        rooms = [f"In the {room} there are {places}." for room, places in ROOMS.items()]
        return " ".join(["You are in the hall of a small house.", *rooms])

    def actions(self) -> Sequence[str]:
        """The actions that are possible now; none once the task is done."""
        return () if self.done else tuple(self._possible())

    def step(self, action: str) -> Observation:
        """Take an action; one that is not possible now changes nothing."""
        if self.done or action not in (possible := self._possible()):
            return Observation("Nothing happens.", valid=False)
        shown = possible[action]()
        self._measure()
        return Observation(shown)

    def outcome(self) -> dict[str, float | bool]:
        """Whether the task is done, and the share of what it takes."""
        return {"success": self.done, "conditions": self.conditions}

    def _possible(self) -> dict[str, Callable[[], str]]:
        here, held, kind = self._at, self._held, kind_of(self._at)
        can: dict[str, Callable[[], str]] = {"look": self._look, "inventory": self._inventory}
        can |= {f"go to {place}": partial(self._go, place) for place in PLACES if place != here}
        if kind in CLOSED:
            can[f"{'open' if here in self._closed else 'close'} {here}"] = self._turn
        if here and here not in self._closed:
            things = [] if held else [thing for thing in self._seen() if thing != LAMP]
            can |= {f"take {thing} from {here}": partial(self._take, thing) for thing in things}
            if held:
                can[f"put {held} {_preposition(here)} {here}"] = self._put
        for verb, (place, state) in CHANGES.items():
            if held and kind == place:
                can[f"{verb} {held} in {here}"] = partial(self._change, verb, state)
        if here == self.where[LAMP]:
            can[f"use {LAMP}"] = self._use_lamp
        return can

    def _seen(self) -> list[str]:
        return [thing for thing, place in self.where.items() if place == self._at]

    def _look(self) -> str:
        if self._at in self._closed or not self._at:
            return f"You are at {self._at}. It is closed." if self._at else "You are in the hall."
        return f"{_preposition(self._at).capitalize()} {self._at} you see {', '.join(self._seen()) or 'nothing'}."

    def _inventory(self) -> str:
        how = ", ".join(sorted(self._states.get(self._held, set()) & {"clean", "hot", "cold"})) or "as it was"
        return f"You hold {self._held}, {how}." if self._held else "You hold nothing."

    def _go(self, place: str) -> str:
        self._at = place
        return self._look()

    def _turn(self) -> str:
        """Open what is closed, close what is open."""
        self._closed ^= {self._at}
        return f"You {'close' if self._at in self._closed else 'open'} {self._at}. {self._look()}"

    def _take(self, thing: str) -> str:
        self._held = thing
        self._states[thing].add("taken")
        return f"You take {thing} from {self.where.pop(thing)}."

    def _put(self) -> str:
        thing, self._held = self._held, ""
        self.where[thing] = self._at
        return f"You put {thing} {_preposition(self._at)} {self._at}."

    def _change(self, verb: str, state: str) -> str:
        undone = {"hot": {"cold"}, "cold": {"hot"}}.get(state, set())
        self._states[self._held] = self._states[self._held] - undone | {state}
        return f"You {verb} {self._held} in {self._at}. It is {state} now."

    def _use_lamp(self) -> str:
        if not self._held:
            return f"You switch {LAMP} on."
        self._states[self._held].add("lit")
        return f"You switch {LAMP} on, and look at {self._held} in its light."

    def _measure(self) -> None:
        """How much of the task is done; of the kind that it is about there are no more than it takes."""
        wanted = [thing for thing in self._states if kind_of(thing) == self.thing]
        met = [condition for thing in wanted for condition in self._conditions(thing)]
        self.conditions, self.done = sum(met) / len(met), all(met)

    def _conditions(self, thing: str) -> Iterator[bool]:
        yield "taken" in self._states[thing]
        if self.task in CHANGES:
            yield CHANGES[self.task][1] in self._states[thing]
        is_placed = kind_of(self.where.get(thing, "")) == self.target
        yield is_placed if self.target else "lit" in self._states[thing]


def _preposition(place: str) -> str:
    return "in" if kind_of(place) in {*CLOSED, "sink", "bin"} else "on"
