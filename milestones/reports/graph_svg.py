"""A milestone graph as a static picture, as notebooks show it; it takes its colours from the page around it."""

from __future__ import annotations

from html import escape

import networkx as nx

from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.reports.graph_layout import Point, compute_layout
from arq_graph.reasoning.sections import visible

# In pixels. A letter is about 7 wide.
_WIDTH, _HEIGHT = 172, 32
_COLUMN, _ROW = 188, 64
_MAX_LETTERS = 23


def render_svg(graph: nx.DiGraph[str]) -> str:
    """Return the graph as SVG, from Start at the top to End at the bottom.

    Calls have square corners, other milestones round ones; optional ones have dashed borders. Text is escaped.
    """
    node_points, edge_points = compute_layout(graph)
    points = list(node_points.values())
    parts = []
    for (source, target), bends in edge_points.items():
        points.extend(bends)
        parts.append(_render_edge([node_points[source], *bends, node_points[target]]))
    for name, point in node_points.items():
        parts.append(_render_box(graph.nodes[name]["milestone"], point))
    width = max((place for _, place in points), default=0) * _COLUMN + _COLUMN
    height = max((layer for layer, _ in points), default=0) * _ROW + _ROW
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'style="width: 100%; max-width: {width:.0f}px" fill="none" stroke="currentColor" '
        f'font-family="sans-serif" font-size="12" text-anchor="middle">{"".join(parts)}</svg>'
    )


def _find_middle(point: Point) -> tuple[float, float]:
    layer, place = point
    return (place + 0.5) * _COLUMN, (layer + 0.5) * _ROW


def _render_edge(points: list[Point]) -> str:
    """Return a line from the bottom of the first point's box to an arrow's head at the top of the last one's."""
    line = []
    for x, y in map(_find_middle, points):
        line.append(f"{x:.1f} {y:.1f}")
    x, y = _find_middle(points[0])
    line[0] = f"{x:.1f} {y + _HEIGHT / 2:.1f}"
    x, y = _find_middle(points[-1])
    line[-1] = f"{x:.1f} {y - _HEIGHT / 2:.1f}"
    return f'<path d="M{" L".join(line)} m-4 -6 l4 6 l4 -6" stroke-opacity="0.6"/>'


def _render_box(milestone: Milestone, point: Point) -> str:
    x, y = _find_middle(point)
    name = title = label = visible(milestone.name)
    if len(name) > _MAX_LETTERS:
        label = f"{name[: _MAX_LETTERS - 1]}…"
    if milestone.description:
        title += f": {visible(milestone.description)}"
    corner = _HEIGHT // 2
    if milestone.type == "FC":
        corner = 2
    dashes = ""
    if milestone.optional:
        dashes = ' stroke-dasharray="4 3"'
    return (
        f'<g><title>{escape(title)}</title><rect x="{x - _WIDTH / 2:.1f}" y="{y - _HEIGHT / 2:.1f}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" rx="{corner}" fill="currentColor" fill-opacity="0.06"{dashes}/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" fill="currentColor" stroke="none">{escape(label)}</text></g>'
    )
