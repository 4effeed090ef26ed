"""A milestone graph as an SVG image, as notebooks show it; it takes its colours from the page around it."""

from __future__ import annotations

from html import escape

import networkx as nx

from arq_graph.milestones.milestone import END, START, Milestone
from arq_graph.milestones.reports.graph_layout import Point, compute_layout
from arq_graph.reasoning.sections import visible

# In pixels. A box is as wide as its longest name at about 7 pixels a letter.
_BOX_WIDTH, _BOX_HEIGHT = 172, 32
_COLUMN, _ROW = 188, 64
_MARGIN = 10
_MAX_LETTERS = 23


def render_svg(graph: nx.DiGraph[str]) -> str:
    """Return a static picture of the graph from Start at the top to End at the bottom.

    Calls have square corners, other milestones round ones; optional ones have dashed borders. Text is escaped.
    """
    node_points, edge_points = compute_layout(graph)
    parts = []
    for (source, target), bends in edge_points.items():
        parts.append(_render_edge([node_points[source], *bends, node_points[target]]))
    for name, point in node_points.items():
        parts.append(_render_box(graph.nodes[name]["milestone"], point))
    points = list(node_points.values())
    for bends in edge_points.values():
        points.extend(bends)
    width = max((place for _, place in points), default=0) * _COLUMN + _BOX_WIDTH + 2 * _MARGIN
    height = max((layer for layer, _ in points), default=0) * _ROW + _BOX_HEIGHT + 2 * _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" '
        f'style="width: 100%; max-width: {width:.0f}px" fill="none" stroke="currentColor" '
        f'font-family="sans-serif" font-size="12">{"".join(parts)}</svg>'
    )


def _find_middle(point: Point) -> tuple[float, float]:
    layer, place = point
    return _MARGIN + _BOX_WIDTH / 2 + place * _COLUMN, _MARGIN + _BOX_HEIGHT / 2 + layer * _ROW


def _render_edge(points: list[Point]) -> str:
    """Return a line with an arrow's head where it meets the box of its last point."""
    middles = list(map(_find_middle, points))
    x, y = middles[0]
    path = f"M{x:.1f} {y + _BOX_HEIGHT / 2:.1f}"
    for x, y in middles[1:-1]:
        path += f" L{x:.1f} {y:.1f}"
    x, y = middles[-1]
    y -= _BOX_HEIGHT / 2
    path += f" L{x:.1f} {y:.1f} m-4 -6 l4 6 l4 -6"
    return f'<path d="{path}" stroke-opacity="0.6"/>'


def _render_box(milestone: Milestone, point: Point) -> str:
    x, y = _find_middle(point)
    corner = 2 if milestone.type == "FC" else _BOX_HEIGHT / 2
    name = visible(milestone.name)
    label = name
    if len(label) > _MAX_LETTERS:
        label = f"{label[: _MAX_LETTERS - 1]}…"
    title = name
    if milestone.description:
        title += f": {visible(milestone.description)}"
    style = ""
    if milestone.optional:
        style = ' stroke-dasharray="4 3"'
    elif milestone.name in (START, END):
        style = ' stroke-width="2"'
    return (
        f"<g><title>{escape(title)}</title>"
        f'<rect x="{x - _BOX_WIDTH / 2:.1f}" y="{y - _BOX_HEIGHT / 2:.1f}" width="{_BOX_WIDTH}" '
        f'height="{_BOX_HEIGHT}" rx="{corner:.0f}" fill="currentColor" fill-opacity="0.06"{style}/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="currentColor" stroke="none">'
        f"{escape(label)}</text></g>"
    )
