"""Figures as they are shown, in the terminal and on the page."""

from __future__ import annotations

from arq_graph.milestones.reports.records import Record

NOT_KNOWN = "-"


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


def percent(share: float | None) -> str:
    """A share as whole percent; 0% and 100% are said only where nothing and all is meant."""
    if share is None:
        return NOT_KNOWN
    if 0 < share < 0.01:
        return "<1%"
    return ">99%" if 0.99 < share < 1 else f"{100 * share:.0f}%"


def number(value: float | None, form: str = ".2f", times: int = 1) -> str:
    """A number, or that it is not known."""
    return NOT_KNOWN if value is None else format(times * value, form)


def average(value: float | None, places: int) -> str:
    """A mean of counts; 0 is said only where nothing is meant."""
    return f"<{0.1**places:g}" if value and value < 0.1**places / 2 else number(value, f",.{places}f")


def between(low: str, high: str) -> str:
    """A range, or what it is where both ends are the same."""
    return low if low == high else f"{low} to {high}"


def interval(low: float | None, high: float | None, form: str, times: int = 1) -> str:
    """An interval behind a figure; nothing where there is none."""
    if low is None or high is None:
        return ""
    return f" [{format(times * low, form)}, {format(times * high, form)}]"


def probability(p: float | None) -> str:
    """A p value."""
    if p is not None and p < 0.001:
        return "<0.001"
    return number(p, ".3f" if p is not None and p < 0.1 else ".2f")
