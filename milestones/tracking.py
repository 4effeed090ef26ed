"""The measure as a conversation runs: fed one event at a time, equal to the batch result at every moment."""

from __future__ import annotations

from typing import Any

from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.matching import Observer
from arq_graph.milestones.measure import frontier, reach
from arq_graph.milestones.scoring import Score, scored
from arq_graph.milestones.transcript import Event, Transcript


class ProgressTracker:
    """Keeps the measure of a conversation up to date as its events arrive.

    After any number of events, `score()` equals `score(graph, transcript)` of a transcript of these events.

    Args:
        graph: The milestones.
        tools: The agent's tools, for their schemas; see `matching.observe`.

    Raises:
        SpecError: The graph cannot be measured on.
        ToolError: A tool has no name.
    """

    def __init__(self, graph: MilestoneGraph, *, tools: Any = None) -> None:
        self.graph = graph
        self._observer = Observer(graph, tools=tools)
        self._events: list[Event] = []
        self._reached = reach(graph, self._observer.observations())

    def feed(self, event: Event) -> tuple[str, ...]:
        """The next event; no event before it is read again. Cost O(E log V + observations).

        Returns:
            The milestones that are now reached for certain and were not before it, in the order in which they were.

        Raises:
            SpecError: A pattern of the graph does not finish; file and line are named.
        """
        self._events.append(event)
        self._observer.feed(event)
        before, self._reached = self._reached, reach(self.graph, self._observer.observations())
        return tuple(name for name in self._reached if name not in before)

    @property
    def reached(self) -> dict[str, int]:
        """The milestones reached for certain so far, and at which event, in order."""
        return dict(self._reached)

    @property
    def frontier(self) -> tuple[str, ...]:
        """The milestones that could come next."""
        return frontier(self.graph, self._reached)

    def score(self) -> Score:
        """The score of the conversation so far.

        Raises:
            InputError: Nothing has happened yet.
        """
        return scored(self.graph, Transcript(tuple(self._events)), self._observer.observations())
