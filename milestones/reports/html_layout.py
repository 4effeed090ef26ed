"""A graph in layers: where each node stands and where each edge bends, without a unit of length.

A layer is a whole number; a place is a number across the layers, in widths of a node. Whoever draws decides whether
layers run down or to the right. The steps are those of Sugiyama, Tagawa and Toda, "Methods for visual understanding
of hierarchical system structures" (1981): cycles broken, longest-path layers, barycenters.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import networkx as nx

from arq_graph.milestones.milestone import END, START

Point = tuple[int, float]
Item = Hashable
"""A milestone, or a bend: the ends of its edge and its layer."""
Joined = Mapping[Item, Collection[Item]]

# Beyond this many bends in all, edges are drawn straight: so many lines help nobody.
MOST_BENDS = 4_000
_WIDTH_OF_BEND = 0.5
_SWEEPS = 16


class Layout(NamedTuple):
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
    """Lay a graph out; a cycle is laid out with an edge that runs back.

    Cost O((E + bends) log E) a sweep, of which there are a fixed number.
    """
    forward = _without_cycles(graph)
    layer = _layers(forward)
    drawn: nx.DiGraph[Item] = nx.DiGraph()  # with a bend wherever an edge passes a layer
    drawn.add_nodes_from(forward)
    bends: dict[tuple[str, str], list[Item]] = {}
    # Short edges first: where there are too many bends, the longest go without, and pull at nothing.
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
    place = _places(
        _ordered(rows, drawn), drawn, {item: 1.0 if item in forward else _WIDTH_OF_BEND for item in drawn}
    )
    least = min(place.values(), default=0.0)
    points = {item: (layer[item], round(at - least, 3)) for item, at in place.items()}
    return Layout(
        {name: points[name] for name in graph},
        {edge: tuple(points[bend] for bend in bends.get(edge, ())) for edge in graph.edges},
        len(rows),
        max((at for _, at in points.values()), default=0.0),
    )


def _without_cycles(graph: nx.DiGraph[str]) -> nx.DiGraph[str]:
    """The same milestones with every edge that closes a cycle turned round, in the order of a walk from Start."""
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
    """Each milestone one layer after the last of those before it; End in the last of all."""
    generations = nx.topological_generations(forward)
    layer: dict[Item, int] = {name: number for number, names in enumerate(generations) for name in names}
    if END in layer and not forward.succ[END]:
        layer[END] = max(layer.values())
    return layer


def _ordered(rows: list[list[Item]], drawn: nx.DiGraph[Item]) -> list[list[Item]]:
    """The same rows, each in an order that has few crossings: barycenters, down and up in turn."""
    best, fewest = rows, _crossings(rows, drawn)
    for sweep in range(_SWEEPS if fewest else 0):
        down = sweep % 2 == 0
        rows = [list(row) for row in rows]
        position = {item: float(index) for row in rows for index, item in enumerate(row)}
        for row in rows if down else reversed(rows):
            mean = _means(row, drawn.pred if down else drawn.succ, position)
            row.sort(key=mean.__getitem__)
            position |= {item: float(index) for index, item in enumerate(row)}
        found = _crossings(rows, drawn)
        if found < fewest:
            best, fewest = rows, found
    return best


def _crossings(rows: Sequence[Sequence[Item]], drawn: nx.DiGraph[Item]) -> int:
    """How many pairs of lines between neighbouring rows cross."""
    count = 0
    for row, below in pairwise(rows):
        position = {item: index for index, item in enumerate(below)}
        seen: list[int] = []
        for item in row:
            ends = sorted(position[one] for one in drawn.succ[item])
            count += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return count


def _places(
    rows: Sequence[Sequence[Item]], drawn: nx.DiGraph[Item], width: Mapping[Item, float]
) -> dict[Item, float]:
    """A place for each item: near those it is joined to, and none closer to another than widths allow."""
    place = dict.fromkeys(drawn, 0.0)
    for row in rows:
        _move(row, place, width, place)
    joined: list[Joined] = [drawn.pred, drawn.succ] * (_SWEEPS // 2 - 1) + [drawn.to_undirected().adj] * 2
    for sweep, neighbours in enumerate(joined):
        for row in reversed(rows) if sweep % 2 else rows:
            _move(row, _means(row, neighbours, place), width, place)
    return place


def _means(row: Iterable[Item], joined: Joined, place: Mapping[Item, float]) -> dict[Item, float]:
    """The mean of the places that each item is joined to; its own where it is joined to none."""
    near = {item: [place[one] for one in joined[item]] or [place[item]] for item in row}
    return {item: sum(values) / len(values) for item, values in near.items()}


def _move(
    row: Sequence[Item], wanted: Mapping[Item, float], width: Mapping[Item, float], place: dict[Item, float]
) -> None:
    """Put each item of a row at the place nearest to the one wanted, by least squares, that keeps order and room.

    Without the room that each needs, it is isotonic regression: neighbours in the wrong order are pooled.
    """
    room = [0.0]
    for left, right in pairwise(row):
        room.append(room[-1] + (width[left] + width[right]) / 2)
    pools: list[tuple[float, int]] = []
    for item, taken in zip(row, room, strict=False):
        total, count = wanted[item] - taken, 1
        while pools and pools[-1][0] * count > total * pools[-1][1]:
            more, size = pools.pop()
            total, count = total + more, count + size
        pools.append((total, count))
    level = [total / count for total, count in pools for _ in range(count)]
    for item, at, taken in zip(row, level, room, strict=False):
        place[item] = at + taken
