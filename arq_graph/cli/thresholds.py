"""The thresholds of `evaluate`, `experiment` and `score`, and the exit code if one is missed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from typer import BadParameter, Exit

from arq_graph.cli.exit_codes import THRESHOLD_MISSED
from arq_graph.cli.screen import warn
from arq_graph.milestones.reports.report import Report
from arq_graph.testing.thresholds import find_missed_thresholds


def parse_max_broken(values: Sequence[str] | None) -> dict[str, int]:
    """Return the values of --max-broken by name."""
    limits: dict[str, int] = {}
    for value in values or []:
        match = re.fullmatch(r"(.+)=(\d+)", value)
        if match is None:
            raise BadParameter(f"--max-broken {value}: it must be written NAME=N, such as no-promises=0")
        limits[match[1]] = int(match[2])
    return limits


def warn_of_missed(
    reports: Iterable[Report], min_success: float | None, max_broken: Mapping[str, int]
) -> Exit | None:
    """Print which thresholds the reports miss; return the exit for that, or None if they meet all."""
    problems: list[str] = []
    for report in reports:
        problems += find_missed_thresholds(report, min_success, max_broken)
    for problem in problems:
        warn(problem)
    return Exit(THRESHOLD_MISSED) if problems else None
