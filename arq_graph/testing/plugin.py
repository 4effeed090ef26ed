"""The pytest plugin: how far the conversations of a test run got, in its summary and as properties in JUnit files."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

_PREFIX = "arq_graph."
_MAX_LISTED = 10
_measured: list[tuple[bool | None, float | None]] = []


def note_measured(figures: Iterable[tuple[bool | None, float | None]]) -> None:
    """Note the goal completion and the progress rate of conversations that the running test has measured."""
    _measured.extend(figures)


def pytest_runtest_setup() -> None:
    """Forget the figures of the test before."""
    _measured.clear()


def pytest_runtest_teardown(item: Any) -> None:
    """Add the figures of a test to its properties, which workers of pytest-xdist send, too."""
    if not _measured:
        return
    goals, rates = zip(*_measured, strict=True)
    known_rates = [rate for rate in rates if rate is not None]
    figures = {"conversations": len(goals), "goals_completed": goals.count(True)}
    if known_rates:
        figures["progress_rate"] = round(sum(known_rates) / len(known_rates), 4)
    for name, value in figures.items():
        item.user_properties.append((_PREFIX + name, value))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the figures of the run, if a test has measured anything."""
    rates: dict[str, float] = {}
    undecided_tests: list[str] = []
    total = completed = 0
    for report in chain.from_iterable(terminalreporter.stats.values()):
        figures = dict(getattr(report, "user_properties", ()))
        if _PREFIX + "conversations" in figures and report.when == "teardown":
            total += figures[_PREFIX + "conversations"]
            completed += figures[_PREFIX + "goals_completed"]
            if _PREFIX + "progress_rate" in figures:
                rates[report.nodeid] = figures[_PREFIX + "progress_rate"]
            else:
                undecided_tests.append(report.nodeid)
    if not total:
        return
    mean = "undecided"
    if rates:
        mean = f"{sum(rates.values()) / len(rates):.2f}"
    terminalreporter.section("milestones")
    terminalreporter.line(f"{completed} of {total} conversations completed their goal; progress rate {mean}")
    for test in sorted(rates, key=rates.__getitem__)[:_MAX_LISTED]:
        if rates[test] < 1:
            terminalreporter.line(f"{rates[test]:.2f} {test}")
    for test in undecided_tests[:_MAX_LISTED]:
        terminalreporter.line(f"undecided {test}")
