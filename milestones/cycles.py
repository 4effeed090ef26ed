"""Cycles in a milestone graph: those that can't be entered, and those that can be entered at some milestones only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import networkx as nx

from arq_graph.milestones.fixpoints import NEVER, IndexedGraph
from arq_graph.milestones.graph import MilestoneGraph

_MAX_NAMES_SHOWN = 8


def find_circular_names(graph: Any) -> Iterator[list[str]]:
    """Yield the sorted names of the nodes of each cycle of a directed graph; cycles that meet count as one."""
    for component in nx.strongly_connected_components(graph):
        names = sorted(component)
        if len(names) > 1 or graph.has_edge(names[0], names[0]):
            yield names


def find_blocked_cycles(graph: MilestoneGraph) -> list[list[str]]:
    """Return the cycles of which each milestone needs another one first, so that none can be reached.

    If a milestone can't be reached, there is one among those that lead to it, or it is in one itself.
    """
    indexed = graph.compute_once(IndexedGraph)
    depths = zip(indexed.names, indexed.depths, strict=True)
    unreachable = [name for name, depth in depths if depth == NEVER]
    return _sort_by_line(graph, find_circular_names(graph.subgraph(unreachable)))


def find_open_cycles(graph: MilestoneGraph) -> list[list[str]]:
    """Return the cycles of which a milestone can be reached from outside."""
    indexed = graph.compute_once(IndexedGraph)
    open_cycles: list[list[str]] = []
    for names in find_circular_names(graph):
        if any(indexed.depths[indexed.numbers[name]] < NEVER for name in names):
            open_cycles.append(names)
    return _sort_by_line(graph, open_cycles)


def describe_blocked_cycle(names: Sequence[str]) -> str:
    """Describe what is wrong with a cycle that `find_blocked_cycles` returns, and what to do."""
    if len(names) == 1:
        return f"{names[0]!r} depends on itself, so it can't be reached; leave that out of its `dependencies`"
    return (
        f"each of {_list_names(names)} needs another one of them first, so none of them can be reached; let one of "
        "them depend only on milestones outside the cycle"
    )


def describe_open_cycle(graph: MilestoneGraph, names: Sequence[str]) -> str:
    """Describe what is doubtful about a cycle that `find_open_cycles` returns, and what to do."""
    if len(names) == 1:
        return f"{names[0]!r} depends on itself, which changes nothing; leave that out of its `dependencies`"
    indexed = graph.compute_once(IndexedGraph)
    first_names: list[str] = []
    for name in names:
        outside = [other for other in graph.pred[name] if other not in names]
        is_entered = any(indexed.depths[indexed.numbers[other]] < NEVER for other in outside)
        if is_entered and graph.get_milestone(name).requires == "any":
            first_names.append(name)
    return (
        f"{_list_names(names)} depend on each other; only {_list_names(first_names)} can come first. If that isn't "
        "meant, change their `dependencies`"
    )


def _sort_by_line(graph: MilestoneGraph, cycles: Iterator[list[str]] | list[list[str]]) -> list[list[str]]:
    """Return the names of each cycle, and the cycles, in the order of the file."""

    def get_line(name: str) -> int:
        return graph.get_milestone(name).line or 0

    by_line = [sorted(names, key=get_line) for names in cycles]
    return sorted(by_line, key=lambda names: get_line(names[0]))


def _list_names(names: Sequence[str]) -> str:
    listed_names = ", ".join(map(repr, names[:_MAX_NAMES_SHOWN]))
    if len(names) > _MAX_NAMES_SHOWN:
        listed_names += ", …"
    return listed_names
