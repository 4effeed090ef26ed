"""How a figure is printed."""

from __future__ import annotations

from rich.table import Table


def table(title: str, *columns: str) -> Table:
    """A table whose first column is text and whose others are figures."""
    made = Table(title=title, title_justify="left", min_width=len(title))
    for number, column in enumerate(columns):
        made.add_column(column, justify="left" if number == 0 else "right")
    return made
