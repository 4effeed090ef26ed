"""A graph in layers: where each node stands and where each edge bends, without a unit of length.

A layer is a whole number; a place is a number across the layers, in widths of a node. Whoever draws decides whether
layers run down or to the right. The steps are those of Sugiyama, Tagawa and Toda, "Methods for visual understanding
of hierarchical system structures" (1981): cycles broken, longest-path layers, barycenters.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise

import networkx as nx

from arq_graph.milestones.milestone import END, START

Point = tuple[int, float]
Item = Hashable
"""A milestone, or a bend: the ends of its edge and its layer."""

# Beyond this many bends in all, edges are drawn straight.
MOST_BENDS = 4_000
_WIDTH_OF_BEND = 0.5
# Sweeps over all rows, down and up in turn. An odd number of ordering sweeps lets the last one run down from Start.
_ORDERING = 9
_STRAIGHTENING = 3


def layered(graph: nx.DiGraph[str]) -> tuple[dict[str, Point], dict[tuple[str, str], tuple[Point, ...]]]:
    """Lay a graph out: where each node stands, and where each edge bends on its way, often nowhere.

    A point is a layer, from 0, and a place in it, of which the smallest of all is 0. A cycle is laid out with an edge
    that runs back. Cost O((E + bends) log E) a sweep, of which there are a fixed number.
    """
    forward = _without_cycles(graph)
    layer = _layers(forward)
    drawn: nx.DiGraph[Item] = nx.DiGraph()  # with a bend wherever an edge passes a layer
    drawn.add_nodes_from(forward)
    bends: dict[tuple[str, str], list[Item]] = {}
    # Short edges come first, so that the longest ones go without bends if there are too many.
    for source, target in sorted(forward.edges, key=lambda edge: layer[edge[1]] - layer[edge[0]]):
        passed = range(layer[source] + 1, layer[target])
        if len(drawn) - len(forward) + len(passed) <= MOST_BENDS:
            between: list[Item] = [(source, target, number) for number in passed]
            layer |= zip(between, passed, strict=True)
            nx.add_path(drawn, [source, *between, target])
            bends[source, target], bends[target, source] = between, between[::-1]
    rows: list[list[Item]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for item in drawn:
        rows[layer[item]].append(item)
    place = _places(rows, drawn, {item: 1.0 if item in forward else _WIDTH_OF_BEND for item in drawn})
    least = min(place.values(), default=0.0)
    points = {item: (layer[item], round(at - least, 3)) for item, at in place.items()}
    return (
        {name: points[name] for name in graph},
        {edge: tuple(points[bend] for bend in bends.get(edge, ())) for edge in graph.edges},
    )


def _without_cycles(graph: nx.DiGraph[str]) -> nx.DiGraph[str]:
    """The same graph, in which every edge that closes a cycle is turned round."""
    walk: nx.DiGraph[str] = nx.DiGraph()
    walk.add_nodes_from(sorted(graph, key=lambda name: name != START))
    walk.add_edges_from(graph.edges)
    finished = {name: number for number, name in enumerate(nx.dfs_postorder_nodes(walk))}
    forward: nx.DiGraph[str] = nx.DiGraph()
    forward.add_nodes_from(reversed(finished))
    forward.add_edges_from(
        (source, target) if finished[source] > finished[target] else (target, source)
        for source, target in graph.edges
        if source != target
    )
    return forward


def _layers(forward: nx.DiGraph[str]) -> dict[Item, int]:
    """Each milestone stands one layer after the last one before it, and End in the last layer."""
    generations = nx.topological_generations(forward)
    layer: dict[Item, int] = {name: number for number, names in enumerate(generations) for name in names}
    if END in layer and not forward.succ[END]:
        layer[END] = max(layer.values())
    return layer


def _places(
    rows: list[list[Item]], drawn: nx.DiGraph[Item], width: Mapping[Item, float]
) -> dict[Item, float]:
    """First order the rows by the means of their neighbours, then move each item to the mean of all its neighbours."""
    place = dict.fromkeys(drawn, 0.0)
    around = drawn.to_undirected().adj
    for sweep in range(_ORDERING + _STRAIGHTENING):
        is_down, is_ordering = sweep % 2 == 0, sweep < _ORDERING
        joined = around if not is_ordering else drawn.pred if is_down else drawn.succ
        for row in rows if is_down else reversed(rows):
            near = {item: [place[one] for one in joined[item]] or [place[item]] for item in row}
            wanted = {item: sum(values) / len(values) for item, values in near.items()}
            if is_ordering:
                row.sort(key=wanted.__getitem__)
            _move(row, wanted, width, place)
    return place


def _move(
    row: Sequence[Item], wanted: Mapping[Item, float], width: Mapping[Item, float], place: dict[Item, float]
) -> None:
    """Move a row's items near their wanted places by isotonic regression, which keeps their order and room."""
    room = [0.0]
    for left, right in pairwise(row):
        room.append(room[-1] + (width[left] + width[right]) / 2)
    pools: list[tuple[float, int]] = []
    for item, taken in zip(row, room, strict=True):
        total, count = wanted[item] - taken, 1
        while pools and pools[-1][0] * count > total * pools[-1][1]:
            more, size = pools.pop()
            total, count = total + more, count + size
        pools.append((total, count))
    level = [total / count for total, count in pools for _ in range(count)]
    for item, at, taken in zip(row, level, room, strict=True):
        place[item] = at + taken
