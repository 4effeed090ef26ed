"""What the page knows of a report, in the form in which its scripts read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from arq_graph.milestones.reports.html_flow import Edge, Flow, flow_of, flows, stopped_at
from arq_graph.milestones.reports.html_layout import layered
from arq_graph.milestones.reports.html_words import Words
from arq_graph.milestones.reports.records import ConversationRecord
from arq_graph.milestones.reports.report import Report

MOST_BROKEN_SHOWN = 500


def page_data(report: Report, words: Words) -> dict[str, Any]:
    """Figures, graphs and conversations; milestones and edges go by their numbers in their graph.

    Args:
        report: What was measured.
        words: Cuts what is too long.

    Raises:
        InputError: A conversation and its graph do not fit together.
        SpecError: A graph is none that anything can be measured on.
    """
    known = flows(report)
    numbers = {name: _Numbers.of(place, flow) for place, (name, flow) in enumerate(known.items())}
    sources: dict[str, int] = {}
    conversations = []
    for index, record in enumerate(report.conversations):
        edges = flow_of(record, known, index).add(record)
        row = _conversation(record, numbers[record.graph], edges, words)
        if record.source is not None:
            row["source"] = sources.setdefault(record.source, len(sources))
        conversations.append(row)
    broken = [
        {**one.model_dump(), "error": words.text(one.error)} for one in report.broken[:MOST_BROKEN_SHOWN]
    ]
    return {
        "summary": report.summary.model_dump(),
        "sources": list(sources),
        "graphs": [_graph(flow, words) for flow in known.values()],
        "conversations": conversations,
        "broken": broken,
        "broken_count": len(report.broken),
        "missing": report.missing,
        "stopped": None if report.stopped is None else words.text(report.stopped),
    }


def status(record: ConversationRecord) -> str:
    """`completed`, `missed`, `undecided`, or `nothing` where there is nothing to complete."""
    if record.goal_completed is None:
        return "nothing" if record.progress_range is None else "undecided"
    return "completed" if record.goal_completed else "missed"


@dataclass(frozen=True, slots=True)
class _Numbers:
    graph: int
    milestone: dict[str, int]
    edge: dict[Edge, int]

    @classmethod
    def of(cls, graph: int, flow: Flow) -> _Numbers:
        return cls(
            graph,
            {name: number for number, name in enumerate(flow.graph)},
            {edge: number for number, edge in enumerate(flow.graph.edges)},
        )

    def of_milestones(self, names: Sequence[str]) -> list[int]:
        return [self.milestone[name] for name in names if name in self.milestone]


def _conversation(
    record: ConversationRecord, numbers: _Numbers, edges: Sequence[Edge], words: Words
) -> dict[str, Any]:
    stop = stopped_at(record)
    row = {
        "id": record.id,
        "record": record.record,
        "use_case": record.use_case,
        "task": record.task,
        "graph": numbers.graph,
        "status": status(record),
        "progress": record.progress_range,
        "reached": [(numbers.milestone[one.name], one.step) for one in record.reached],
        "edges": [numbers.edge[edge] for edge in edges if edge in numbers.edge],
        "possibly": numbers.of_milestones(record.possibly_reached),
        "undecided": numbers.of_milestones(record.undecided),
        "frontier": numbers.of_milestones(record.frontier),
        "stopped": None if stop is None else numbers.milestone.get(stop),
        "forbidden": [(one.step, one.rule) for one in record.forbidden],
        "counts": (record.events, record.turns, record.calls),
        "wasted": record.wasted_calls,
        "repeated": record.repeated_calls,
        "unanswered": record.unanswered_calls,
        "invented": dict(record.invented_arguments),
        "reasons": _by_milestone(record, numbers, words),
        "reward": record.reward,
        "arm": record.arm,
        "user": record.user,
        "error": None if record.error is None else words.text(record.error),
    }
    return {name: value for name, value in row.items() if value is not None and value not in ([], (), {})}


def _by_milestone(record: ConversationRecord, numbers: _Numbers, words: Words) -> list[list[Any]]:
    """What a judge said of each milestone: its number, the reason, the share of votes that agree."""
    return [
        [numbers.milestone[name], words.text(record.reasons.get(name, "")), record.agreement.get(name)]
        for name in dict.fromkeys([*record.reasons, *record.agreement])
        if name in numbers.milestone
    ]


def _graph(flow: Flow, words: Words) -> dict[str, Any]:
    layout = layered(flow.graph)
    number = {name: index for index, name in enumerate(flow.graph)}
    milestones = [
        {
            "name": one.name,
            "type": one.type,
            "description": words.text(one.description),
            "all": one.requires == "all" and len(one.dependencies) > 1,
            "weight": one.weight,
            "at": layout.nodes[one.name],
            "reached": flow.reached.get(one.name, 0),
            "possibly": flow.possibly.get(one.name, 0),
            "stopped": flow.stopped.get(one.name, 0),
        }
        for one in flow.record.milestones
    ]
    edges = [
        {
            "ends": (number[source], number[target]),
            "bends": layout.bends[source, target],
            "count": flow.travelled.get((source, target), 0),
        }
        for source, target in flow.graph.edges
    ]
    return {
        "name": flow.name,
        "file": flow.record.file,
        "reviewed": flow.record.reviewed,
        "conversations": flow.conversations,
        "completed": flow.completed,
        "layers": layout.layers,
        "breadth": layout.breadth,
        "milestones": milestones,
        "edges": edges,
    }
