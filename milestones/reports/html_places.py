"""Items in rows: their order, with few crossings, and their places, near what they are joined to."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

SWEEPS = 16


@dataclass(frozen=True, slots=True)
class Rows:
    """Numbered items in rows, and what each is joined to.

    Args:
        layers: The items of each row, in order.
        before: For each item, those in the row before that it is joined to.
        after: For each item, those in the row after.
    """

    layers: list[list[int]]
    before: list[list[int]]
    after: list[list[int]]


def ordered(rows: Rows) -> Rows:
    """The same rows, each in an order that has few crossings: barycenters, down and up in turn."""
    best, fewest = rows, crossings(rows)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        rows = _sorted_by_barycenter(rows, down=sweep % 2 == 0)
        found = crossings(rows)
        if found < fewest:
            best, fewest = rows, found
    return best


def crossings(rows: Rows) -> int:
    """How many pairs of lines between neighbouring rows cross."""
    count = 0
    for layer, below in pairwise(rows.layers):
        position = {item: index for index, item in enumerate(below)}
        seen: list[int] = []
        for item in layer:
            ends = sorted(position[one] for one in rows.after[item])
            count += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return count


def placed(rows: Rows, widths: Sequence[float]) -> list[float]:
    """A place for each item: in the row's order, no two closer than their widths allow, the least of all 0.

    Args:
        rows: The items.
        widths: How much room each needs.
    """
    place = [0.0] * len(widths)
    for layer in rows.layers:
        for item, at in zip(layer, _spaced([0.0] * len(layer), layer, widths), strict=True):
            place[item] = at
    both = [before + after for before, after in zip(rows.before, rows.after, strict=True)]
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        joined = both if sweep >= SWEEPS - 2 else rows.before if down else rows.after
        for layer in rows.layers if down else reversed(rows.layers):
            wanted = [_mean([place[one] for one in joined[item]], place[item]) for item in layer]
            for item, at in zip(layer, _spaced(wanted, layer, widths), strict=True):
                place[item] = at
    least = min(place, default=0.0)
    return [at - least for at in place]


def _sorted_by_barycenter(rows: Rows, *, down: bool) -> Rows:
    layers = [list(layer) for layer in rows.layers]
    position = {item: float(index) for layer in layers for index, item in enumerate(layer)}
    joined = rows.before if down else rows.after
    for layer in layers if down else reversed(layers):
        mean = {item: _mean([position[one] for one in joined[item]], position[item]) for item in layer}
        layer.sort(key=mean.__getitem__)
        position |= {item: float(index) for index, item in enumerate(layer)}
    return Rows(layers, rows.before, rows.after)


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _spaced(wanted: Sequence[float], layer: Sequence[int], widths: Sequence[float]) -> list[float]:
    """The places nearest to those wanted, by least squares, that keep order and room.

    Without the room that each needs, it is isotonic regression: neighbours in the wrong order are pooled.
    """
    room = [0.0]
    for left, right in pairwise(layer):
        room.append(room[-1] + (widths[left] + widths[right]) / 2)
    pools: list[tuple[float, int]] = []
    for want, taken in zip(wanted, room, strict=False):
        total, count = want - taken, 1
        while pools and pools[-1][0] * count > total * pools[-1][1]:
            more, size = pools.pop()
            total, count = total + more, count + size
        pools.append((total, count))
    level = [total / count for total, count in pools for _ in range(count)]
    return [at + taken for at, taken in zip(level, room, strict=False)]
