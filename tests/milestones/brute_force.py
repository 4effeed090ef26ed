"""The measure as it is defined, written down as directly as possible: slow, and sharing nothing with the library.

Every function takes the milestones by name and works with fractions; each fixpoint is found by applying the
definition until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from arq_graph.milestones import Milestone

INFINITE = Fraction(10**30)


class Definition:
    def __init__(self, milestones: Iterable[Milestone]) -> None:
        self.milestones = {milestone.name: milestone for milestone in milestones}
        self.before = {
            name: list(dict.fromkeys(one.dependencies)) or ([] if name == "Start" else ["Start"])
            for name, one in self.milestones.items()
        }

    def requires_all(self, name: str) -> bool:
        return self.milestones[name].requires == "all"

    def step(self, name: str) -> Fraction:
        is_step = name != "Start" and self.milestones[name].type != "Aggregator"
        return Fraction(str(self.milestones[name].weight)) if is_step else Fraction(0)

    def reach(
        self, observed: Mapping[str, Iterable[int]], length: int, always: Iterable[str] = ()
    ) -> dict[str, int]:
        """Walks through the events one after the other."""
        seen = {name: set(events) for name, events in observed.items()}
        for name, one in self.milestones.items():
            if one.holds and seen.get(name):
                seen[name] = set(range(min(seen[name]), length + 1))
        seen |= {name: set(range(1, length + 1)) for name in always}
        times = {"Start": 0}
        for event in range(length + 1):
            while new := {
                name: at for name in self.before if (at := self._reached(name, event, seen, times)) >= 0
            }:
                times |= new
        return times

    def _reached(self, name: str, event: int, seen: Mapping[str, set[int]], times: Mapping[str, int]) -> int:
        """The event at which it is reached now; -1 if it is not, or was."""
        known = [times[one] for one in self.before[name] if one in times]
        every = self.requires_all(name)
        if name in times or not known or (every and len(known) < len(self.before[name])):
            return -1
        satisfied = max(known) if every else min(known)
        if name == "End" or self.milestones[name].type == "Aggregator":
            return satisfied
        return event if event in seen.get(name, ()) and event > satisfied else -1

    def need(self, reached: Iterable[str]) -> dict[str, Fraction]:
        done = set(reached)
        first = {name: Fraction(0) if name in done else INFINITE for name in self.before}
        return _least(
            first, lambda name, need: need[name] if name in done else self._need_of(name, need, done)
        )

    def _need_of(self, name: str, need: Mapping[str, Fraction], done: set[str]) -> Fraction:
        if not self.requires_all(name):
            return self.step(name) + min((need[one] for one in self.before[name]), default=INFINITE)
        missing = [need[one] for one in self.before[name] if one not in done]
        return self.step(name) + (max(missing) + len(missing) - 1 if missing else 0)

    def left(self, reached: Iterable[str]) -> dict[str, Fraction]:
        done = set(reached)
        need = self.need(done)

        def cost(name: str, dependent: str) -> Fraction:
            if dependent in done:
                return Fraction(0)
            return (
                self._need_of(dependent, need, done | {name})
                if self.requires_all(dependent)
                else self.step(dependent)
            )

        def ways(name: str, left: Mapping[str, Fraction]) -> Fraction:
            after = (one for one in self.before if name in self.before[one])
            return min((cost(name, one) + left[one] for one in after), default=INFINITE)

        return _least(dict.fromkeys(self.before, INFINITE) | {"End": Fraction(0)}, ways)

    def progress_rate(self, reached: Iterable[str]) -> Fraction:
        done = set(reached) | {"Start"}
        if "End" in done:
            return Fraction(1)
        depth, need, left = self.need({"Start"}), self.need(done), self.left(done)
        return max(
            (
                (depth[name] - need[name]) / (depth[name] + left[name])
                for name in self.before
                if max(depth[name], need[name], left[name]) < INFINITE / 2
            ),
            default=Fraction(0),
        )


def _least(
    values: dict[str, Fraction], rule: Callable[[str, Mapping[str, Fraction]], Fraction]
) -> dict[str, Fraction]:
    while lower := {name: new for name in values if (new := rule(name, values)) < values[name]}:
        values |= lower
    return values
