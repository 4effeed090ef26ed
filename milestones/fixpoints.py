"""The fixpoints of the measure, on a graph's arrays: which milestones are reached when, and how far it is to each.

The definitions make Pre-Act's progress rate exact (4.3: "the ratio of the distance covered to the total distance
from start to end") on graphs with alternatives, joins, weights and cycles.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from heapq import heappop, heappush
from math import inf, lcm, nextafter

from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import END, START

NEVER = inf
"""Larger than any event number and any distance: not reached, or out of reach."""

_MAX_PROGRESS = 64
"""So many sets of reached milestones have their progress kept: conversations on one graph mostly share a few."""

# Event numbers and distances are whole numbers, or NEVER.
Whole = int | float


class IndexedGraph:
    """The milestones of a graph that has Start and End, as arrays in the graph's order. Cost O(E log V).

    A milestone is known by its number, which is its index in every array. Distances are whole numbers of `unit`:
    exact, whatever the weights, so that progress never falls by a rounding and is 1 only at End. `lengths` are those of
    what has to be done, `optional_lengths` those of what may be skipped; the one is 0 where the other isn't. `depths`
    is need(x | {Start}). `end_needs_nothing` is true if End follows from Start alone.
    """

    def __init__(self, graph: MilestoneGraph) -> None:
        self.names = list(graph)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.start = self.numbers[START]
        self.end = self.numbers[END]
        self.requires_all = [milestone.requires == "all" for milestone in graph.milestones]
        self.is_derived = [milestone.is_derived for milestone in graph.milestones]
        self.holds = [milestone.holds for milestone in graph.milestones]
        self.may_share_event = [milestone.may_share_event for milestone in graph.milestones]
        self.dependencies = [self._number_all(graph.predecessors(name)) for name in self.names]
        self.dependents = [self._number_all(graph.successors(name)) for name in self.names]
        lengths = [milestone.length for milestone in graph.milestones]
        self.unit, self.lengths = _count_in_whole_units(lengths)
        self.optional_lengths: dict[int, int] = {}
        for number, milestone in enumerate(graph.milestones):
            if milestone.optional:
                self.optional_lengths[number] = self.lengths[number]
                self.lengths[number] = 0
        # How many dependencies each waits for: one of alternatives, or all.
        self.needed_counts = [1] * len(self.names)
        for number, dependencies in enumerate(self.dependencies):
            if self.requires_all[number]:
                self.needed_counts[number] = len(dependencies)
        self.compute_progress = lru_cache(maxsize=_MAX_PROGRESS)(partial(_compute_progress, self))
        self.depths = compute_needs(self, {self.start})
        self.end_needs_nothing = find_reach_events(self, {}, 0)[self.end] < NEVER

    def _number_all(self, names: Iterable[str]) -> tuple[int, ...]:
        return tuple(map(self.numbers.__getitem__, names))


def _count_in_whole_units(lengths: Sequence[float]) -> tuple[int, list[int]]:
    """Return a unit and the lengths in it: how many units are 1, and how many each length is."""
    if all(isinstance(length, int) for length in lengths):
        return 1, [int(length) for length in lengths]
    # 0.1 is a tenth, not the binary number next to it.
    fractions = [Fraction(str(length)) for length in lengths]
    unit = lcm(*[fraction.denominator for fraction in fractions])
    return unit, [int(fraction * unit) for fraction in fractions]


def find_reach_events(
    graph: IndexedGraph,
    observed: Mapping[int, Sequence[int]],
    last_event: int,
    always_observed: Collection[int] = (),
) -> list[Whole]:
    """Return the event at which each milestone was reached, `NEVER` for those that weren't; see `measure.reach`.

    Cost O(E log V + observations).

    Args:
        graph: The milestones.
        observed: The numbers of the events at which each milestone was observed, increasing and never empty.
        last_event: The number of the last event.
        always_observed: Milestones that count as observed at every event.
    """
    holds_from = {number: events[0] for number, events in observed.items() if graph.holds[number]}
    holds_from |= dict.fromkeys(always_observed, 1)

    def find_event(number: int, satisfied_at: Whole) -> Whole:
        if number in holds_from:
            earliest = satisfied_at if graph.may_share_event[number] else satisfied_at + 1
            event = max(holds_from[number], earliest)
            return event if event <= last_event else NEVER
        events = observed.get(number, ())
        position = bisect_right(events, satisfied_at)
        return events[position] if position < len(events) else NEVER

    def find_passing_event(number: int, satisfied_at: Whole) -> Whole:
        passes_at_once = graph.is_derived[number] or number in graph.optional_lengths
        return satisfied_at if passes_at_once else find_event(number, satisfied_at)

    reach_events = _solve_least_fixpoint(graph, [graph.start], find_passing_event)
    for number in graph.optional_lengths:
        reach_events[number] = find_event(number, reach_events[number])
    return reach_events


def find_passing_events(graph: IndexedGraph, reached: Mapping[int, Whole]) -> list[Whole]:
    """Return the event from which each milestone lets its dependents be reached, `NEVER` for those that don't.

    It is the event that reached it, and for an optional one the event that satisfied its dependencies.
    Cost O(E log V).
    """

    def find_event(number: int, satisfied_at: Whole) -> Whole:
        return satisfied_at if number in graph.optional_lengths else reached.get(number, NEVER)

    return _solve_least_fixpoint(graph, [graph.start], find_event)


def compute_needs(
    graph: IndexedGraph, reached: Collection[int], not_skipped: Collection[int] = ()
) -> list[Whole]:
    """Return need(x | R) of each milestone: the distance still to go to pass it, once those in R are reached.

    0 where x is in R. Otherwise length(x), 0 for joins and optional ones and the weight for all others, plus the
    smallest need of its dependencies; or, where all are required, plus the largest need among those that are missing
    and 1 for each further one. Missing are those not in R, except optional ones of need 0. The least fixpoint; `NEVER`
    where there is none (a cycle cannot reach itself). Cost O(E log V).

    Args:
        graph: The milestones.
        reached: The set R.
        not_skipped: Optional milestones whose length is their weight.
    """
    lengths, requires_all, dependencies = graph.lengths, graph.requires_all, graph.dependencies
    if not_skipped:
        lengths = lengths.copy()
        for number in not_skipped:
            lengths[number] = graph.optional_lengths[number]
    passed = set(reached)

    def compute_need(number: int, need_of_dependency: Whole) -> Whole:
        need = lengths[number] + need_of_dependency
        if requires_all[number]:
            missing = set(dependencies[number]).difference(passed)
            need += max(len(missing) - 1, 0) * graph.unit
        if need == 0 and number in graph.optional_lengths:
            passed.add(number)
        return need

    return _solve_least_fixpoint(graph, reached, compute_need)


def is_avoidable(graph: IndexedGraph, number: int) -> bool:
    """Return whether some road to End doesn't lead over this milestone. Cost O(E log V)."""
    if number in graph.optional_lengths:
        return True

    def block(other: int, distance: Whole) -> Whole:
        return NEVER if other == number else distance

    return _solve_least_fixpoint(graph, [graph.start], block)[graph.end] < NEVER


