"""A small house made of text, and six types of household tasks in it: the kind of world of ReSpAct (3.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from random import Random
from typing import Literal

from arq_graph.agent.environment import Observation
from arq_graph.errors import InputError, checked

Task = Literal["place", "light", "clean", "heat", "cool", "two"]

_KITCHEN = (
    "fridge 1, microwave 1, sink 1, stove 1, counter 1, counter 2, cabinet 1, cabinet 2, cabinet 3, bin 1"
)
_REST = "sofa 1, low table 1, shelf 1, shelf 2, drawer 1, drawer 2, bed 1, desk 1, wardrobe 1, side table 1"
PLACES = tuple(f"{_KITCHEN}, {_REST}".split(", "))

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

CLOSED = ("fridge", "microwave", "cabinet", "drawer", "wardrobe", "safe")
CHANGES = {"clean": ("sink", "clean"), "heat": ("microwave", "hot"), "cool": ("fridge", "cold")}
"""The actions that change a thing: where each can be done, and what the thing then is."""
LAMP = "lamp 1"
House = Mapping[str, Sequence[str]]
"""The places of a house, each with what lies there."""


def kind_of(name: str) -> str:
    """What a thing or a place is: `mug` for `mug 2`."""
    return name.rpartition(" ")[0]


class Household:
    """One house with one task: an `Environment`.

    Actions: `go to PLACE`, `open PLACE`, `close PLACE`, `take THING from PLACE`, `put THING in PLACE` (`on` a surface),
    `clean`, `heat` or `cool THING in PLACE`, `use lamp 1`, `look`, `inventory`. One thing is held at a time. Those of
    `CLOSED` are closed at first, and what lies in them is not seen. The task ends as soon as it is done.

    Args:
        task: `place` a thing, or `two`; `clean`, `heat` or `cool` one and place it; look at one in the lamp's `light`.
        thing: The kind of thing, one of `THINGS`.
        target: The kind of place where it ends; empty for `light`.
        layout: What chance depends on; the same arguments make the same house.
        house: A house of your own, in place of one that is laid out by chance.

    Attributes:
        done: Whether the task is done.
        score: None, as it is not shown how far one is.
        conditions: The share of what the task takes that is done: taken, changed, placed.
        where: The place of each thing that is not held, and of the lamp.

    Raises:
        InputError: There is no such task, thing or place.
    """

    def __init__(
        self, task: Task, thing: str, target: str = "", layout: int = 0, house: House | None = None
    ) -> None:
        self.house = house or _laid_out(task, thing, target, layout)
        things = {kind_of(each) for lying in self.house.values() for each in lying}
        targets = {""} if task == "light" else set(map(kind_of, self.house))
        checked("task", task, Task)
        for name, given, there in (("thing", thing, things), ("target", target, targets)):
            if given not in there:
                raise InputError(f"{name} is {given!r}; it must be one of {', '.join(sorted(there))}")
        self.task, self.thing, self.target = task, thing, target
        self.score: float | None = None
        self.reset()

    def reset(self) -> str:
        """Begin anew; what lies where is the same each time."""
        self.where = {thing: place for place, things in self.house.items() for thing in things}
        self._states: dict[str, set[str]] = {thing: set() for thing in self.where if thing != LAMP}
        self._closed = {place for place in self.house if kind_of(place) in CLOSED}
        self._at, self._held = "", ""
        self._measure()
        return f"You are in the middle of a small house. Around you there are {', '.join(self.house)}."

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
        self._at = at or self._at
        if self._at in self._closed or not self._at:
            return (
                f"You are at {self._at}. It is closed." if self._at else "You are in the middle of the house."
            )
        return (
            f"{preposition(self._at).capitalize()} {self._at} you see {', '.join(self._seen()) or 'nothing'}."
        )

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
        undone = {"hot": {"cold"}, "cold": {"hot"}}.get(state, set())
        self._states[self._held] = self._states[self._held] - undone | {state}
        return f"You {verb} {self._held} in {self._at}. It is {state} now."

    def _use_lamp(self) -> str:
        self._states.get(self._held, set()).add("lit")
        return f"You switch {LAMP} on{f', and look at {self._held} in its light' if self._held else ''}."

    def _measure(self) -> None:
        wanted = [list(self._conditions(thing)) for thing in self._states if kind_of(thing) == self.thing]
        furthest = sorted(wanted, key=sum)[-2 if self.task == "two" else -1 :]
        met = [condition for conditions in furthest for condition in conditions]
        self.conditions, self.done = sum(met) / len(met), all(met)

    def _conditions(self, thing: str) -> Iterator[bool]:
        yield "taken" in self._states[thing]
        if self.task in CHANGES:
            yield CHANGES[self.task][1] in self._states[thing]
        is_placed = kind_of(self.where.get(thing, "")) == self.target
        yield is_placed if self.target else "lit" in self._states[thing]


def preposition(place: str) -> str:
    """How a thing lies there: `in` a drawer, `on` a desk."""
    return "in" if kind_of(place) in {*CLOSED, "sink", "bin"} else "on"


def _laid_out(task: Task, thing: str, target: str, layout: int) -> House:
    """The house with things by chance, none of those that the task is about where it ends or is changed."""
    chance = Random(f"{layout}/{task}/{thing}/{target}")
    house: dict[str, list[str]] = {place: [] for place in PLACES}
    for kind, usual in THINGS.items():
        count, elsewhere = chance.randint(0, 2), {target}
        if kind == thing:
            count = 2 if task == "two" else 1
            elsewhere.add(CHANGES.get(task, ("",))[0])
        may_lie = [each for each in PLACES if kind_of(each) in set(usual) - elsewhere]
        for number in range(1, count + 1):
            house[chance.choice(may_lie or PLACES)].append(f"{kind} {number}")
    house[chance.choice(["desk 1", "side table 1", "low table 1"])].append(LAMP)
    return house
