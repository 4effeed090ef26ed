"""Print figures as tables."""

from __future__ import annotations

from rich.table import Table


def make_table(title: str, *columns: str) -> Table:
    """Return a table whose first column is text and whose others are figures."""
    table = Table(title=title, title_justify="left", min_width=len(title))
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    return table
