"""Which milestone graph each conversation is measured on: one for all, one a use case, or one of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.errors import InputError, SpecError
from arq_graph.milestones.findings import require_measurable
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.matching import load_rules
from arq_graph.milestones.reports.records import GraphRecord
from arq_graph.milestones.transcript import Transcript

GraphSource = MilestoneGraph | Mapping[str, MilestoneGraph] | Callable[[Transcript], MilestoneGraph]
"""One graph for all conversations, one for each use case by its name, or a function that gives each its own."""

FAILED_IN_TAU_BENCH = "(?i)^error"
_NAMES_SHOWN = 8
_NOT_SHOWN: dict[str, Any] = {"arguments": {}, "check": None}


def gold_graph(transcript: Transcript) -> MilestoneGraph:
    """The graph of the gold actions that the record itself holds, as those of tau-bench do; named by the task.

    They stand in `extra["actions"]`, and may be done in any order. A result that begins with `Error` is a failed call.

    Raises:
        InputError: The record holds no list of gold actions.
        SpecError: An action has no name, or its arguments are no mapping.
    """
    actions = transcript.extra.get("actions")
    if not isinstance(actions, list):
        raise InputError(
            "the record holds no list of gold actions; those of tau-bench do: give a milestone file instead"
        )
    graph = MilestoneGraph.from_actions(actions, ordered=False, failed_if=FAILED_IN_TAU_BENCH)
    graph.name = f"task {transcript.task}" if transcript.task is not None else transcript.id
    return graph


def fingerprint_of_graphs(source: GraphSource) -> str:
    """A fingerprint of the graphs and of the functions that they name, or of the function that makes them."""
    if callable(source):
        return fingerprint(source)
    parts: list[object] = []
    for name, graph in ({"": source} if isinstance(source, MilestoneGraph) else source).items():
        checks = [function for _, function in load_rules(graph).functions]
        rules = repr((graph.milestones, graph.failed_if, graph.grounded, graph.forbidden))
        parts.append((name, rules, *map(fingerprint, checks)))
    return fingerprint(*parts)


class GraphNames:
    """The names by which a report has the graphs that were measured on; two that it tells apart never share one."""

    def __init__(self) -> None:
        self.used: dict[str, GraphRecord] = {}
        self._known: WeakKeyDictionary[MilestoneGraph, str] = WeakKeyDictionary()

    def of(self, graph: MilestoneGraph, otherwise: str) -> str:
        """Its own name, or that of its file; `otherwise` where it has neither."""
        if (known := self._known.get(graph)) is not None:
            return known
        record = GraphRecord(
            file=graph.file,
            reviewed=False if graph.is_unreviewed else None if graph.reviewed is None else True,
            milestones=tuple(each.model_copy(update=_NOT_SHOWN) for each in graph.milestones),
        )
        name = wanted = str(graph.name) or Path(graph.file or "").stem or otherwise
        again = 1
        while self.used.get(name, record) != record:
            again += 1
            name = f"{wanted} ({again})"
        self.used[name] = record
        self._known[graph] = name
        return name


def graph_chooser(source: GraphSource, names: GraphNames) -> Callable[[Transcript], MilestoneGraph]:
    """A function that gives each conversation its graph, or an `InputError` where there is none for its use case.

    Raises:
        SpecError: A graph cannot be measured on, or there is none.
    """
    if callable(source):
        return source
    given = {"milestones": source} if isinstance(source, MilestoneGraph) else source
    if not given:
        raise SpecError("no milestone graph is given; give one for each use case")
    for name, graph in given.items():
        require_measurable(graph)
        load_rules(graph)
        names.of(graph, name)

    def of_use_case(transcript: Transcript) -> MilestoneGraph:
        if isinstance(source, MilestoneGraph):
            return source
        if (graph := given.get(transcript.use_case or "")) is not None:
            return graph
        known = list(map(repr, given))
        listed = ", ".join(known[:_NAMES_SHOWN]) + (", …" if known[_NAMES_SHOWN:] else "")
        raise InputError(
            f"its `use_case` is {transcript.use_case!r}, and there are milestone graphs for {listed}"
        )

    return of_use_case