def _solve_least_fixpoint(
    graph: IndexedGraph, sources: Collection[int], value_after: Callable[[int, Whole], Whole]
) -> list[Whole]:
    """Return the value of each milestone: 0 for the sources, and `value_after` its dependencies' for all others.

    That of alternatives is the smallest, and where all are required it is the largest. As no value is below those that
    it comes from (the rule is superior in Knuth's sense), Dijkstra's order settles each milestone once.
    """
    values: list[Whole] = [NEVER] * len(graph.names)
    unsettled = graph.needed_counts.copy()
    heap: list[tuple[Whole, int]] = [(0, number) for number in sorted(sources)]
    while heap:
        value, number = heappop(heap)
        if values[number] != NEVER:
            continue
        values[number] = value
        for dependent in graph.dependents[number]:
            unsettled[dependent] -= 1
            if unsettled[dependent] != 0:
                continue
            dependent_value = value_after(dependent, value)
            if dependent_value < NEVER:
                heappush(heap, (dependent_value, dependent))
    return values


def compute_left(graph: IndexedGraph, reached: Collection[int], needs: list[Whole]) -> list[Whole]:
    """Return left(x | R) of each milestone: the distance from it to End, once those in R are reached.

    0 for End. Otherwise the minimum, over the w that depend on x, of cost(x, w) + left(w | R), where the cost
    is 0 if w is in R, length(w) for an alternative, and for a w that requires all its need with x counted as reached:
    each need(y | R) is taken as it stands under R alone. `NEVER` where no road leads to End. Cost O(E log V).
    """
    left: list[Whole] = [NEVER] * len(graph.names)
    left[graph.end] = 0
    heap: list[tuple[Whole, int]] = [(0, graph.end)]
    while heap:
        distance, number = heappop(heap)
        if distance > left[number]:
            continue
        costs = _compute_costs(graph, number, reached, needs)
        for dependency, cost in zip(graph.dependencies[number], costs, strict=True):
            if distance + cost < left[dependency]:
                left[dependency] = distance + cost
                heappush(heap, (distance + cost, dependency))
    return left


def _compute_costs(
    graph: IndexedGraph, number: int, reached: Collection[int], needs: list[Whole]
) -> Sequence[Whole]:
    """Return cost(x, w) for each dependency x of a milestone w."""
    dependencies = graph.dependencies[number]
    if number in reached:
        return [0] * len(dependencies)
    length = graph.lengths[number]
    if not graph.requires_all[number]:
        return [length] * len(dependencies)
    missing = set(dependencies).difference(reached)
    if graph.optional_lengths:
        missing.difference_update(
            [other for other in missing & graph.optional_lengths.keys() if needs[other] == 0]
        )
    missing_needs = sorted(needs[dependency] for dependency in missing)
    costs: list[Whole] = []
    for dependency in dependencies:
        is_missing = dependency in missing
        others = len(missing_needs) - is_missing
        cost: Whole = length
        if others > 0:
            own_need_is_largest = is_missing and needs[dependency] == missing_needs[-1]
            largest = missing_needs[-2] if own_need_is_largest else missing_needs[-1]
            cost += largest + (others - 1) * graph.unit
        costs.append(cost)
    return costs


def compute_progress(graph: IndexedGraph, reached: Collection[int]) -> tuple[float, int]:
    """Return the progress rate and the milestone at which it has its maximum; see `measure.compute_progress_rate`."""
    return graph.compute_progress(frozenset(reached))


def _compute_progress(graph: IndexedGraph, reached: frozenset[int]) -> tuple[float, int]:
    if graph.end in reached:
        return 1.0, graph.end
    needs = compute_needs(graph, reached)
    left = compute_left(graph, reached, needs)
    depths = graph.depths
    if not_skipped := graph.optional_lengths.keys() & reached:
        depths = compute_needs(graph, {graph.start}, not_skipped)
    best_rate, best_number = 0.0, graph.start
    for number, depth in enumerate(depths):
        is_finite = depth < NEVER and left[number] < NEVER
        if is_finite and needs[number] < depth:
            rate = (depth - needs[number]) / (depth + left[number])
            if rate > best_rate:
                best_rate, best_number = rate, number
    # Only End has a rate of 1: a long way with a tiny rest must not be rounded up to it.
    return min(best_rate, nextafter(1.0, 0.0)), best_number
