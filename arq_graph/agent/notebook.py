"""How a notebook shows an object: short texts, and tables in HTML in which every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from pydantic import BaseModel

from arq_graph.reasoning.sections import visible

MAX_ROWS = 100
"""The most rows of a table; a further line says how many there are."""


class ShortRepr(BaseModel):
    """A model whose `repr` leaves out the fields that have their default value."""

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        fields = type(self).model_fields
        for name, value in super().__repr_args__():
            if name not in fields or value != fields[name].default:
                yield name, value


def render_paragraph(text: str) -> str:
    """Return a text as a paragraph in HTML."""
    return f"<p>{_escape(text)}</p>"


def render_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in HTML, which takes its colours from the notebook."""
    rows = list(rows)
    lines = [_render_row("th", columns)]
    lines += [_render_row("td", row) for row in rows[:MAX_ROWS]]
    rest = ""
    if len(rows) > MAX_ROWS:
        rest = render_paragraph(f"… and {len(rows) - MAX_ROWS:,} more")
    return f"<table>{''.join(lines)}</table>{rest}"


def _render_row(name: str, cells: Sequence[str]) -> str:
    elements = [f'<{name} style="text-align: left">{_escape(cell)}</{name}>' for cell in cells]
    return f"<tr>{''.join(elements)}</tr>"


def _escape(text: str) -> str:
    return escape(visible(text))
