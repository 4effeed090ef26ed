"""How a notebook shows an object: a table in HTML, which takes its colours from the notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from arq_graph.reasoning.sections import visible


def render_table(columns: Sequence[str], rows: Iterable[Sequence[str]], notes: Iterable[str] = ()) -> str:
    """Return a table and notes beneath it as HTML; every text is escaped."""
    html = f"<table>{_render_row('th', columns)}"
    for row in rows:
        html += _render_row("td", row)
    html += "</table>"
    for note in filter(None, notes):
        html += f"<p>{escape(visible(note))}</p>"
    return html


def _render_row(tag: str, cells: Sequence[str]) -> str:
    html = ""
    for cell in cells:
        html += f'<{tag} style="text-align: left">{escape(visible(cell))}</{tag}>'
    return f"<tr>{html}</tr>"
