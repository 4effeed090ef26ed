"""The cells of a report's tables: figures over a group of conversations, as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from arq_graph.milestones.reports.records import ConversationRecord
from arq_graph.milestones.reports.summary import compute_mean, compute_rate
from arq_graph.milestones.reports.table_format import (
    NOT_KNOWN,
    format_interval,
    format_number,
    format_percent,
    format_range,
)

Records = Sequence[ConversationRecord]
RecordsByArm = Mapping[str, Records]


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
    least = compute_mean(records, lambda record: record.least_progress)
    most = compute_mean(records, lambda record: record.most_progress)
    if not least.n or least.mean != most.mean:
        return format_range(format_number(least.mean), format_number(most.mean))
    return format_number(least.mean) + format_interval(least.low, least.high, ".2f")


def average_output_tokens(records: Records, step: str) -> float | None:
    """Return the tokens that one call of a step writes, on average; None if it was not called."""
    calls = tokens = 0
    for record in records:
        if step in record.steps:
            calls += record.steps[step].calls
            tokens += record.steps[step].output_tokens
    return tokens / calls if calls else None


def is_of_matcher_alone(record: ConversationRecord) -> bool:
    """Return True if the scenario tests the matcher alone, and not a whole turn."""
    return "active" in record.expected


def filter_records(arms: RecordsByArm, is_included: Callable[[ConversationRecord], bool]) -> RecordsByArm:
    """Return the records of each arm for which `is_included` is true."""
    filtered = {}
    for arm, records in arms.items():
        filtered[arm] = [record for record in records if is_included(record)]
    return filtered
