"""A milestone graph as the page draws it: its layout, and how many conversations took which way."""

from __future__ import annotations

from collections import Counter
from typing import Any

from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.measure import find_satisfying_dependencies
from arq_graph.milestones.reports.graph_layout import compute_layout
from arq_graph.milestones.reports.page_data import shorten_path
from arq_graph.milestones.reports.records import ConversationRecord, GraphRecord

_OMITTED_RULES = {"tool", "arguments", "check", "holds", "step"}
_OMITTED_FIELDS = {"progress_rate", "path_taken", "coverage", "seed", "turn_seconds", "content", "opening"}


class DrawnGraph:
    """A graph with its layout, and the number of conversations at each milestone and along each edge."""

    def __init__(self, number: int, name: str, record: GraphRecord) -> None:
        self._number = number
        self._name = name
        self._record = record
        self._graph = MilestoneGraph(record.milestones)
        self._edge_numbers = {edge: number for number, edge in enumerate(self._graph.edges)}
        self._statuses: Counter[str] = Counter()
        self._reached: Counter[str] = Counter()
        self._possibly_reached: Counter[str] = Counter()
        self._stopped: Counter[str | None] = Counter()
        self._travelled: Counter[int] = Counter()

    def add(self, record: ConversationRecord) -> dict[str, Any]:
        """Count a conversation, and return what the page says of it."""
        reached = {milestone.name: milestone.step for milestone in record.reached}
        edges = []
        for name, dependencies in find_satisfying_dependencies(self._graph, reached).items():
            for dependency in dependencies:
                edges.append(self._edge_numbers[dependency, name])
        status = _get_status(record)
        self._statuses[status] += 1
        self._reached.update(list(reached))
        self._possibly_reached.update(record.possibly_reached)
        self._stopped[record.stopped_at] += 1
        self._travelled.update(edges)
        described = record.model_dump(exclude=_OMITTED_FIELDS, exclude_defaults=True)
        if record.source is not None:
            described["source"] = shorten_path(record.source)
        return described | {
            "graph": self._number,
            "status": status,
            "goal_reached": record.goal_reached,
            "stopped_at": record.stopped_at,
            "edges": edges,
        }

    def describe(self) -> dict[str, Any]:
        """Return what the page draws."""
        node_points, edge_points = compute_layout(self._graph)
        points = list(node_points.values())
        milestones = []
        numbers = {}
        for number, milestone in enumerate(self._record.milestones):
            numbers[milestone.name] = number
            described = milestone.model_dump(exclude=_OMITTED_RULES)
            described["at"] = node_points[milestone.name]
            described["reached"] = self._reached[milestone.name]
            described["possibly"] = self._possibly_reached[milestone.name]
            described["stopped"] = self._stopped[milestone.name]
            milestones.append(described)
        edges = []
        for (source, target), number in self._edge_numbers.items():
            ends = [numbers[source], numbers[target]]
            bends = edge_points[source, target]
            points.extend(bends)
            edges.append({"ends": ends, "bends": bends, "count": self._travelled[number]})
        file = self._record.file
        return {
            "name": self._name,
            "file": file and shorten_path(file),
            "reviewed": self._record.reviewed,
            "conversations": self._statuses.total(),
            "completed": self._statuses["completed"],
            "layers": 1 + max(points, default=(0, 0))[0],
            "breadth": max((place for _, place in points), default=0.0),
            "milestones": milestones,
            "edges": edges,
        }


def _get_status(record: ConversationRecord) -> str:
    if record.goal_completed is None and record.progress_range is None:
        return "nothing"
    return {True: "completed", False: "missed", None: "undecided"}[record.goal_completed]
