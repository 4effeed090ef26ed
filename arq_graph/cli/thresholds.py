"""The thresholds of `evaluate`, `experiment` and `score`, and the exit code if one is missed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from typer import Exit

from arq_graph.cli.exit_codes import THRESHOLD_MISSED
from arq_graph.cli.screen import warn
from arq_graph.milestones.reports.report import Report
from arq_graph.testing.thresholds import assert_thresholds


def require_thresholds(
    reports: Iterable[Report], min_success: float | None, max_broken: Sequence[str] | None
) -> None:
    """End the command with the exit code for missed thresholds if a report misses one."""
    if min_success is None and not max_broken:
        return
    limits: dict[str, int] = {}
    for text in max_broken or ():
        name, _, limit = text.rpartition("=")
        limits[name] = int(limit)
    try:
        for report in reports:
            assert_thresholds(report, min_success=min_success, max_broken=limits)
    except AssertionError as error:
        warn(str(error))
        raise Exit(THRESHOLD_MISSED) from None
