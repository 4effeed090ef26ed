"""A graph in layers: where each node stands and where each edge bends, without a unit of length.

A layer is a whole number; a place is a number across the layers, in widths of a node. Whoever draws decides
whether layers run down or to the right. The steps are those of Sugiyama, Tagawa and Toda, "Methods for visual
understanding of hierarchical system structures" (1981): cycles broken, longest-path layers, barycenters.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import networkx as nx

from arq_graph.milestones.milestone import END, START
from arq_graph.milestones.reports.html_places import Rows, ordered, placed

Point = tuple[int, float]

# Beyond this many bends in all, edges are drawn straight: so many lines help nobody.
MOST_BENDS = 4_000
WIDTH_OF_BEND = 0.5


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a graph's nodes stand.

    Args:
        nodes: Layer, from 0, and place of each node; the smallest place of all is 0.
        bends: Where each edge bends on its way from source to target; often nowhere.
        layers: How many layers there are.
        breadth: The largest place.
    """

    nodes: dict[str, Point]
    bends: dict[tuple[str, str], tuple[Point, ...]]
    layers: int
    breadth: float


def layered(graph: nx.DiGraph[str]) -> Layout:
    """Lay a graph out.

    Cost O((E + bends) log E) a sweep, of which there are a fixed number.

    Args:
        graph: Any graph of milestones; a cycle is laid out with an edge that runs back.
    """
    forward = _without_cycles(graph)
    layer = _layers(forward)
    names = list(forward)
    number = {name: index for index, name in enumerate(names)}
    layer_of = [layer[name] for name in names]
    chains: dict[tuple[str, str], list[int]] = {}
    # Short edges first: where there are too many bends, the longest go without.
    for source, target in sorted(forward.edges, key=lambda edge: layer[edge[1]] - layer[edge[0]]):
        between = range(layer[source] + 1, layer[target])
        if len(layer_of) - len(names) + len(between) > MOST_BENDS:
            between = range(0)
        bends = range(len(layer_of), len(layer_of) + len(between))
        layer_of.extend(between)
        chains[source, target] = [number[source], *bends, number[target]]
    rows = ordered(_rows(layer_of, chains))
    place = placed(rows, [1.0] * len(names) + [WIDTH_OF_BEND] * (len(layer_of) - len(names)))
    points = [(layer, round(at, 3)) for layer, at in zip(layer_of, place, strict=True)]
    bent: dict[tuple[str, str], tuple[Point, ...]] = {}
    for source, target in graph.edges:
        chain = chains.get((source, target)) or chains.get((target, source), [])[::-1]
        bent[source, target] = tuple(points[item] for item in chain[1:-1])
    return Layout(
        {name: points[number[name]] for name in graph},
        bent,
        max(layer_of, default=-1) + 1,
        max((at for _, at in points), default=0.0),
    )


def _without_cycles(graph: nx.DiGraph[str]) -> nx.DiGraph[str]:
    """The same milestones with every edge that closes a cycle turned round, in the order of a walk from Start."""
    walk: nx.DiGraph[str] = nx.DiGraph()
    names = sorted(graph, key=lambda name: name != START)
    walk.add_nodes_from(names)
    walk.add_edges_from(graph.edges)
    finished = {name: number for number, name in enumerate(nx.dfs_postorder_nodes(walk))}
    forward: nx.DiGraph[str] = nx.DiGraph()
    names.sort(key=finished.__getitem__, reverse=True)
    forward.add_nodes_from(names)
    forward.add_edges_from(
        (source, target) if finished[source] > finished[target] else (target, source)
        for source, target in graph.edges
        if source != target
    )
    return forward


def _layers(forward: nx.DiGraph[str]) -> dict[str, int]:
    """Each milestone one layer after the last of those before it; End in the last of all."""
    layer: dict[str, int] = {}
    for name in nx.topological_sort(forward):
        layer[name] = 1 + max((layer[before] for before in forward.pred[name]), default=-1)
    if END in layer and not forward.succ[END]:
        layer[END] = max(layer.values())
    return layer


def _rows(layer_of: list[int], chains: dict[tuple[str, str], list[int]]) -> Rows:
    rows = Rows(
        [[] for _ in range(max(layer_of, default=-1) + 1)], [[] for _ in layer_of], [[] for _ in layer_of]
    )
    for item, layer in enumerate(layer_of):
        rows.layers[layer].append(item)
    for chain in chains.values():
        for item, follower in pairwise(chain):
            # An edge without bends leaps over layers, and pulls at nothing.
            if layer_of[follower] == layer_of[item] + 1:
                rows.after[item].append(follower)
                rows.before[follower].append(item)
    return rows
