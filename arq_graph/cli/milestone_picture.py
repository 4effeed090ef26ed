"""A milestone graph as a picture in the terminal: a row for each milestone, lanes for the dependencies."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import networkx as nx
from rich.console import Console
from rich.text import Text

from arq_graph.cli.screen import printable, words
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import Milestone

_LONGEST_NAME = 60
_ROOM_FOR_NAMES = 30

_MARKS = {"FC": "●", "NFC": "○", "Aggregator": "◆"}
# By what a cell is joined to: above, below, left, right.
_CELLS = {
    (True, True, False, False): "│",
    (False, False, True, True): "─",
    (True, True, False, True): "├",
    (True, True, True, False): "┤",
    (True, True, True, True): "┼",
    (True, False, False, True): "╰",
    (True, False, True, False): "╯",
    (True, False, True, True): "┴",
    (False, True, False, True): "╭",
    (False, True, True, False): "╮",
    (False, True, True, True): "┬",
}
_PLAIN = str.maketrans({"│": "|", "─": "-", "●": "*", "○": "o", "◆": "#"} | dict.fromkeys("├┤┼╰╯┴╭╮┬", "+"))


@dataclass(frozen=True)
class Row:
    """A row of the picture.

    Args:
        lanes: What stands in the lanes.
        milestone: The milestone of the row; None where lanes only branch or meet.
        back: Names of earlier milestones that depend on it: the way back of a cycle.
    """

    lanes: str
    milestone: str | None = None
    back: tuple[str, ...] = ()


def show_picture(graph: MilestoneGraph, console: Console, *, reviewed: Collection[str] = ()) -> None:
    """Print a graph, dependencies above what depends on them.

    Args:
        graph: The graph.
        console: Where to print it.
        reviewed: Names of milestones to tick.
    """
    rows = list(picture(graph))
    width = max((len(row.lanes) for row in rows), default=0)
    too_wide = width + _ROOM_FOR_NAMES > console.width
    for row in rows:
        if row.milestone is None:
            if not too_wide:
                console.print(Text(_encoded(row.lanes, console), style="dim"))
            continue
        milestone = graph.milestone(row.milestone)
        lanes = _MARKS[milestone.type] if too_wide else row.lanes
        line = Text.assemble((_encoded(lanes, console), "dim"), " ")
        line.append_text(_caption(graph, milestone, row.back))
        if row.milestone in reviewed:
            line.append_text(words(" ✓", "green"))
        console.print(line)


def picture(graph: MilestoneGraph) -> Iterator[Row]:
    """The rows of the picture, each milestone after its dependencies, as far as there is no cycle."""
    ahead = _without_cycles(graph)
    place = {name: number for number, name in enumerate(graph)}
    order = list(nx.lexicographical_topological_sort(ahead, key=place.__getitem__))
    place = {name: number for number, name in enumerate(order)}
    lanes: list[str | None] = []  # the milestone that each leads to
    for name in order:
        if name not in lanes and place[name] > 0:
            yield Row(" ".join("│" if lane else " " for lane in lanes))  # nothing leads to it
        column = lanes.index(name) if name in lanes else _free(lanes)
        marks = ["│" if lane else " " for lane in lanes]
        marks[column] = _MARKS[graph.milestone(name).type]
        back = tuple(after for after in graph.successors(name) if not ahead.has_edge(name, after))
        yield Row(" ".join(marks).rstrip(), name, back)
        lanes[column] = None
        targets = sorted(ahead.successors(name), key=place.__getitem__)
        if targets:
            yield from _branching(lanes, column, targets)
        while lanes and lanes[-1] is None:
            lanes.pop()


def _without_cycles(graph: MilestoneGraph) -> nx.DiGraph[str]:
    """The graph without the dependencies that lead back to an earlier milestone of the file."""
    place = {name: number for number, name in enumerate(graph)}
    ring = {
        name: number for number, ring in enumerate(nx.strongly_connected_components(graph)) for name in ring
    }
    ahead: nx.DiGraph[str] = nx.DiGraph()
    ahead.add_nodes_from(graph)
    ahead.add_edges_from(
        (before, after)
        for before, after in graph.edges
        if ring[before] != ring[after] or place[before] < place[after]
    )
    return ahead


def _branching(lanes: list[str | None], column: int, targets: list[str]) -> Iterator[Row]:
    """Lead a milestone's lane to what depends on it; a row shows where, unless it goes straight on."""
    before = list(lanes)
    ends = []
    for target in targets:
        if target in lanes:
            ends.append(lanes.index(target))
        elif lanes[column] is None:
            lanes[column] = target
        else:
            ends.append(_free(lanes, after=column))
            lanes[ends[-1]] = target
    if not ends:
        return
    low, high = min(column, *ends), max(column, *ends)
    cells = []
    for at, lane in enumerate(lanes):
        left, right = low < at <= high, low <= at < high
        if at == column:
            cells.append(_CELLS[True, lane is not None, left, right])
        elif at in ends:
            above = at < len(before) and before[at] is not None
            cells.append(_CELLS[above, True, left, right])
        elif lane:
            cells.append("│")  # a lane that is only crossed
        else:
            cells.append("─" if left and right else " ")
        cells.append("─" if right else " ")
    yield Row("".join(cells).rstrip())


def _free(lanes: list[str | None], after: int = -1) -> int:
    for column in range(after + 1, len(lanes)):
        if lanes[column] is None:
            return column
    lanes.append(None)
    return len(lanes) - 1


def _caption(graph: MilestoneGraph, milestone: Milestone, back: tuple[str, ...]) -> Text:
    caption = words(printable(milestone.name, _LONGEST_NAME), "cyan" if milestone.type == "FC" else "")
    if milestone.tool:
        caption.append_text(words(f" ({printable(milestone.tool, _LONGEST_NAME)})"))
    before = list(graph.predecessors(milestone.name))
    if len(before) > 1:
        caption.append_text(words(f"  {graph.nodes[milestone.name]['requires']} of {len(before)}", "yellow"))
    if back:
        names = ", ".join(printable(name, _LONGEST_NAME) for name in back)
        caption.append_text(words(f"  leads back to {names}", "yellow"))
    return caption


def _encoded(lanes: str, console: Console) -> str:
    try:
        lanes.encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return lanes.translate(_PLAIN)
    return lanes
