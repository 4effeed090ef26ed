"""A milestone graph as arrays of numbers: what the measure is computed on."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from math import inf, lcm

from arq_graph.errors import InputError, SpecError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import END, START

NEVER = inf
"""Larger than any event number and any distance: what is not reached, and what cannot be."""

# Event numbers and distances are whole numbers, or NEVER.
Whole = int | float


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
