"""Thresholds that an evaluation has to meet, for CI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from arq_graph.errors import suggestion
from arq_graph.milestones.reports.records import ConversationRecord, group_by
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.summary import summarize
from arq_graph.testing.plugin import note_measured

FORBIDDEN = "forbidden"
"""Stands for what the milestone graphs forbid, among the names of guidelines."""


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
    problems = find_missed_thresholds(report, min_success, max_broken or {})
    if problems:
        raise AssertionError("\n".join(problems))


def find_missed_thresholds(
    report: Report, min_success: float | None, max_broken: Mapping[str, int]
) -> list[str]:
    """Return what each arm misses, as sentences; see `assert_thresholds`."""
    arms = group_by(report.conversations, lambda record: record.arm or "all conversations")
    problems: list[str] = []
    for arm, records in arms.items():
        if min_success is not None:
            problems += _check_success(arm, records, min_success)
        for name, limit in max_broken.items():
            problems += _check_broken(arm, records, name, limit)
    if not arms and (min_success is not None or max_broken):
        problems.append("no conversation was measured, so no threshold is met")
    return problems


def _check_success(arm: str, records: Sequence[ConversationRecord], least: float) -> Iterator[str]:
    completion = summarize(records).goal_completion
    if completion.rate is None:
        yield f"{arm}: the goal completion must be at least {least:.0%}, but nothing decides it"
    elif completion.rate < least:
        counts = f"{completion.count} of {completion.n}"
        points = 100 * (least - completion.rate)
        yield (
            f"{arm}: the goal completion is {completion.rate:.1%} ({counts}), {points:.1f} points below {least:.1%}"
        )


def _check_broken(arm: str, records: Sequence[ConversationRecord], name: str, limit: int) -> Iterator[str]:
    count = 0
    checked: set[str] = set()
    for record in records:
        count += len(record.forbidden) if name == FORBIDDEN else 0
        for use in record.guidelines:
            if use.checked:
                checked.add(use.guideline)
            if use.guideline == name:
                count += use.broken
    if name not in checked | {FORBIDDEN}:
        hint = suggestion(name, checked)
        yield f"{arm}: no reply was checked for the guideline {name!r}, so nothing shows that it was followed{hint}"
    elif count > limit:
        what = "forbidden events" if name == FORBIDDEN else f"turns broke the guideline {name!r}"
        yield f"{arm}: {count} {what}, {count - limit} more than the {limit} allowed"
