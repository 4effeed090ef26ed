"""How guidelines bear on one another: `entails`, `depends_on`, `overrides`.

Each relation is a directed graph over the guidelines' ids. `Relations.resolve` takes the guidelines that a
turn made active and says which of them stay, which come in, and which go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from arq_graph.agent.spec_errors import Problem
from arq_graph.errors import suggestion

if TYPE_CHECKING:
    from arq_graph.agent.parts import Guideline


@dataclass(frozen=True)
class Resolution:
    """What relations make of the guidelines that a turn made active."""

    active: dict[str, int]
    entailed: dict[str, str]
    removed: dict[str, str]


class Relations:
    """The relations that an agent's guidelines declare; `by_id` holds these."""

    def __init__(self, guidelines: Sequence[Guideline]) -> None:
        self.by_id = {guideline.id: guideline for guideline in guidelines}
        self._position = {guideline.id: index for index, guideline in enumerate(guidelines)}
        self._overriding = defaultdict[str, list[str]](list)
        self._entailing = defaultdict[str, list[str]](list)
        for guideline in guidelines:
            for target in guideline.overrides:
                self._overriding[target].append(guideline.id)
            for target in guideline.entails:
                self._entailing[target].append(guideline.id)

    def resolve(self, scores: Mapping[str, int]) -> Resolution:
        """Apply the relations to the guidelines that are active.

        First what active ones entail comes in, with the highest score that reaches it. Then what depends on
        an inactive guideline goes, repeatedly. Then overrides act, from the strongest guideline down:
        priority, then score, then place in the specification. What goes takes along its dependents and what
        only it entailed, and never returns. Cost: at most one pass over all relations per removal.
        """
        given = {id: scores[id] for id in self.by_id if id in scores}
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

    def bearing_on(self, ids: Iterable[str]) -> set[str]:
        """These guidelines, and all others that have to be matched with them for relations to come out right.

        What each depends on and what overrides it, with what entails one of these; and the same for what each entails.
        Of the given ones that match, then just those stay active that would if all guidelines were matched.
        """
        matched, more = set[str](), {id for id in ids if id in self.by_id}
        while more - matched:
            matched = self._closed(matched | more, lambda id: self.by_id[id].entails)
            rests_on = {
                each for id in matched for each in (*self.by_id[id].depends_on, *self._overriding[id])
            }
            more = self._closed(rests_on, lambda id: self._entailing[id])
        return matched

    @staticmethod
    def _closed(ids: Iterable[str], further: Callable[[str], Sequence[str]]) -> set[str]:
        reached = set(ids)
        left = list(reached)
        while left:
            new = [each for each in further(left.pop()) if each not in reached]
            reached.update(new)
            left += new
        return reached

    def problems(self) -> Iterator[Problem]:
        """What cannot hold: a relation to no guideline, a circle."""
        for id, guideline in self.by_id.items():
            for kind in ("entails", "depends_on", "overrides"):
                for at, target in enumerate(getattr(guideline, kind)):
                    if target not in self.by_id:
                        said = f"names {target!r}, the id of no guideline{suggestion(target, self.by_id)}"
                        yield ("guidelines", self._position[id], kind, at), said
        for kind in ("depends_on", "overrides"):
            try:
                TopologicalSorter({id: getattr(each, kind) for id, each in self.by_id.items()}).prepare()
            except CycleError as error:
                circle = error.args[1][::-1]
                place = ("guidelines", self._position[circle[0]], kind)
                yield place, f"goes in a circle: {' → '.join(circle)}; remove one of these"

    def _unmet(self, active: Mapping[str, int]) -> dict[str, str]:
        return {
            id: f"depends on {needed}, which is not active"
            for id in active
            for needed in self.by_id[id].depends_on
            if needed not in active
        }

    def _overridden(self, active: Mapping[str, int]) -> dict[str, str]:
        """What the strongest guideline overrides that still overrides something."""
        for strongest in sorted(
            active, key=lambda id: (-self.by_id[id].priority, -active[id], self._position[id])
        ):
            if gone := [id for id in self.by_id[strongest].overrides if id in active]:
                return dict.fromkeys(gone, f"overridden by {strongest}")
        return {}

    def _spread(
        self, given: Mapping[str, int], removed: Iterable[str]
    ) -> tuple[dict[str, int], dict[str, str]]:
        """Scores and entailers of what is given and of all that it entails, from the highest score down."""
        score: dict[str, int] = {}
        by: dict[str, str] = {}
        for origin in sorted(given, key=lambda id: -given[id]):
            reached = [origin] if origin not in removed and origin not in score else []
            for id in reached:
                score[id] = given[origin]
                for target in self.by_id[id].entails:
                    if target not in removed and target not in score and target not in reached:
                        reached.append(target)
                        if target not in given:
                            by[target] = id
        return {id: score[id] for id in self.by_id if id in score}, by
