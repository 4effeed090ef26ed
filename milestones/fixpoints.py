"""The fixpoints of the measure, on a graph's arrays: which milestones are reached when, and how far it is to each.

The definitions make Pre-Act's progress rate exact (4.3: "the ratio of the distance covered to the total distance
from start to end") on graphs with alternatives, joins, weights and cycles.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from heapq import heappop, heappush
from math import inf, lcm, nextafter

from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import END, START

NEVER = inf
"""Larger than any event number and any distance: what is not reached, and what cannot be."""

# Event numbers and distances are whole numbers, or NEVER.
Whole = int | float


class Structure:
    """The milestones of a graph that has Start and End, by number, in the graph's order. Cost O(E log V).

    Distances are whole numbers of `unit`: exact, whatever the weights, so that progress never falls by a
    rounding and is 1 only at End. `depth` is need(x | {Start}); End is given where it follows from Start alone.
    """

    def __init__(self, graph: MilestoneGraph) -> None:
        self.names = list(graph)
        self.number = {name: number for number, name in enumerate(self.names)}
        self.start, self.end = self.number[START], self.number[END]
        self.needs_all = [milestone.requires == "all" for milestone in graph.milestones]
        self.is_derived = [milestone.is_derived for milestone in graph.milestones]
        self.holds = [milestone.holds for milestone in graph.milestones]
        self.dependencies = [
            tuple(map(self.number.__getitem__, graph.predecessors(name))) for name in self.names
        ]
        self.dependents = [tuple(map(self.number.__getitem__, graph.successors(name))) for name in self.names]
        # 0.1 is a tenth, not the binary number next to it.
        steps = [milestone.step for milestone in graph.milestones]
        exact = {step: Fraction(str(step)) for step in set(steps)}
        self.unit = lcm(*(weight.denominator for weight in exact.values()))
        whole = {step: int(weight * self.unit) for step, weight in exact.items()}
        self.step = [whole[step] for step in steps]
        self.depth = needs(self, {self.start})
        self.end_is_given = find_reach_events(self, {}, 0)[self.end] < NEVER


def find_reach_events(
    structure: Structure,
    observed: Mapping[int, Sequence[int]],
    now: int,
    always: Collection[int] = (),
) -> list[Whole]:
    """The event at which each milestone was reached, by number; `NEVER` for what was not. See `measure.reach`.

    Cost O(E log V + observations).
    """
    held = {number: events[0] for number, events in observed.items() if structure.holds[number]}
    held |= dict.fromkeys(always, 1)

    def reached(number: int, since: Whole) -> Whole:
        if structure.is_derived[number]:
            return since
        if number in held:
            first = max(held[number], since + 1)
            return first if first <= now else NEVER
        events = observed.get(number, ())
        place = bisect_right(events, since)
        return events[place] if place < len(events) else NEVER

    return _settled(structure, [structure.start], reached)


def needs(structure: Structure, reached: Collection[int]) -> list[Whole]:
    """need(x | R): what has to be done to reach each milestone, once those in R are reached.

    0 where x is in R. Otherwise step(x), 0 for joins and the weight for all others, plus the smallest need of
    its dependencies; or, where all are required, plus the largest need among those not in R and 1 for each
    further one not in R. The least fixpoint; `NEVER` where there is none (a cycle cannot reach itself).
    Cost O(E log V).
    """
    step, needs_all, dependencies = structure.step, structure.needs_all, structure.dependencies

    def needed(number: int, before: Whole) -> Whole:
        if not needs_all[number]:
            return step[number] + before
        missing = sum(dependency not in reached for dependency in dependencies[number])
        return step[number] + before + max(missing - 1, 0) * structure.unit

    return _settled(structure, reached, needed)


def is_avoidable(structure: Structure, number: int) -> bool:
    """Whether some road to End does not lead over this milestone. Cost O(E log V)."""
    values = _settled(structure, [structure.start], lambda each, before: NEVER if each == number else before)
    return values[structure.end] < NEVER


def _settled(
    structure: Structure, first: Collection[int], value_after: Callable[[int, Whole], Whole]
) -> list[Whole]:
    """The value of each milestone: 0 for the first ones, and `value_after` its dependencies' for all others.

    That of alternatives is the smallest, and where all are required it is the largest. As no value is below those that
    it comes from (the rule is superior in Knuth's sense), Dijkstra's order settles each milestone once.
    """
    values: list[Whole] = [NEVER] * len(structure.names)
    # How many dependencies have still to be settled: one of alternatives, or all.
    pairs = zip(structure.dependencies, structure.needs_all, strict=True)
    missing = [len(before) if needs_all else 1 for before, needs_all in pairs]
    heap: list[tuple[Whole, int]] = [(0, number) for number in sorted(first)]
    while heap:
        value, number = heappop(heap)
        if values[number] != NEVER:
            continue
        values[number] = value
        for dependent in structure.dependents[number]:
            missing[dependent] -= 1
            if missing[dependent] == 0 and (after := value_after(dependent, value)) < NEVER:
                heappush(heap, (after, dependent))
    return values


def left(structure: Structure, reached: Collection[int], need: list[Whole]) -> list[Whole]:
    """left(x | R): the way from each milestone to End, once those in R are reached.

    0 for End. Otherwise the minimum, over the w that depend on x, of cost(x, w) + left(w | R), where the cost
    is 0 if w is in R, step(w) for an alternative, and for a w that requires all its need with x counted as reached:
    each need(y | R) is taken as it stands under R alone. `NEVER` where no road leads to End. Cost O(E log V).
    """
    remaining: list[Whole] = [NEVER] * len(structure.names)
    remaining[structure.end] = 0
    heap: list[tuple[Whole, int]] = [(0, structure.end)]
    while heap:
        beyond, number = heappop(heap)
        if beyond > remaining[number]:
            continue
        dependencies = structure.dependencies[number]
        missing: list[Whole] = []
        if number not in reached:
            beyond += structure.step[number]
            if structure.needs_all[number]:
                missing = sorted(need[each] for each in dependencies if each not in reached)
        for dependency in dependencies:
            way = beyond
            if missing and (others := len(missing) - (dependency not in reached)):
                # The largest need among the others: one of the two largest may be the dependency's own.
                is_largest = dependency not in reached and need[dependency] == missing[-1]
                way += missing[-2 if is_largest else -1] + (others - 1) * structure.unit
            if way < remaining[dependency]:
                remaining[dependency] = way
                heappush(heap, (way, dependency))
    return remaining


def progress(structure: Structure, reached: Collection[int]) -> tuple[float, int]:
    """The progress rate, and the milestone on whose road it was made; see `measure.compute_progress_rate`."""
    if structure.end in reached:
        return 1.0, structure.end
    need = needs(structure, reached)
    remaining = left(structure, reached, need)
    rate, best = 0.0, structure.start
    for number, depth in enumerate(structure.depth):
        if depth < NEVER and remaining[number] < NEVER and need[number] < depth:
            here = (depth - need[number]) / (depth + remaining[number])
            if here > rate:
                rate, best = here, number
    # Only End has a rate of 1: a long way with a tiny rest must not be rounded up to it.
    return min(rate, nextafter(1.0, 0.0)), best
