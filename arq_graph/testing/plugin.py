"""The pytest plugin: how far the conversations of a test run got, in its summary and as properties in JUnit files."""

from __future__ import annotations

from collections.abc import Iterable
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
    rates = [rate for _, rate in _measured if rate is not None]
    figures: dict[str, float] = {"conversations": len(_measured)}
    figures["goals_completed"] = sum(goal is True for goal, _ in _measured)
    if rates:
        figures["progress_rate"] = round(sum(rates) / len(rates), 4)
    item.user_properties += [(_PREFIX + name, value) for name, value in figures.items()]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the figures of the run, if a test has measured anything."""
    rates: dict[str, float] = {}
    total = completed = 0
    for reports in terminalreporter.stats.values():
        for report in reports:
            figures = dict(getattr(report, "user_properties", ()))
            if _PREFIX + "conversations" in figures and report.when == "teardown":
                total += figures[_PREFIX + "conversations"]
                completed += figures[_PREFIX + "goals_completed"]
                rates[report.nodeid] = figures.get(_PREFIX + "progress_rate", 0.0)
    if not rates:
        return
    mean = sum(rates.values()) / len(rates)
    terminalreporter.section("milestones")
    terminalreporter.line(
        f"{completed} of {total} conversations completed their goal; progress rate {mean:.2f}"
    )
    incomplete = [test for test in rates if rates[test] < 1]
    for test in sorted(incomplete, key=rates.__getitem__)[:_MAX_LISTED]:
        terminalreporter.line(f"{rates[test]:.2f} {test}")
