"""The table that answers first: a row for each arm, with how far its conversations got."""

from __future__ import annotations

from arq_graph.milestones.reports.table_format import (
    CASES,
    NOT_KNOWN,
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


def build_main_table(arms: RecordsByArm) -> Table:
    """Return the conversations of each arm, its goal completion and its progress rate, with their intervals."""
    rows = {}
    columns: dict[str, None] = {}
    for arm, records in arms.items():
        figures = {
            "customer's goal": format_goal_reached([record for record in records if record.goal is not None]),
            "goal completion": format_goal_completed(records),
            "progress rate": format_progress([record for record in records if not record.expected]),
        }
        for name, figure in figures.items():
            if figure != NOT_KNOWN:
                columns[name] = None
        rows[arm] = {CASES: f"{len(records):,}"} | figures
    return make_table("", columns, rows, [INTERVAL_NOTE])
