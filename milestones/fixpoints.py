"""The fixpoints of the measure, on a graph's arrays: which milestones are reached when, and how far it is to each.

The definitions make Pre-Act's progress rate exact (4.3: "the ratio of the distance covered to the total distance
from start to end") on graphs with alternatives, joins, weights and cycles.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from heapq import heapify, heappop, heappush
from math import inf, lcm, nextafter
from types import MappingProxyType

from arq_graph.errors import InputError, SpecError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import END, START

NEVER = inf
"""Larger than any event number and any distance: what is not reached, and what cannot be."""

# Event numbers and distances are whole numbers, or NEVER.
Whole = int | float

_BELOW_ONE = nextafter(1.0, 0.0)


class Structure:
    """The milestones by number, in the graph's order.

    Distances are whole numbers of `unit`: exact, whatever the weights, so that progress never falls by a
    rounding and is 1 only at End.
    """

    def __init__(self, graph: MilestoneGraph) -> None:
        for name in (START, END):
            if name not in graph:
                raise SpecError(f"there is no milestone named {name!r}; add it", file=graph.file)
        self.names: list[str] = list(graph)
        self.number = {name: number for number, name in enumerate(self.names)}
        self.start = self.number[START]
        self.end = self.number[END]
        self.needs_all = [milestone.requires == "all" for milestone in graph.milestones]
        self.is_derived = [milestone.is_derived for milestone in graph.milestones]
        self.holds = [milestone.holds for milestone in graph.milestones]
        self.dependencies: list[tuple[int, ...]] = [
            tuple(self.number[before] for before in graph.pred[name]) or (self.start,)
            if name != START
            else ()
            for name in self.names
        ]
        self.dependents: list[list[int]] = [[] for _ in self.names]
        for number, before in enumerate(self.dependencies):
            for dependency in before:
                self.dependents[dependency].append(number)
        weights = [_exact(milestone.step) for milestone in graph.milestones]
        self.unit = lcm(*{weight.denominator for weight in weights})
        self.step = [weight.numerator * (self.unit // weight.denominator) for weight in weights]
        # What follows from the graph alone, filled in when it is first asked for.
        self.depth: list[Whole] = []
        self.end_is_given: bool | None = None
        self.is_sound = False

    @classmethod
    def of(cls, graph: MilestoneGraph) -> Structure:
        """The graph's structure, made once. Cost O(V + E)."""
        known: Structure | None = graph.__dict__.get("_structure")
        if known is None:
            known = graph.__dict__["_structure"] = cls(graph)
        return known

    def numbers(self, names: Iterable[str]) -> set[int]:
        """The numbers of these milestones; Start is always among them."""
        try:
            found = {self.number[name] for name in names}
        except KeyError as unknown:
            raise InputError(
                f"{unknown.args[0]!r} is no milestone of this graph; it has {len(self.names)}, "
                f"such as {', '.join(map(repr, self.names[:4]))}"
            ) from None
        found.add(self.start)
        return found


@lru_cache(maxsize=1024)
def _exact(weight: float) -> Fraction:
    return Fraction(str(weight))  # 0.1 is a tenth, not the binary number next to it


def reached_at(
    structure: Structure,
    observed: Mapping[int, Sequence[int]] = MappingProxyType({}),
    now: int = 0,
    always: Collection[int] = (),
) -> list[Whole]:
    """The event at which each milestone was reached, by number; `NEVER` for what was not. See `measure.reach`.

    Milestones are settled in the order of their events, so each looks at its dependencies once.
    Cost O(E log V + observations).
    """
    held = {number: events[0] for number, events in observed.items() if structure.holds[number] and events}
    held |= dict.fromkeys(always, 1)
    time: list[Whole] = [NEVER] * len(structure.names)
    # How many dependencies have still to be reached: one of alternatives, or all.
    pairs = zip(structure.dependencies, structure.needs_all, strict=True)
    missing = [len(before) if needs_all else 1 for before, needs_all in pairs]
    heap: list[tuple[Whole, int]] = [(0, structure.start)]
    while heap:
        since, number = heappop(heap)
        if time[number] != NEVER:
            continue
        time[number] = since
        for dependent in structure.dependents[number]:
            missing[dependent] -= 1
            if missing[dependent]:
                continue
            if structure.is_derived[dependent]:
                heappush(heap, (since, dependent))
            elif dependent in held:
                first = max(held[dependent], since + 1)
                if first <= now:
                    heappush(heap, (first, dependent))
            else:
                events = observed.get(dependent, ())
                place = bisect_right(events, since)
                if place < len(events):
                    heappush(heap, (events[place], dependent))
    return time


def end_is_given(structure: Structure) -> bool:
    """Whether End follows from Start alone, so that there is nothing to do; computed once. Cost O(E log V)."""
    if structure.end_is_given is None:
        structure.end_is_given = reached_at(structure)[structure.end] < NEVER
    return structure.end_is_given


