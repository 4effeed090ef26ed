"""The layout of a graph in layers: the points of its nodes and of the bends of its edges, without a unit of length.

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
MAX_BENDS = 4_000
_WIDTH_OF_BEND = 0.5
# Sweeps over all rows, down and up in turn. An odd number of ordering sweeps lets the last one run down from Start.
_ORDERING = 9
_STRAIGHTENING = 3


def compute_layout(
    graph: nx.DiGraph[str],
) -> tuple[dict[str, Point], dict[tuple[str, str], tuple[Point, ...]]]:
    """Return the point of each node, and the points at which each edge bends, often none.

    A point is a layer, from 0, and a place in it, of which the smallest of all is 0. A cycle is laid out with an edge
    that runs back. Cost O((E + bends) log E) a sweep, of which there are a fixed number.
    """
    acyclic = _reverse_cycles(graph)
    layers = _assign_layers(acyclic)
    drawn: nx.DiGraph[Item] = nx.DiGraph()  # with a bend wherever an edge passes a layer
    drawn.add_nodes_from(acyclic)
    bends: dict[tuple[str, str], list[Item]] = {}
    # Short edges come first, so that the longest ones go without bends if there are too many.
    for source, target in sorted(acyclic.edges, key=lambda edge: layers[edge[1]] - layers[edge[0]]):
        passed_layers = range(layers[source] + 1, layers[target])
        if len(drawn) - len(acyclic) + len(passed_layers) > MAX_BENDS:
            continue
        edge_bends: list[Item] = [(source, target, layer) for layer in passed_layers]
        layers |= zip(edge_bends, passed_layers, strict=True)
        nx.add_path(drawn, [source, *edge_bends, target])
        bends[source, target] = edge_bends
        bends[target, source] = edge_bends[::-1]
    rows: list[list[Item]] = [[] for _ in range(max(layers.values(), default=-1) + 1)]
    for item in drawn:
        rows[layers[item]].append(item)
    widths = {item: 1.0 if item in acyclic else _WIDTH_OF_BEND for item in drawn}
    positions = _assign_positions(rows, drawn, widths)
    leftmost = min(positions.values(), default=0.0)
    points = {item: (layers[item], round(position - leftmost, 3)) for item, position in positions.items()}
    node_points = {name: points[name] for name in graph}
    edge_points = {edge: tuple(points[bend] for bend in bends.get(edge, ())) for edge in graph.edges}
    return node_points, edge_points


def _reverse_cycles(graph: nx.DiGraph[str]) -> nx.DiGraph[str]:
    """Return the same graph with every edge reversed that closes a cycle."""
    walk: nx.DiGraph[str] = nx.DiGraph()
    walk.add_nodes_from(sorted(graph, key=lambda name: name != START))
    walk.add_edges_from(graph.edges)
    postorder = {name: number for number, name in enumerate(nx.dfs_postorder_nodes(walk))}
    acyclic: nx.DiGraph[str] = nx.DiGraph()
    acyclic.add_nodes_from(reversed(postorder))
    for source, target in graph.edges:
        if postorder[source] > postorder[target]:
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


def _assign_positions(
    rows: list[list[Item]], drawn: nx.DiGraph[Item], widths: Mapping[Item, float]
) -> dict[Item, float]:
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
            _move_toward(row, targets, widths, positions)
    return positions


def _move_toward(
    row: Sequence[Item],
    targets: Mapping[Item, float],
    widths: Mapping[Item, float],
    positions: dict[Item, float],
) -> None:
    """Move a row's items near their targets by isotonic regression, which keeps their order and room."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + (widths[left] + widths[right]) / 2)
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
