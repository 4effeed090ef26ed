"""A milestone graph as arrays of numbers: what reaching and progress are computed on."""

from __future__ import annotations

from fractions import Fraction
from math import inf, lcm
from typing import TYPE_CHECKING, Any

from arq_graph.errors import InputError, SpecError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import END, START

if TYPE_CHECKING:
    from collections.abc import Iterable

    import networkx as nx

NEVER = inf
"""Larger than any event number and any distance: what is not reached, and what cannot be."""

_NONE = Fraction(0)
_ONE = Fraction(1)

# Event numbers and distances are whole numbers, or NEVER.
Whole = int | float


class Structure:
    """The milestones by number, in the order of the graph's nodes.

    Distances are whole numbers of `unit`: exact, whatever the weights, so that progress never falls by a
    rounding and is 1 only at End.

    Args:
        graph: A `DiGraph` from dependencies to dependents with node attributes `type` (default `FC`),
            `requires` (`any`), `weight` (1) and `holds` (false). A node without dependencies depends on Start.

    Raises:
        SpecError: There is no Start or no End, or a weight is not above 0.
    """

    def __init__(self, graph: nx.DiGraph[Any]) -> None:
        for name in (START, END):
            if name not in graph:
                raise SpecError(f"there is no milestone named {name!r}; add it")
        self.names: list[str] = list(graph)
        self.number = {name: number for number, name in enumerate(self.names)}
        self.start = self.number[START]
        self.end = self.number[END]
        size = len(self.names)
        self.needs_all = [False] * size
        self.is_derived = [False] * size
        self.holds = [False] * size
        self.dependencies: list[tuple[int, ...]] = [()] * size
        self.dependents: list[list[int]] = [[] for _ in range(size)]
        weights: list[Fraction] = []
        for number, (name, attributes) in enumerate(graph.nodes(data=True)):
            joins = attributes.get("type") == "Aggregator"
            self.needs_all[number] = joins or attributes.get("requires", "any") == "all"
            self.is_derived[number] = joins or name in (START, END)
            self.holds[number] = bool(attributes.get("holds", False))
            weights.append(_NONE if joins or name == START else _weight(name, attributes))
            if name != START:
                before = tuple(self.number[dependency] for dependency in graph.pred[name]) or (self.start,)
                self.dependencies[number] = before
                for dependency in before:
                    self.dependents[dependency].append(number)
        self.unit = lcm(*{weight.denominator for weight in weights})
        self.step = [weight.numerator * (self.unit // weight.denominator) for weight in weights]
        # What follows from the graph alone, filled in when it is first asked for.
        self.depth: list[Whole] = []
        self.end_is_given: bool | None = None
        self.is_sound: bool | None = None

    def numbers(self, names: Iterable[str]) -> set[int]:
        """The numbers of these milestones; Start is always among them.

        Raises:
            InputError: One is no milestone of the graph.
        """
        try:
            found = {self.number[name] for name in names}
        except KeyError as unknown:
            raise InputError(
                f"{unknown.args[0]!r} is no milestone of this graph; it has {len(self.names)}, "
                f"such as {', '.join(map(repr, self.names[:4]))}"
            ) from None
        found.add(self.start)
        return found


def compiled(graph: nx.DiGraph[Any]) -> Structure:
    """The graph's structure; made once for a `MilestoneGraph`, each time for any other. Cost O(V + E).

    Raises:
        SpecError: There is no Start or no End, or a weight is not above 0.
    """
    if not isinstance(graph, MilestoneGraph) or not graph.milestones:
        return Structure(graph)
    known: Structure | None = graph.__dict__.get("_structure")
    if known is None:
        known = graph.__dict__["_structure"] = Structure(graph)
    return known


def _weight(name: str, attributes: dict[str, Any]) -> Fraction:
    weight = attributes.get("weight", 1)
    if type(weight) is int and weight > 0:
        return Fraction(weight) if weight > 1 else _ONE
    try:
        exact = Fraction(str(weight)) if isinstance(weight, float) else Fraction(weight)
    except (ValueError, TypeError, OverflowError):
        exact = Fraction(0)
    if exact <= 0:
        raise SpecError(f"the weight of {name!r} is {weight!r}; it must be a number above 0")
    return exact
