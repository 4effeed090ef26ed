"""How a notebook shows an object: a table in HTML, which takes its colours from the notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from arq_graph.reasoning.sections import visible


def render_table(columns: Sequence[str], rows: Iterable[Sequence[str]], notes: Iterable[str] = ()) -> str:
    """Return a table and notes beneath it as HTML; every text is escaped."""
    lines = [_render_row("th", columns)]
    lines += [_render_row("td", row) for row in rows]
    paragraphs = [f"<p>{escape(visible(note))}</p>" for note in notes if note]
    return f"<table>{''.join(lines)}</table>{''.join(paragraphs)}"


def _render_row(tag: str, cells: Sequence[str]) -> str:
    elements = [f'<{tag} style="text-align: left">{escape(visible(cell))}</{tag}>' for cell in cells]
    return f"<tr>{''.join(elements)}</tr>"
