"""The relations between guidelines: `entails`, `depends_on`, `overrides`.

Each relation is a directed graph over the guidelines' ids. `Relations.resolve` takes the guidelines whose conditions
hold in a turn and says which of them stay active, which are added, and which are removed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from arq_graph.agent.spec_errors import Problem
from arq_graph.errors import MAX_PROBLEMS, suggestion

if TYPE_CHECKING:
    from arq_graph.agent.guideline import Guideline


@dataclass(frozen=True)
class Resolution:
    """The result of applying the relations in a turn.

    Attributes:
        active: The score of each active guideline, by id.
        entailed: For each guideline that was added, the guideline that entails it.
        removed: For each guideline that was removed, the reason.
    """

    active: dict[str, int]
    entailed: dict[str, str]
    removed: dict[str, str]


class Relations:
    """The relations that an agent's guidelines declare; `by_id` holds the guidelines."""

    def __init__(self, guidelines: Sequence[Guideline]) -> None:
        self._guidelines = guidelines
        self.by_id = {guideline.id: guideline for guideline in guidelines}
        self._overridden_by = defaultdict[str, list[str]](list)
        self._entailed_by = defaultdict[str, list[str]](list)
        for guideline in guidelines:
            for target in guideline.overrides:
                self._overridden_by[target].append(guideline.id)
            for target in guideline.entails:
                self._entailed_by[target].append(guideline.id)

    def resolve(self, scores: Mapping[str, int]) -> Resolution:
        """Apply the relations to the guidelines whose conditions hold, by their scores.

        First, what they entail is added, with the highest score that reaches it. Then guidelines that depend on an
        inactive one are removed, repeatedly. Then overrides are applied, from the strongest guideline down: by
        priority, then score, then position. A guideline that is removed takes along its dependents and what only it
        entailed, and is never added again. Cost: at most one pass over all relations per removal.
        """
        matched = {id: scores[id] for id in self.by_id if id in scores}
        removed: dict[str, str] = {}
        active, entailed = self._add_entailed(matched, removed)
        while new_removals := self._find_unmet(active) or self._find_overridden(active):
            removed |= new_removals
            active_before, entailed_before = active, entailed
            active, entailed = self._add_entailed(matched, removed)
            for id in active_before:
                if id not in active and id not in removed:
                    removed[id] = f"entailed by {entailed_before[id]}, which was removed"
        return Resolution(active, entailed, removed)

    def find_related(self, ids: Iterable[str]) -> set[str]:
        """Return these guidelines and all others that must be matched with them to resolve their relations.

        These are the guidelines that each depends on or is overridden by, and the guidelines that entail one of those;
        and the same for each guideline that these entail. If only the returned guidelines are matched, those of `ids`
        stay active that would stay active if all guidelines were matched.
        """
        related: set[str] = set()
        added = {id for id in ids if id in self.by_id}
        while added - related:
            related = self._close(related | added, lambda id: self.by_id[id].entails)
            requirements: set[str] = set()
            for id in related:
                requirements.update(self.by_id[id].depends_on)
                requirements.update(self._overridden_by[id])
            added = self._close(requirements, lambda id: self._entailed_by[id])
        return related

    def find_dependencies(self, ids: Iterable[str]) -> set[str]:
        """Return these guidelines and all that they depend on, directly or by way of others."""
        return self._close(ids, lambda id: self.by_id[id].depends_on)

    @staticmethod
    def _close(ids: Iterable[str], get_neighbours: Callable[[str], Sequence[str]]) -> set[str]:
        reached = set(ids)
        queue = list(reached)
        while queue:
            for id in get_neighbours(queue.pop()):
                if id not in reached:
                    reached.add(id)
                    queue.append(id)
        return reached

    def find_problems(self) -> Iterator[Problem]:
        """Find relations to unknown guidelines, and circles."""
        unknown_count = 0
        for position, guideline in enumerate(self._guidelines):
            for kind in ("entails", "depends_on", "overrides"):
                for index, target in enumerate(getattr(guideline, kind)):
                    if target not in self.by_id:
                        # A suggestion compares with all ids, so only those that an error shows are looked for.
                        unknown_count += 1
                        hint = suggestion(target, self.by_id) if unknown_count <= MAX_PROBLEMS else ""
                        place = ("guidelines", position, kind, index)
                        yield place, f"names {target!r}, but no guideline has that id{hint}"
        for kind in ("depends_on", "overrides"):
            edges = {id: getattr(guideline, kind) for id, guideline in self.by_id.items()}
            try:
                TopologicalSorter(edges).prepare()
            except CycleError as error:
                circle = error.args[1][::-1]
                position = [guideline.id for guideline in self._guidelines].index(circle[0])
                problem = f"goes in a circle: {' → '.join(circle)}; remove one of these"
                yield ("guidelines", position, kind), problem

    def _find_unmet(self, active: Mapping[str, int]) -> dict[str, str]:
        unmet = {}
        for id in active:
            for requirement in self.by_id[id].depends_on:
                if requirement not in active:
                    unmet[id] = f"depends on {requirement}, which is not active"
        return unmet

    def _find_overridden(self, active: Mapping[str, int]) -> dict[str, str]:
        """Return the active guidelines that the strongest guideline with active targets overrides."""

        def get_strength(id: str) -> tuple[int, int]:
            return self.by_id[id].priority, active[id]

        # Sorting keeps the order of those that are equally strong: that of their positions.
        for strongest in sorted(active, key=get_strength, reverse=True):
            targets = [id for id in self.by_id[strongest].overrides if id in active]
            if targets:
                return dict.fromkeys(targets, f"overridden by {strongest}")
        return {}

    def _add_entailed(
        self, matched: Mapping[str, int], removed: Iterable[str]
    ) -> tuple[dict[str, int], dict[str, str]]:
        """Return the scores of the matched guidelines and all that they entail, and what entails each added one.

        It starts from the highest score, so that an entailed guideline gets the highest score that reaches it.
        """
        scores: dict[str, int] = {}
        entailed_by: dict[str, str] = {}
        for origin in sorted(matched, key=matched.__getitem__, reverse=True):
            if origin in removed or origin in scores:
                continue
            queue = [origin]
            for id in queue:
                scores[id] = matched[origin]
                for target in self.by_id[id].entails:
                    if target in removed or target in scores or target in queue:
                        continue
                    queue.append(target)
                    if target not in matched:
                        entailed_by[target] = id
        return {id: scores[id] for id in self.by_id if id in scores}, entailed_by
