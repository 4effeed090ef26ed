"""Tables, and figures as the terminal and the page show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from arq_graph.milestones.reports.records import ConversationRecord, Record
from arq_graph.milestones.reports.summary import Records, compute_progress_ends, compute_rate

NOT_KNOWN = "-"
CASES = "n"
"""The column with the number of cases of a row."""

RecordsByArm = Mapping[str, Records]
Rows = Mapping[str, Mapping[str, str]]
"""Cells by row and column."""


class Row(Record):
    """A row of a table: its name, and a cell for each column."""

    name: str
    cells: tuple[str, ...]


class Table(Record):
    """A table as it is shown: in the terminal, on the page and in the JSON alike.

    The page draws a `chart` in place of a table of that kind.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    kind: Literal["figures", "chart"] = "figures"


def make_table(
    title: str,
    columns: Iterable[str],
    rows: Rows,
    notes: Sequence[str] = (),
    kind: Literal["figures", "chart"] = "figures",
) -> Table:
    """Return a table of these cells; the number of cases comes first if the rows have it."""
    columns = list(columns)
    if any(CASES in cells for cells in rows.values()):
        columns.insert(0, CASES)
    table_rows = []
    for name, cells in rows.items():
        table_rows.append(Row(name=name, cells=tuple(cells.get(column, NOT_KNOWN) for column in columns)))
    return Table(title=title, columns=tuple(columns), rows=tuple(table_rows), notes=tuple(notes), kind=kind)


def format_count(count: int, noun: str) -> str:
    """Return a count with its noun, such as `1 record` or `2 records`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


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


def format_goal_completed(records: Records) -> str:
    """Return goal completion with its interval, or its range if it is undecided in some conversations."""
    return _format_share(records, lambda record: record.goal_completed)


def format_goal_reached(records: Records) -> str:
    """Return the share in which the customer's own goal was reached, in the same form."""
    return _format_share(records, lambda record: record.goal_reached)


def _format_share(records: Records, get_value: Callable[[ConversationRecord], bool | None]) -> str:
    counted = [record for record in records if record.progress_range is not None]
    if not counted:
        return NOT_KNOWN
    rate = compute_rate(counted, get_value)
    if rate.unknown:
        least = format_percent(rate.count / len(counted))
        most = format_percent((rate.count + rate.unknown) / len(counted))
        return format_range(least, most)
    return format_percent(rate.rate) + format_interval(rate.low, rate.high, ".0f", 100)


def format_progress(records: Records) -> str:
    """Return the mean progress rate with its interval, or its range if it is undecided in some conversations."""
    least, most = compute_progress_ends(records)
    if not least.n or least.mean != most.mean:
        return format_range(format_number(least.mean), format_number(most.mean))
    return format_number(least.mean) + format_interval(least.low, least.high, ".2f")
