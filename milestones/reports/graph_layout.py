"""The layout of a graph in layers: the points of its nodes and of the bends of its edges, without a unit of length.

A layer is a whole number; a place is a number across the layers, in widths of a node. Whoever draws decides whether
layers run down or to the right. The steps are those of Sugiyama, Tagawa and Toda, "Methods for visual understanding
of hierarchical system structures" (1981): cycles broken, longest-path layers, barycenters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import networkx as nx

from arq_graph.milestones.milestone import END, START

# Beyond this many bends in all, edges are drawn straight.
MAX_BENDS = 4_000
_WIDTH_OF_BEND = 0.5
# Sweeps over all rows, down and up in turn. An odd number of ordering sweeps lets the last one run down from Start.
_ORDERING = 9
_STRAIGHTENING = 3


class Bend(NamedTuple):
    """The place where an edge passes a layer."""

    source: str
    target: str
    layer: int


Edge = tuple[str, str]
Item = str | Bend
Point = tuple[int, float]


# networkx's `multipartite_layout` orders no layer and has no bends: lines would cross each other and run through nodes.
def compute_layout(graph: nx.DiGraph[str]) -> tuple[dict[str, Point], dict[Edge, tuple[Point, ...]]]:
    """Return the point of each node, and the points at which each edge bends, often none.

    A point is a layer, from 0, and a place in it, of which the smallest of all is 0. A cycle is laid out with an edge
    that runs back. Cost O((E + bends) log E) a sweep, of which there are a fixed number.
    """
    acyclic = _reverse_cycles(graph)
    layers = _assign_layers(acyclic)
    drawn, bends = _add_bends(acyclic, layers)
    rows: dict[int, list[Item]] = {}
    for item in drawn:
        rows.setdefault(layers[item], []).append(item)
    positions = _assign_positions([rows[layer] for layer in sorted(rows)], drawn)
    leftmost = min(positions.values(), default=0.0)
    points: dict[Item, Point] = {}
    for item, position in positions.items():
        points[item] = (layers[item], round(position - leftmost, 3))
    edge_points = {}
    for source, target in graph.edges:
        edge_bends = bends.get((source, target)) or bends.get((target, source), [])[::-1]
        edge_points[source, target] = tuple(points[bend] for bend in edge_bends)
    return {name: points[name] for name in graph}, edge_points


def _reverse_cycles(graph: nx.DiGraph[str]) -> nx.DiGraph[str]:
    """Return the same graph with every edge reversed that closes a cycle."""
    walk: nx.DiGraph[str] = nx.DiGraph()
    walk.add_nodes_from(sorted(graph, key=lambda name: name != START))
    walk.add_edges_from(graph.edges)
    postorder = list(nx.dfs_postorder_nodes(walk))
    numbers = dict(zip(postorder, range(len(postorder)), strict=True))
    acyclic: nx.DiGraph[str] = nx.DiGraph()
    acyclic.add_nodes_from(reversed(postorder))
    for source, target in graph.edges:
        if numbers[source] > numbers[target]:
            acyclic.add_edge(source, target)
        elif source != target:
            acyclic.add_edge(target, source)
    return acyclic


def _assign_layers(acyclic: nx.DiGraph[str]) -> dict[Item, int]:
    """Return the layer of each milestone: one after the last one before it; End is in the last layer."""
    layers: dict[Item, int] = {}
    for number, names in enumerate(nx.topological_generations(acyclic)):
        layers.update(dict.fromkeys(names, number))
    if END in layers and not acyclic.succ[END]:
        layers[END] = max(layers.values())
    return layers


def _add_bends(
    acyclic: nx.DiGraph[str], layers: dict[Item, int]
) -> tuple[nx.DiGraph[Item], dict[Edge, list[Bend]]]:
    """Return the graph with a bend, added to `layers`, wherever an edge passes a layer, and the bends by edge."""
    drawn: nx.DiGraph[Item] = nx.DiGraph()
    drawn.add_nodes_from(acyclic)
    bends: dict[Edge, list[Bend]] = {}
    # Short edges come first, so that the longest ones go without bends if there are too many.
    for source, target in sorted(acyclic.edges, key=lambda edge: layers[edge[1]] - layers[edge[0]]):
        passed_layers = range(layers[source] + 1, layers[target])
        if len(drawn) - len(acyclic) + len(passed_layers) <= MAX_BENDS:
            edge_bends = [Bend(source, target, layer) for layer in passed_layers]
            layers.update(zip(edge_bends, passed_layers, strict=True))
            nx.add_path(drawn, [source, *edge_bends, target])
            bends[source, target] = edge_bends
    return drawn, bends


def _assign_positions(rows: Sequence[list[Item]], drawn: nx.DiGraph[Item]) -> dict[Item, float]:
    """Order the rows by the means of their neighbours, then move each item to the mean of all its neighbours."""
    positions = dict.fromkeys(drawn, 0.0)
    all_neighbours = drawn.to_undirected().adj
    for sweep in range(_ORDERING + _STRAIGHTENING):
        is_downward, is_ordering = sweep % 2 == 0, sweep < _ORDERING
        if not is_ordering:
            neighbours = all_neighbours
        elif is_downward:
            neighbours = drawn.pred
        else:
            neighbours = drawn.succ
        ordered_rows = rows if is_downward else rows[::-1]
        for row in ordered_rows:
            targets = {}
            for item in row:
                around = [positions[neighbour] for neighbour in neighbours[item]] or [positions[item]]
                targets[item] = sum(around) / len(around)
            if is_ordering:
                row.sort(key=targets.__getitem__)
            _move_toward(row, targets, positions)
    return positions


def _move_toward(row: Sequence[Item], targets: Mapping[Item, float], positions: dict[Item, float]) -> None:
    """Move a row's items near their targets by isotonic regression, which keeps their order and room."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + (_get_width(left) + _get_width(right)) / 2)
    pools: list[tuple[float, int]] = []
    for item, offset in zip(row, offsets, strict=True):
        total, count = targets[item] - offset, 1
        while pools and pools[-1][0] * count > total * pools[-1][1]:
            pool_total, pool_count = pools.pop()
            total, count = total + pool_total, count + pool_count
        pools.append((total, count))
    levels: list[float] = []
    for total, count in pools:
        levels.extend([total / count] * count)
    for item, level, offset in zip(row, levels, offsets, strict=True):
        positions[item] = level + offset


def _get_width(item: Item) -> float:
    return _WIDTH_OF_BEND if isinstance(item, Bend) else 1.0
