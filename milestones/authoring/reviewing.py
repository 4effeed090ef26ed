"""A person's walk through a milestone graph: what was decided about each milestone, and by whom."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.findings import Findings
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import END, START, Milestone
from arq_graph.milestones.review import Review, ReviewedAs, ReviewEntry


class GraphReview:
    """A review under way. Each decision makes a new `graph`, and is noted in its `review`.

    Whatever changes a milestone's dependencies opens it again, and a changed graph is not reviewed until
    `finish` says so.

    Args:
        graph: The graph, sound or not.
        by: Who reviews it.
        date: The day, as in ISO 8601.
        tools: The agent's tools, to hold the FCs against; None: they are not compared.
    """

    def __init__(self, graph: MilestoneGraph, *, by: str, date: str, tools: Any = None) -> None:
        self.graph = graph
        self._by = by
        self._date = date
        self._tools = tools
        self._review = graph.review or Review()

    @property
    def findings(self) -> Findings:
        """What is wrong or doubtful now."""
        return self.graph.check(self._tools)

    @property
    def open(self) -> tuple[str, ...]:
        """Milestones that nobody has decided about, in the order of the file."""
        decided = {entry.milestone for entry in self._review.entries if entry.what != "dropped"}
        return tuple(name for name in self.graph if name not in decided)

    @property
    def open_to_reviewer(self) -> tuple[str, ...]:
        """Milestones that this reviewer has not decided about."""
        mine = {
            each.milestone for each in self._review.entries if each.by == self._by and each.what != "dropped"
        }
        return tuple(name for name in self.graph if name not in mine)

    def accept(self, name: str) -> None:
        """Note that a milestone is right as it is."""
        self._note(name, "accepted")
        self._rebuild(self.graph.milestones, self._review.reviewed)

    def edit(self, name: str, milestone: Milestone) -> None:
        """Put a milestone in place of another; where its name changes, those that depend on it follow.

        Raises:
            InputError: The new name is taken, or it is Start's or End's that changes.
        """
        if milestone.name != name:
            self._check_new(milestone.name)
            if name in (START, END):
                raise InputError(f"{name} cannot be renamed: every graph has one")
        changed = [
            milestone
            if each.name == name
            else replace(
                each,
                dependencies=tuple(
                    milestone.name if before == name else before for before in each.dependencies
                ),
            )
            for each in self.graph.milestones
        ]
        if milestone.name != name:
            renamed = [
                replace(entry, milestone=milestone.name) if entry.milestone == name else entry
                for entry in self._review.entries
            ]
            self._review = replace(self._review, entries=tuple(renamed))
        self._note(milestone.name, "edited")
        self._rebuild(changed, False)

    def drop(self, name: str) -> tuple[str, ...]:
        """Take a milestone out; what depended on it depends on its dependencies instead, and is open again.

        Returns:
            The milestones that depended on it.

        Raises:
            InputError: It is Start or End.
        """
        if name in (START, END):
            raise InputError(f"{name} cannot be dropped: every graph has one")
        dropped = self.graph.milestone(name)
        kept = [each for each in self.graph.milestones if each.name != name]
        dependents = tuple(each.name for each in kept if name in each.dependencies)
        rewired = [
            replace(each, dependencies=_instead(each, dropped)) if each.name in dependents else each
            for each in kept
        ]
        self._forget({name, *dependents})
        self._note(name, "dropped")
        self._rebuild(rewired, False)
        return dependents

    def add(
        self, milestone: Milestone, *, after: str | None = None, dependents: Collection[str] = ()
    ) -> None:
        """Put in a milestone.

        Args:
            milestone: The new one.
            after: The milestone behind which it stands in the file; None: before End.
            dependents: Milestones that shall depend on it, too; they are open again.

        Raises:
            InputError: Its name is taken.
        """
        self._check_new(milestone.name)
        changed = [
            replace(each, dependencies=(*each.dependencies, milestone.name))
            if each.name in dependents
            else each
            for each in self.graph.milestones
        ]
        names = [each.name for each in changed]
        at = names.index(after) + 1 if after in names else len(names)
        if END in names and at == len(names) and names[-1] == END:
            at -= 1
        self._forget(set(dependents))
        self._note(milestone.name, "added")
        self._rebuild([*changed[:at], milestone, *changed[at:]], False)

    def finish(self) -> None:
        """Mark the graph as reviewed.

        Raises:
            InputError: Something is wrong with it, or somebody has yet to decide about a milestone.
        """
        if errors := self.findings.errors:
            raise InputError(f"the graph cannot be marked as reviewed: {errors[0].message}")
        if self.open:
            raise InputError(
                f"the graph cannot be marked as reviewed: nobody has decided about {self.open[0]!r}"
            )
        self._rebuild(self.graph.milestones, True)

    def _check_new(self, name: str) -> None:
        if name in self.graph:
            raise InputError(f"there is a milestone named {name!r} already; each has its own name")

    def _note(self, name: str, what: ReviewedAs) -> None:
        others = [each for each in self._review.entries if (each.milestone, each.by) != (name, self._by)]
        entry = ReviewEntry(name, what, self._by, self._date)
        self._review = replace(self._review, entries=(*others, entry))

    def _forget(self, names: Collection[str]) -> None:
        kept = [
            each for each in self._review.entries if each.milestone not in names or each.what == "dropped"
        ]
        self._review = replace(self._review, entries=tuple(kept))

    def _rebuild(self, milestones: Iterable[Milestone], reviewed: bool) -> None:
        self._review = replace(self._review, reviewed=reviewed)
        self.graph = MilestoneGraph(
            milestones,
            failed_if=self.graph.failed_if,
            grounded=self.graph.grounded,
            forbidden=self.graph.forbidden,
            file=self.graph.file,
            review=self._review,
        )


def _instead(milestone: Milestone, dropped: Milestone) -> tuple[str, ...]:
    """The dependencies of a milestone with those of the dropped one in its place."""
    inherited: Sequence[str] = dropped.dependencies or (START,)
    wired = [
        name
        for before in milestone.dependencies
        for name in (inherited if before == dropped.name else (before,))
    ]
    left = dict.fromkeys(name for name in wired if name not in (milestone.name, dropped.name))
    return tuple(left) or (START,)