def needs(structure: Structure, reached: Collection[int]) -> list[Whole]:
    """need(x | R): what has to be done to reach each milestone, once those in R are reached.

    0 where x is in R. Otherwise step(x), 0 for joins and the weight for all others, plus the smallest need of
    its dependencies; or, where all are required, plus the largest need among those not in R and 1 for each
    further one not in R. The least fixpoint; `NEVER` where there is none (a cycle cannot reach itself).

    The rule is superior in Knuth's sense (a milestone needs at least what each dependency counted needs), so
    Dijkstra's order settles each milestone once. Cost O(E log V).
    """
    need: list[Whole] = [NEVER] * len(structure.names)
    open_ = _not_in(structure, reached)
    for number in reached:
        need[number] = 0
    step, needs_all = structure.step, structure.needs_all
    # Where all are required: how many are not in R, and how many of these are not settled yet.
    open_count: dict[int, int] = {}
    unsettled: dict[int, int] = {}
    heap: list[tuple[Whole, int]] = []
    for number, dependencies in enumerate(structure.dependencies):
        if not open_[number]:
            continue
        if needs_all[number]:
            count = sum(open_[dependency] for dependency in dependencies)
            open_count[number] = unsettled[number] = count
            if not count:
                heap.append((step[number], number))
        elif not all(open_[dependency] for dependency in dependencies):
            heap.append((step[number], number))
    heapify(heap)
    while heap:
        cost, number = heappop(heap)
        if need[number] != NEVER:
            continue
        need[number] = cost
        for dependent in structure.dependents[number]:
            if need[dependent] != NEVER:
                continue
            further = 0
            if needs_all[dependent]:
                unsettled[dependent] -= 1
                if unsettled[dependent]:
                    continue
                further = (open_count[dependent] - 1) * structure.unit
            heappush(heap, (step[dependent] + cost + further, dependent))
    return need


def left(structure: Structure, reached: Collection[int], need: list[Whole]) -> list[Whole]:
    """left(x | R): the way from each milestone to End, once those in R are reached.

    0 for End. Otherwise the minimum, over the w that depend on x, of cost(x, w) + left(w | R), where the cost
    is 0 if w is in R, step(w) for an alternative, and for a w that requires all: step(w), plus the largest
    need(y | R) among its dependencies y other than x and not in R, and 1 for each further one of these. Each
    need(y | R) is taken as it stands under R alone: where the way to y leads through x, what x saves y is not
    taken off it. `NEVER` where no road leads to End. Cost O(E log V).
    """
    remaining: list[Whole] = [NEVER] * len(structure.names)
    remaining[structure.end] = 0
    open_ = _not_in(structure, reached)
    heap: list[tuple[Whole, int]] = [(0, structure.end)]
    while heap:
        beyond, number = heappop(heap)
        if beyond > remaining[number]:
            continue
        dependencies = structure.dependencies[number]
        costs: list[Whole]
        if not open_[number]:
            costs = [0] * len(dependencies)
        elif structure.needs_all[number]:
            costs = _costs_of_all(structure, number, need, open_)
        else:
            costs = [structure.step[number]] * len(dependencies)
        for dependency, cost in zip(dependencies, costs, strict=True):
            if cost < NEVER and cost + beyond < remaining[dependency]:
                remaining[dependency] = cost + beyond
                heappush(heap, (cost + beyond, dependency))
    return remaining


def depths(structure: Structure) -> list[Whole]:
    """depth(x): need(x | {Start}), computed once; `NEVER` for what can never be reached. Cost O(E log V)."""
    if not structure.depth:
        structure.depth = needs(structure, {structure.start})
    return structure.depth


def progress(structure: Structure, reached: Collection[int]) -> tuple[float, int]:
    """The progress rate, and the milestone on whose road it was made; see `measure.progress_rate`."""
    if structure.end in reached:
        return 1.0, structure.end
    need = needs(structure, reached)
    remaining = left(structure, reached, need)
    rate = 0.0
    best = structure.start
    for number, depth in enumerate(depths(structure)):
        if depth == NEVER or remaining[number] == NEVER or need[number] == depth:
            continue
        here = (depth - need[number]) / (depth + remaining[number])
        if here > rate:
            rate = here
            best = number
    # 1 is End's alone; a long way with a tiny rest must not be rounded up to it.
    return min(rate, _BELOW_ONE), best


def _costs_of_all(structure: Structure, number: int, need: list[Whole], open_: bytearray) -> list[Whole]:
    # The largest need among the others takes the two largest: one of them may be the dependency's own.
    missing = sorted(need[dependency] for dependency in structure.dependencies[number] if open_[dependency])
    step = structure.step[number]
    unit = structure.unit
    costs: list[Whole] = []
    for dependency in structure.dependencies[number]:
        others = len(missing) - open_[dependency]
        if not others:
            costs.append(step)
            continue
        is_largest = open_[dependency] and need[dependency] == missing[-1]
        costs.append(step + (missing[-2] if is_largest else missing[-1]) + (others - 1) * unit)
    return costs


def _not_in(structure: Structure, reached: Collection[int]) -> bytearray:
    flags = bytearray(b"\x01") * len(structure.names)
    for number in reached:
        flags[number] = 0
    return flags
