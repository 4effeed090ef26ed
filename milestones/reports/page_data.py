"""What the page shows of a report besides its conversations: intervals by arm and kind of user, and guidelines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from arq_graph.milestones.reports.records import group_by
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.summary import Records, compute_rate


def describe_figures(report: Report) -> dict[str, Any]:
    """Return the verdict, and what the charts of the page show."""
    users = {record.user for record in report.conversations if record.user is not None}
    whiskers: list[Mapping[str, Any]] = []
    for arm, records in report.main_arms.items():
        whiskers.append(_describe_completion(arm, None, records))
        for user, group in sorted(group_by(records, lambda record: record.user).items()):
            whiskers.append(_describe_completion(arm, user, group))
    return {
        "verdict": report.verdict,
        "arms": list(report.main_arms),
        "users": sorted(users),
        "whiskers": whiskers,
        "guidelines": list(_describe_guidelines(report)),
    }


def shorten_path(path: str) -> str:
    """Return a path as it is given to others: below the current folder, or else the file's name alone."""
    file = Path(path)
    if not file.is_absolute():
        return path
    folder = Path.cwd()
    return str(file.relative_to(folder)) if file.is_relative_to(folder) else file.name


def _describe_completion(arm: str, user: str | None, records: Records) -> dict[str, Any]:
    """Return goal completion over the conversations that have something to complete, and its range."""
    counted = [record for record in records if record.progress_range is not None]
    rate = compute_rate(counted, lambda record: record.goal_completed)
    described = {"arm": arm, "user": user, **rate.model_dump(), "n": len(counted)}
    if counted:
        described["least"] = rate.count / len(counted)
        described["most"] = (rate.count + rate.unknown) / len(counted)
    return described


def _describe_guidelines(report: Report) -> Iterator[dict[str, Any]]:
    for arm in report.main_arms:
        for use in report.summary.arms.get(arm, report.summary.overall).guidelines:
            described = use.model_dump() | {"arm": arm, "score": use.score}
            described["reasons"] = [{"text": text, "count": n} for text, n in use.reasons.items()][:3]
            if not use.checked:
                described["broken"] = None
            yield described
