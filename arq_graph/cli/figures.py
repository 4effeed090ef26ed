"""Figures as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from rich.table import Table

from arq_graph.cli.screen import printable, words

F = TypeVar("F")

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


def with_use_cases(overall: F, use_cases: Mapping[str, F]) -> dict[str, F]:
    """All, and by use case; a single one that all belong to says the same as the row of all."""
    if list(use_cases.values()) == [overall]:
        return {"all": overall}
    # A use case may be called what the row of all is called.
    named = {name if name != "all" else "all (use case)": group for name, group in use_cases.items()}
    return {"all": overall, **named}


def counted(count: int, one: str) -> str:
    """A count and what is counted: `1 record`, `2 records`."""
    return f"{count:,} {one if count == 1 else one + 's'}"


def listed(names: Sequence[str], shown: int) -> str:
    """The first names, and how many more there are."""
    more = f"; and {len(names) - shown:,} more" if len(names) > shown else ""
    return "; ".join(map(one_line, names[:shown])) + more


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
    return percent(share) + ("" if share is None else _interval(low, high, ".0f", 100))


def points(difference: float | None, low: float | None, high: float | None) -> str:
    """A difference of shares in percentage points, with its interval."""
    return number_between(difference, low, high, "+.0f", 100)


def rate_change(difference: float | None, low: float | None, high: float | None) -> str:
    """A difference of rates, with its interval."""
    return number_between(difference, low, high, "+.2f")


def number_between(
    number: float | None,
    low: float | None = None,
    high: float | None = None,
    form: str = ".2f",
    times: int = 1,
) -> str:
    """A number with its interval."""
    if number is None:
        return NOT_KNOWN
    return format(times * number, form) + _interval(low, high, form, times)


def _interval(low: float | None, high: float | None, form: str, times: int) -> str:
    if low is None or high is None:
        return ""
    return f" [{format(times * low, form)}, {format(times * high, form)}]"


def average(mean: float | None) -> str:
    """A mean of counts."""
    if mean is None:
        return NOT_KNOWN
    return f"{mean:.1f}" if mean < 1_000 else f"{mean:,.0f}"


def probability(p: float | None) -> str:
    """A p value."""
    if p is None:
        return NOT_KNOWN
    return "<0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
