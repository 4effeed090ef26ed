"""The measure as it is defined, written down as directly as possible: slow, and sharing nothing with the library.

Every function takes the milestones by name and works with fractions; each fixpoint is found by applying the
definition until nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from arq_graph.milestones import Milestone

INFINITE = Fraction(10**30)


class Definition:
    def __init__(self, milestones: Iterable[Milestone]) -> None:
        self.milestones = {milestone.name: milestone for milestone in milestones}
        self.names = list(self.milestones)

    def dependencies(self, name: str) -> list[str]:
        listed = list(dict.fromkeys(self.milestones[name].dependencies))
        return listed or ([] if name == "Start" else ["Start"])

    def requires_all(self, name: str) -> bool:
        return self.milestones[name].requires == "all"

    def step(self, name: str) -> Fraction:
        if name == "Start" or self.milestones[name].type == "Aggregator":
            return Fraction(0)
        return Fraction(str(self.milestones[name].weight))

    def reach(
        self, observed: Mapping[str, Iterable[int]], length: int, always: Iterable[str] = ()
    ) -> dict[str, int]:
        """Walks through the events one after the other."""
        seen = {name: set(events) for name, events in observed.items()}
        for name in self.names:
            if self.milestones[name].holds and seen.get(name):
                seen[name] = set(range(min(seen[name]), length + 1))
        for name in always:
            seen[name] = set(range(1, length + 1))
        times = {"Start": 0}
        for event in range(length + 1):
            changed = True
            while changed:
                changed = False
                for name in self.names:
                    if name in times:
                        continue
                    known = [times[one] for one in self.dependencies(name) if one in times]
                    every = self.requires_all(name)
                    if not known or (every and len(known) < len(self.dependencies(name))):
                        continue
                    satisfied = max(known) if every else min(known)
                    derived = name == "End" or self.milestones[name].type == "Aggregator"
                    if derived or (event in seen.get(name, ()) and event > satisfied):
                        times[name] = satisfied if derived else event
                        changed = True
        return times

    def need(self, reached: Iterable[str]) -> dict[str, Fraction]:
        done = set(reached)
        need = {name: Fraction(0) if name in done else INFINITE for name in self.names}
        changed = True
        while changed:
            changed = False
            for name in self.names:
                if name in done:
                    continue
                value = self._need_of(name, need, done)
                if value < need[name]:
                    need[name] = value
                    changed = True
        return need

    def _need_of(self, name: str, need: Mapping[str, Fraction], done: set[str]) -> Fraction:
        dependencies = self.dependencies(name)
        if not self.requires_all(name):
            return self.step(name) + min((need[one] for one in dependencies), default=INFINITE)
        missing = [need[one] for one in dependencies if one not in done]
        return self.step(name) + (max(missing) + len(missing) - 1 if missing else 0)

    def left(self, reached: Iterable[str]) -> dict[str, Fraction]:
        done = set(reached)
        need = self.need(done)
        left = dict.fromkeys(self.names, INFINITE)
        left["End"] = Fraction(0)
        changed = True
        while changed:
            changed = False
            for dependent in self.names:
                for name in self.dependencies(dependent):
                    if dependent in done:
                        cost = Fraction(0)
                    elif self.requires_all(dependent):
                        cost = self._need_of(dependent, need, done | {name})
                    else:
                        cost = self.step(dependent)
                    if cost + left[dependent] < left[name]:
                        left[name] = cost + left[dependent]
                        changed = True
        return left

    def progress_rate(self, reached: Iterable[str]) -> Fraction:
        done = set(reached) | {"Start"}
        if "End" in done:
            return Fraction(1)
        depth = self.need({"Start"})
        need = self.need(done)
        left = self.left(done)
        return max(
            (
                (depth[name] - need[name]) / (depth[name] + left[name])
                for name in self.names
                if max(depth[name], need[name], left[name]) < INFINITE / 2
            ),
            default=Fraction(0),
        )
