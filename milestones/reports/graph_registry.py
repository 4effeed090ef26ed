"""The milestone graphs of a report: one for all conversations, one for each use case, or one for each conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.errors import InputError, SpecError
from arq_graph.milestones.findings import require_measurable
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.observation_rules import load_rules
from arq_graph.milestones.reports.records import GraphRecord
from arq_graph.milestones.transcript import Transcript

GraphSource = MilestoneGraph | Mapping[str, MilestoneGraph] | Callable[[Transcript], MilestoneGraph]
"""One graph for all conversations, one for each use case by its name, or a function that gives each its own."""

FAILED_IN_TAU_BENCH = "(?i)^error"
_WITHOUT_RULES: dict[str, Any] = {"arguments": {}, "check": None}


def gold_graph(transcript: Transcript) -> MilestoneGraph:
    """Return the graph of the gold actions that the record itself holds, as those of tau-bench do; named by the task.

    They stand in `extra["actions"]`, and may be done in any order. A result that begins with `Error` is a failed call.

    Raises:
        InputError: The record holds no list of gold actions.
        SpecError: An action has no name, or its arguments aren't a mapping.
    """
    actions = transcript.extra.get("actions")
    if not isinstance(actions, list):
        raise InputError(
            "the record holds no list of gold actions; those of tau-bench do: give a milestone file instead"
        )
    graph = MilestoneGraph.from_actions(actions, ordered=False, failed_if=FAILED_IN_TAU_BENCH)
    graph.name = f"task {transcript.task}" if transcript.task is not None else transcript.id
    return graph


def fingerprint_graphs(source: GraphSource) -> str:
    """Return a fingerprint of the graphs and of the functions that they name, or of the function that makes them."""
    if callable(source):
        return fingerprint(source)
    parts: list[object] = []
    for name, graph in get_graphs_by_name(source).items():
        loaded = load_rules(graph)
        checks = [fingerprint(function) for _, function in (*loaded.functions, *loaded.states)]
        rules = repr((graph.milestones, graph.failed_if, graph.grounded, graph.forbidden))
        parts.append((name, rules, *checks))
    return fingerprint(*parts)


def get_graphs_by_name(
    source: MilestoneGraph | Mapping[str, MilestoneGraph],
) -> Mapping[str, MilestoneGraph]:
    """Return graphs by use case; one for all conversations is called `milestones`."""
    return {"milestones": source} if isinstance(source, MilestoneGraph) else source


class GraphRegistry:
    """The graphs of a report by name; two that the report tells apart never share one.

    Attributes:
        records: The record of each graph, by name.
    """

    def __init__(self) -> None:
        self.records: dict[str, GraphRecord] = {}
        self._names: WeakKeyDictionary[MilestoneGraph, str] = WeakKeyDictionary()

    def register(self, graph: MilestoneGraph, default_name: str) -> str:
        """Add a graph, and return its own name, that of its file, or the default name."""
        if graph in self._names:
            return self._names[graph]
        record = _make_graph_record(graph)
        own_name = str(graph.name) or Path(graph.file or "").stem or default_name
        name, number = own_name, 1
        while self.records.get(name, record) != record:
            number += 1
            name = f"{own_name} ({number})"
        self.records[name] = record
        self._names[graph] = name
        return name


def _make_graph_record(graph: MilestoneGraph) -> GraphRecord:
    reviewed = None
    if graph.is_unreviewed:
        reviewed = False
    elif graph.reviewed is not None:
        reviewed = True
    milestones = tuple(milestone.model_copy(update=_WITHOUT_RULES) for milestone in graph.milestones)
    return GraphRecord(file=graph.file, reviewed=reviewed, milestones=milestones)


def make_graph_selector(
    source: GraphSource, registry: GraphRegistry
) -> Callable[[Transcript], MilestoneGraph]:
    """Return a function that selects a conversation's graph, and raises InputError if its use case has none.

    Raises:
        SpecError: A graph cannot be measured on, or there is none.
    """
    if callable(source):
        return source
    graphs = get_graphs_by_name(source)
    if not graphs:
        raise SpecError("there is no milestone graph; give one for each use case")
    for name, graph in graphs.items():
        require_measurable(graph)
        load_rules(graph)
        registry.register(graph, name)
    if isinstance(source, MilestoneGraph):
        return lambda _: source

    def select_by_use_case(transcript: Transcript) -> MilestoneGraph:
        graph = graphs.get(transcript.use_case or "")
        if graph is not None:
            return graph
        names = ", ".join(map(repr, graphs))
        raise InputError(
            f"its `use_case` is {transcript.use_case!r}, and there are milestone graphs for {names}"
        )

    return select_by_use_case
