"""Which milestones were reached, and when: the least fixpoint, kept up to date as observations arrive."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush

from arq_graph.milestones.structure import NEVER, Structure, Whole


class Reaching:
    """The event at which each milestone was reached, given what was observed so far.

    A milestone is reached at the first event, strictly later than the one that satisfied its dependencies,
    at which it was observed; joins and End at the event that satisfied theirs; Start at event 0. Observations
    may arrive late (a call is known to be genuine only from its result): times only ever get earlier, and
    stand where they would if all observations had been known at once.

    Cost O(E log V + observations) for all that is known at the start and for all that arrives in order;
    O(E log V) at worst for one that arrives late.

    Args:
        structure: The graph.
        observed: The events at which each milestone, by number, was observed so far, in increasing order.
        now: The number of events so far.
        always: Milestones, by number, that are taken to be observed at every event.
    """

    def __init__(
        self,
        structure: Structure,
        observed: Mapping[int, Iterable[int]] | None = None,
        now: int = 0,
        always: Iterable[int] = (),
    ) -> None:
        size = len(structure.names)
        self.structure = structure
        self.now = now
        self.time: list[Whole] = [NEVER] * size
        self.satisfied: list[Whole] = [NEVER] * size
        self.observed = {number: list(events) for number, events in (observed or {}).items()}
        self._held: dict[int, Whole] = {
            number: events[0]
            for number, events in self.observed.items()
            if structure.holds[number] and events
        }
        self._held |= dict.fromkeys(always, 1)
        self._missing = [len(dependencies) for dependencies in structure.dependencies]
        self._told = bytearray(size)
        # States that hold and whose dependencies are satisfied: reached with the next event.
        self._waiting: list[int] = []
        self.time[structure.start] = 0
        self._spread([(0, structure.start)])

    def advance(self, now: int) -> None:
        """Another event happened: its number, from 1."""
        self.now = now
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            changed: list[tuple[Whole, int]] = []
            for number in waiting:
                self._settle(number, changed)
            self._spread(changed)

    def observe(self, number: int, event: int) -> None:
        """A milestone was observed at an event, this one or an earlier one."""
        structure = self.structure
        if structure.is_derived[number]:
            return
        seen = self.observed.get(number)
        if seen is None:
            self.observed[number] = [event]
        else:
            insort(seen, event)
        if structure.holds[number]:
            self._held[number] = min(self._held.get(number, NEVER), event)
        if self.satisfied[number] < event < self.time[number] or number in self._held:
            changed: list[tuple[Whole, int]] = []
            self._settle(number, changed)
            self._spread(changed)

    def reached(self) -> dict[str, int]:
        """The reached milestones and their events, in the order in which they were reached."""
        names = self.structure.names
        order = sorted((time, number) for number, time in enumerate(self.time) if time < NEVER)
        return {names[number]: int(time) for time, number in order}

    def _settle(self, number: int, changed: list[tuple[Whole, int]]) -> None:
        since = self.satisfied[number]
        if since == NEVER:
            return
        if self.structure.is_derived[number]:
            first: Whole = since
        elif number in self._held:
            first = max(self._held[number], since + 1)
            if first > self.now:
                self._waiting.append(number)
                return
        else:
            seen = self.observed.get(number, ())
            place = bisect_right(seen, since)
            if place == len(seen):
                return
            first = seen[place]
        if first < self.time[number]:
            self.time[number] = first
            heappush(changed, (first, number))

    def _spread(self, changed: list[tuple[Whole, int]]) -> None:
        structure = self.structure
        time = self.time
        while changed:
            event, number = heappop(changed)
            if event > time[number]:
                continue
            is_first = not self._told[number]
            self._told[number] = 1
            for dependent in structure.dependents[number]:
                since: Whole = event
                if structure.needs_all[dependent]:
                    if is_first:
                        self._missing[dependent] -= 1
                    if self._missing[dependent]:
                        continue
                    since = max(time[dependency] for dependency in structure.dependencies[dependent])
                if since < self.satisfied[dependent]:
                    self.satisfied[dependent] = since
                    self._settle(dependent, changed)


def needs_nothing(structure: Structure) -> bool:
    """Whether End follows from Start alone, so that there is nothing to do; computed once. Cost O(E log V)."""
    if structure.end_is_given is None:
        structure.end_is_given = Reaching(structure).time[structure.end] < NEVER
    return structure.end_is_given
