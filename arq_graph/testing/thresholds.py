"""Thresholds that an evaluation has to meet, for CI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from arq_graph.errors import suggestion
from arq_graph.milestones.reports.records import ConversationRecord, group_by
from arq_graph.milestones.reports.report import Report
from arq_graph.testing.plugin import note_measured


def assert_thresholds(
    report: Report, *, min_success: float | None = None, max_broken: Mapping[str, int] | None = None
) -> None:
    """Assert that each arm of an evaluation meets the thresholds.

    Args:
        report: What `evaluate` returns.
        min_success: The least goal completion, 0 to 1. The rate itself is compared, not the end of its interval.
        max_broken: By guideline id, in how many turns the reply may have broken it; under `forbidden`, how often
            something may have happened that a milestone graph forbids.

    Raises:
        AssertionError: One is missed; the message says which, and by how much.
    """
    __tracebackhide__ = True
    note_measured((record.goal_completed, record.progress_rate) for record in report.conversations)
    problems: list[str] = []
    for arm, records in group_by(report.conversations, lambda record: record.arm or "all").items():
        if min_success is not None:
            problems += _check_success(arm, records, min_success)
        for name, limit in (max_broken or {}).items():
            problems += _check_broken(arm, records, name, limit)
    if problems or not report.conversations:
        raise AssertionError("\n".join(problems) or "no conversation was measured")


def _check_success(arm: str, records: Sequence[ConversationRecord], least: float) -> Iterator[str]:
    goals = [record.goal_completed for record in records if record.goal_completed is not None]
    if not goals:
        yield f"{arm}: nothing decides whether goals were completed, but {least:.1%} of them must be"
    elif sum(goals) / len(goals) < least:
        rate = sum(goals) / len(goals)
        counts = f"{sum(goals)} of {len(goals)}"
        missing = f"{100 * (least - rate):.1f} points below {least:.1%}"
        yield f"{arm}: the goal completion is {rate:.1%} ({counts}), {missing}"


def _check_broken(arm: str, records: Sequence[ConversationRecord], name: str, limit: int) -> Iterator[str]:
    count = 0
    checked = {"forbidden"}
    for record in records:
        if name == "forbidden":
            count += len(record.forbidden)
        for use in record.guidelines:
            if use.guideline == name:
                count += use.broken
            if use.checked:
                checked.add(use.guideline)
    if name not in checked:
        hint = suggestion(name, checked)
        yield f"{arm}: no reply was checked for the guideline {name!r}, so nothing shows that it was followed{hint}"
    elif count > limit:
        yield f"{arm}: {name!r} was broken {count} times, {count - limit} more than the {limit} allowed"
