"""The table that answers first: a row for each arm, with how far its conversations got."""

from __future__ import annotations

from arq_graph.milestones.reports.table_format import (
    CASES,
    RecordsByArm,
    Table,
    format_goal_completed,
    format_goal_reached,
    format_progress,
    make_table,
)

RECORDED = "recorded"
"""The arm of conversations that no arm of an evaluation ran."""
INTERVAL_NOTE = (
    "[…] are 95% intervals. A to B is a range: what is undecided counts as missed, and as reached."
)
_COLUMNS = ("customer's goal", "goal completion", "progress rate")


def build_main_table(arms: RecordsByArm) -> Table:
    """Return a row for each arm: its conversations, and its goal completion and progress rate with their intervals."""
    rows = {}
    for arm, records in arms.items():
        with_goal = [record for record in records if record.goal is not None]
        cells = {CASES: f"{len(records):,}"}
        if with_goal:
            cells["customer's goal"] = format_goal_reached(with_goal)
        cells["goal completion"] = format_goal_completed(records)
        if conversations := [record for record in records if not record.expected]:  # not single answers
            cells["progress rate"] = format_progress(conversations)
        rows[arm] = cells
    columns = [name for name in _COLUMNS if any(name in cells for cells in rows.values())]
    return make_table("", columns, rows, [INTERVAL_NOTE])
