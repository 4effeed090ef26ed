"""Figures as text that fits into a column, and the columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table

from arq_graph.cli.screen import printable, words

NOT_KNOWN = "-"
_NAME_WIDTH = 22
_LONGEST_NAME = 60


def columns(
    title: str,
    headings: Sequence[str],
    rows: Iterable[tuple[str, Sequence[str]]],
    *,
    name_width: int = _NAME_WIDTH,
) -> Table:
    """Rows of a name and figures; on a narrow terminal they break and nothing is lost."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(words(title), max_width=name_width, overflow="fold", style="cyan")
    for heading in headings:
        table.add_column(words(heading), justify="right", overflow="fold", max_width=_NAME_WIDTH)
    for name, figures in rows:
        table.add_row(words(one_line(name)), *map(words, figures))
    return table


def one_line(name: str) -> str:
    """A name from a file, on one line and not endless."""
    return printable(name, _LONGEST_NAME)


def percent(share: float | None) -> str:
    """A share as whole percent; 0% and 100% are said only where nothing and all is meant."""
    if share is None:
        return NOT_KNOWN
    if 0 < share < 0.01:
        return "<1%"
    if 0.99 < share < 1:
        return ">99%"
    return f"{100 * share:.0f}%"


def share_between(share: float | None, low: float | None, high: float | None) -> str:
    """A share with its interval."""
    if share is None or low is None or high is None:
        return percent(share)
    return f"{percent(share)} [{100 * low:.0f}, {100 * high:.0f}]"


def number_between(number: float | None, low: float | None, high: float | None) -> str:
    """A number of 0 to 1 with its interval."""
    if number is None:
        return NOT_KNOWN
    if low is None or high is None:
        return f"{number:.2f}"
    return f"{number:.2f} [{low:.2f}, {high:.2f}]"


def points(difference: float | None, low: float | None, high: float | None) -> str:
    """A difference of shares in percentage points, with its interval."""
    if difference is None:
        return NOT_KNOWN
    if low is None or high is None:
        return f"{100 * difference:+.0f}"
    return f"{100 * difference:+.0f} [{100 * low:+.0f}, {100 * high:+.0f}]"


def average(mean: float | None) -> str:
    """A mean of counts."""
    return NOT_KNOWN if mean is None else f"{mean:.1f}"


def counted(count: int, one: str, many: str | None = None) -> str:
    """A count and what is counted: `1 record`, `2 records`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def probability(p: float | None) -> str:
    """A p value."""
    if p is None:
        return NOT_KNOWN
    return "<0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def rate_change(difference: float | None, low: float | None, high: float | None) -> str:
    """A difference of rates, with its interval."""
    if difference is None:
        return NOT_KNOWN
    if low is None or high is None:
        return f"{difference:+.2f}"
    return f"{difference:+.2f} [{low:+.2f}, {high:+.2f}]"
