"""A graph in layers: where each node stands and where each edge bends, without a unit of length.

A layer is a whole number; a place is a number across the layers, in widths of a node. Whoever draws decides whether
layers run down or to the right. The steps are those of Sugiyama, Tagawa and Toda, "Methods for visual understanding
of hierarchical system structures" (1981): cycles broken, longest-path layers, barycenters.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx

from arq_graph.milestones.milestone import END, START

Point = tuple[int, float]
Joined = Sequence[Sequence[int]]
"""For each item, by its number, the items that it is joined to."""

# Beyond this many bends in all, edges are drawn straight: so many lines help nobody.
MOST_BENDS = 4_000
_WIDTH_OF_BEND = 0.5
_SWEEPS = 16


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
    """Lay a graph out; a cycle is laid out with an edge that runs back.

    Cost O((E + bends) log E) a sweep, of which there are a fixed number.
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
    widths = [1.0] * len(names) + [_WIDTH_OF_BEND] * (len(layer_of) - len(names))
    points = list(zip(layer_of, _places(layer_of, list(chains.values()), widths), strict=True))
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


def _layers(forward: nx.DiGraph[str]) -> dict[str, int]:
    """Each milestone one layer after the last of those before it; End in the last of all."""
    generations = nx.topological_generations(forward)
    layer = {name: number for number, names in enumerate(generations) for name in names}
    if END in layer and not forward.succ[END]:
        layer[END] = max(layer.values())
    return layer


def _places(layer_of: Sequence[int], chains: Sequence[Sequence[int]], widths: Sequence[float]) -> list[float]:
    """A place for each item: few lines cross, none is closer to another than widths allow, the least of all is 0."""
    rows: list[list[int]] = [[] for _ in range(max(layer_of, default=-1) + 1)]
    before: list[list[int]] = [[] for _ in layer_of]
    after: list[list[int]] = [[] for _ in layer_of]
    for item, layer in enumerate(layer_of):
        rows[layer].append(item)
    for chain in chains:
        for item, follower in pairwise(chain):
            # An edge without bends leaps over layers, and pulls at nothing.
            if layer_of[follower] == layer_of[item] + 1:
                after[item].append(follower)
                before[follower].append(item)
    rows = _ordered(rows, before, after)
    place = [0.0] * len(widths)
    for row in rows:
        _move(row, [0.0] * len(row), widths, place)
    both = [one + other for one, other in zip(before, after, strict=True)]
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        joined = both if sweep >= _SWEEPS - 2 else before if down else after
        for row in rows if down else reversed(rows):
            _move(
                row, [_mean([place[one] for one in joined[item]], place[item]) for item in row], widths, place
            )
    least = min(place, default=0.0)
    return [round(at - least, 3) for at in place]


def _ordered(rows: list[list[int]], before: Joined, after: Joined) -> list[list[int]]:
    """The same rows, each in an order that has few crossings: barycenters, down and up in turn."""
    best, fewest = rows, _crossings(rows, after)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        down = sweep % 2 == 0
        rows = [list(row) for row in rows]
        position = {item: float(index) for row in rows for index, item in enumerate(row)}
        joined = before if down else after
        for row in rows if down else reversed(rows):
            mean = {item: _mean([position[one] for one in joined[item]], position[item]) for item in row}
            row.sort(key=mean.__getitem__)
            position |= {item: float(index) for index, item in enumerate(row)}
        found = _crossings(rows, after)
        if found < fewest:
            best, fewest = rows, found
    return best


def _crossings(rows: Sequence[Sequence[int]], after: Joined) -> int:
    """How many pairs of lines between neighbouring rows cross."""
    count = 0
    for row, below in pairwise(rows):
        position = {item: index for index, item in enumerate(below)}
        seen: list[int] = []
        for item in row:
            ends = sorted(position[one] for one in after[item])
            count += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return count


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _move(row: Sequence[int], wanted: Sequence[float], widths: Sequence[float], place: list[float]) -> None:
    """Put each item of a row at the place nearest to the one wanted, by least squares, that keeps order and room.

    Without the room that each needs, it is isotonic regression: neighbours in the wrong order are pooled.
    """
    room = [0.0]
    for left, right in pairwise(row):
        room.append(room[-1] + (widths[left] + widths[right]) / 2)
    pools: list[tuple[float, int]] = []
    for want, taken in zip(wanted, room, strict=False):
        total, count = want - taken, 1
        while pools and pools[-1][0] * count > total * pools[-1][1]:
            more, size = pools.pop()
            total, count = total + more, count + size
        pools.append((total, count))
    level = [total / count for total, count in pools for _ in range(count)]
    for item, at, taken in zip(row, level, room, strict=False):
        place[item] = at + taken
