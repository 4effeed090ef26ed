"""The measure as a conversation runs: fed one event at a time, equal to the batch result at every moment."""

from __future__ import annotations

from typing import Any

from arq_graph.milestones.fixpoints import Reaching
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.matching import Observer
from arq_graph.milestones.measure import frontier, structure_of
from arq_graph.milestones.observations import Observations
from arq_graph.milestones.scoring import Score, measured
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
        self._structure = structure_of(graph)
        self._observer = Observer(graph, tools=tools)
        self._events: list[Event] = []
        self._observed: dict[str, set[int]] = {}
        undecided = self._structure.numbers(self._observer.rules.for_judges)
        self._low = Reaching(self._structure)
        self._high = Reaching(self._structure, always=undecided) if self._observer.rules.for_judges else None

    def feed(self, event: Event) -> tuple[str, ...]:
        """The next event; cost O(E log V) at worst.

        Returns:
            The milestones that are now reached for certain and were not before it, in the order in which they were.

        Raises:
            SpecError: A pattern of the graph does not finish; file and line are named.
        """
        self._events.append(event)
        before = set(self._low.reached())
        observed = self._observer.feed(event)
        for reaching in (self._low, self._high):
            if reaching is None:
                continue
            reaching.advance(self._observer.now)
            for name, number in observed:
                reaching.observe(self._structure.number[name], number)
        for name, number in observed:
            self._observed.setdefault(name, set()).add(number)
        return tuple(name for name in self._low.reached() if name not in before)

    @property
    def reached(self) -> dict[str, int]:
        """The milestones reached for certain so far, and at which event, in order."""
        return self._low.reached()

    @property
    def frontier(self) -> tuple[str, ...]:
        """The milestones that could come next."""
        return frontier(self.graph, self.reached)

    def score(self) -> Score:
        """The score of the conversation so far.

        Raises:
            InputError: Nothing has happened yet.
        """
        transcript = Transcript(tuple(self._events))
        low = self._low.reached()
        return measured(
            self.graph, transcript, self._observations(), low, self._high.reached() if self._high else low
        )

    def _observations(self) -> Observations:
        return Observations(
            {name: tuple(sorted(numbers)) for name, numbers in self._observed.items()},
            self._observer.now,
            tuple(self._observer.rules.for_judges),
            tuple(self._observer.forbidden),
            self._observer.unanswered,
        )
