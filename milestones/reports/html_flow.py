"""How conversations went through a milestone graph: what they reached, along which edges, and where they stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from arq_graph.errors import InputError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.measure import satisfied_by
from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.reports.records import ConversationRecord, GraphRecord
from arq_graph.milestones.reports.report import Report

Edge = tuple[str, str]


@dataclass(slots=True)
class Flow:
    """What the conversations that were measured on one graph did there.

    Args:
        name: The graph's name.
        record: What the report says of it.
        graph: The graph itself, as far as the report says it.
        conversations: How many were measured on it.
        completed: How many of them completed the goal.
        reached: How many reached each milestone for certain.
        possibly: How many more may have, where something is undecided.
        stopped: How many of those that did not complete the goal stopped at each.
        travelled: How many went along each edge.
    """

    name: str
    record: GraphRecord
    graph: MilestoneGraph
    conversations: int = 0
    completed: int = 0
    reached: dict[str, int] = field(default_factory=dict)
    possibly: dict[str, int] = field(default_factory=dict)
    stopped: dict[str, int] = field(default_factory=dict)
    travelled: dict[Edge, int] = field(default_factory=dict)

    def add(self, record: ConversationRecord) -> tuple[Edge, ...]:
        """Count one more conversation; give the edges that it went along.

        Raises:
            InputError: It reached a milestone that the graph does not have.
            SpecError: The graph is none that anything can be measured on.
        """
        edges = tuple(edges_of(self.graph, record))
        self.conversations += 1
        self.completed += record.goal_completed is True
        for one in record.reached:
            self.reached[one.name] = self.reached.get(one.name, 0) + 1
        for name in record.possibly_reached:
            self.possibly[name] = self.possibly.get(name, 0) + 1
        if (stop := stopped_at(record)) is not None:
            self.stopped[stop] = self.stopped.get(stop, 0) + 1
        for edge in edges:
            self.travelled[edge] = self.travelled.get(edge, 0) + 1
        return edges


def flows(report: Report) -> dict[str, Flow]:
    """A flow for each graph of a report, still without conversations.

    Raises:
        SpecError: Two milestones of a graph have one name.
    """
    return {name: Flow(name, record, graph_of(record)) for name, record in report.graphs.items()}


def flow_of(record: ConversationRecord, known: dict[str, Flow], index: int) -> Flow:
    """The flow of the graph that a conversation was measured on.

    Raises:
        InputError: The report does not hold that graph.
    """
    if record.graph not in known:
        raise InputError(
            f"conversation {index} of the report ({record.id!r}) was measured on the graph {record.graph!r}, "
            f"which the report does not hold; it holds {', '.join(map(repr, list(known)[:8])) or 'none'}"
        )
    return known[record.graph]


def graph_of(record: GraphRecord) -> MilestoneGraph:
    """The graph that a report describes: its milestones and edges, without the rules that observe them.

    Raises:
        SpecError: Two milestones have one name.
    """
    return MilestoneGraph(
        (
            Milestone(
                name=one.name,
                type=one.type,
                description=one.description,
                dependencies=one.dependencies,
                requires="all" if one.requires == "all" else "any",
                weight=one.weight,
            )
            for one in record.milestones
        ),
        file=record.file,
    )


def edges_of(graph: MilestoneGraph, record: ConversationRecord) -> Iterator[Edge]:
    """The edges that a conversation went along; see `satisfied_by`."""
    reached = {one.name: one.step for one in record.reached}
    for name, behind in satisfied_by(graph, reached).items():
        for dependency in behind:
            yield dependency, name


def stopped_at(record: ConversationRecord) -> str | None:
    """Where a conversation stopped that did not complete the goal; None also where that is undecided."""
    return record.stopped_at if record.goal_completed is False else None
