"""How guidelines bear on one another: `entails`, `depends_on`, `overrides`.

Each relation is a directed graph over the guidelines' ids. `Relations.resolve` takes the guidelines that a
turn made active and says which of them stay, which come in, and which go.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from arq_graph.agent.spec_errors import Problem
from arq_graph.agent.spelling import suggestion

if TYPE_CHECKING:
    from arq_graph.agent.parts import Guideline

KINDS = ("entails", "depends_on", "overrides")


@dataclass(frozen=True)
class Resolution:
    """What relations make of the guidelines that a turn made active."""

    active: dict[str, int] = field(default_factory=dict)
    entailed: dict[str, str] = field(default_factory=dict)
    removed: dict[str, str] = field(default_factory=dict)


class Relations:
    """The relations that an agent's guidelines declare."""

    def __init__(self, guidelines: Sequence[Guideline]) -> None:
        self._priority = {guideline.id: guideline.priority for guideline in guidelines}
        self._position = {guideline.id: index for index, guideline in enumerate(guidelines)}
        self._related: dict[str, dict[str, tuple[str, ...]]] = {
            kind: {guideline.id: targets for guideline in guidelines if (targets := getattr(guideline, kind))}
            for kind in KINDS
        }
        self.problems: list[Problem] = [
            problem for guideline in guidelines for problem in self._wrong_targets(guideline)
        ]
        if not self.problems:
            self.problems = [*self._circles("depends_on"), *self._circles("overrides")]

    def resolve(self, scores: Mapping[str, int]) -> Resolution:
        """Apply the relations to the guidelines that are active.

        First what active ones entail comes in, with the highest score that reaches it. Then what depends on
        an inactive guideline goes, repeatedly. Then overrides act, from the strongest guideline down:
        priority, then score, then place in the specification. What goes takes along its dependents and what
        only it entailed, and never returns. Cost: at most one pass over all relations per removal.
        """
        given = {id: scores[id] for id in self._position if id in scores}
        removed: dict[str, str] = {}
        active, entailed = self._spread(given, removed)
        while gone := self._unmet(active) or self._overridden(active):
            removed |= gone
            before, entailed_before = active, entailed
            active, entailed = self._spread(given, removed)
            for id in before:
                if id not in active and id not in removed:
                    removed[id] = f"entailed by {entailed_before[id]}, which was removed"
        return Resolution(active, entailed, removed)

    def _unmet(self, active: Mapping[str, int]) -> dict[str, str]:
        return {
            id: f"depends on {needed}, which is not active"
            for id in active
            for needed in self._targets("depends_on", id)
            if needed not in active
        }

    def _overridden(self, active: Mapping[str, int]) -> dict[str, str]:
        """What the strongest guideline overrides that still overrides something."""
        for strongest in sorted(active, key=lambda id: self._strength(id, active[id])):
            if gone := [id for id in self._targets("overrides", strongest) if id in active]:
                return dict.fromkeys(gone, f"overridden by {strongest}")
        return {}

    def _spread(
        self, given: Mapping[str, int], removed: Iterable[str]
    ) -> tuple[dict[str, int], dict[str, str]]:
        """Scores and entailers of what is given and of all that it entails, from the highest score down."""
        closed = set(removed)
        score: dict[str, int] = {}
        by: dict[str, str] = {}
        for origin in sorted(given, key=lambda id: self._strength(id, given[id])[1:]):
            if origin in closed or origin in score:
                continue
            score[origin] = given[origin]
            reached = deque([origin])
            while reached:
                id = reached.popleft()
                for target in self._targets("entails", id):
                    if target not in closed and target not in score:
                        score[target] = given[origin]
                        reached.append(target)
                        if target not in given:
                            by[target] = id
        return {id: score[id] for id in self._position if id in score}, by

    def _strength(self, id: str, score: int) -> tuple[int, int, int]:
        return -self._priority[id], -score, self._position[id]

    def _targets(self, kind: str, id: str) -> tuple[str, ...]:
        return self._related[kind].get(id, ())

    def _wrong_targets(self, guideline: Guideline) -> Iterator[Problem]:
        for kind in KINDS:
            for position, target in enumerate(getattr(guideline, kind)):
                place = ("guidelines", self._position[guideline.id], kind, position)
                if target == guideline.id:
                    yield place, "names the guideline itself"
                elif target not in self._position:
                    near = suggestion(target, self._position)
                    yield place, f"names {target!r}, the id of no guideline{near}"
                elif kind == "overrides" and target in guideline.depends_on + guideline.entails:
                    yield place, f"overrides {target}, which it also needs or entails; drop one of the two"

    def _circles(self, kind: str) -> Iterator[Problem]:
        if not self._related[kind]:
            return
        import networkx as nx  # takes as long as the rest of this package, and few agents need it

        with contextlib.suppress(nx.NetworkXNoCycle):
            edges = [(id, target) for id, targets in self._related[kind].items() for target in targets]
            circle = [source for source, _ in nx.find_cycle(nx.DiGraph(edges))]
            place = ("guidelines", self._position[circle[0]], kind)
            yield place, f"goes in a circle: {' → '.join([*circle, circle[0]])}; remove one of these"
