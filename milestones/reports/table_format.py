"""Tables, and figures as the terminal and the page show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from arq_graph.milestones.reports.records import Record

NOT_KNOWN = "-"
CASES = "n"
"""The column with the number of cases of a row."""

Rows = Mapping[str, Mapping[str, str]]
"""Cells by row and column."""


class Row(Record):
    """A row of a table: its name, and a cell for each column."""

    name: str
    cells: tuple[str, ...]


class Table(Record):
    """A table as it is shown: in the terminal, on the page and in the JSON alike."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


def make_table(title: str, columns: Iterable[str], rows: Rows, *notes: str) -> Table:
    """Return a table of these cells; the number of cases comes first if the rows have it."""
    columns = list(columns)
    if any(CASES in cells for cells in rows.values()):
        columns.insert(0, CASES)
    table_rows = []
    for name, cells in rows.items():
        table_rows.append(Row(name=name, cells=tuple(cells.get(column, NOT_KNOWN) for column in columns)))
    return Table(title=title, columns=tuple(columns), rows=tuple(table_rows), notes=notes)


def format_percent(share: float | None) -> str:
    """Format a share as whole percent; 0% and 100% mean exactly nothing and all."""
    if share is None:
        return NOT_KNOWN
    if 0 < share < 0.01:
        return "<1%"
    if 0.99 < share < 1:
        return ">99%"
    return f"{100 * share:.0f}%"


def format_number(value: float | None, form: str = ".2f", factor: int = 1) -> str:
    """Format a number times a factor."""
    return NOT_KNOWN if value is None else format(factor * value, form)


def format_mean_count(value: float | None, places: int) -> str:
    """Format a mean of counts; 0 means exactly nothing."""
    smallest = 0.1**places
    if value and value < smallest / 2:
        return f"<{smallest:g}"
    return format_number(value, f",.{places}f")


def format_range(low: str, high: str) -> str:
    """Format a range, or its one value if both ends are the same."""
    return low if low == high else f"{low} to {high}"


def format_interval(low: float | None, high: float | None, form: str, factor: int = 1) -> str:
    """Format an interval as it stands behind a figure; nothing if it isn't known."""
    if low is None or high is None:
        return ""
    return f" [{format(factor * low, form)}, {format(factor * high, form)}]"


def format_p_value(p: float | None) -> str:
    """Format a p value."""
    if p is None:
        return NOT_KNOWN
    if p < 0.001:
        return "<0.001"
    return format(p, ".3f" if p < 0.1 else ".2f")
