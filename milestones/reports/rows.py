"""A report as rows for a data frame or a spreadsheet: one for each conversation, one value in each column."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from io import StringIO
from pathlib import Path

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.milestones.reports.records import ConversationRecord, Record

Cell = str | int | float | bool | None
Row = dict[str, Cell]

COLUMNS = (
    "id", "arm", "scenario", "user", "run", "use_case", "task", "graph",
    "is_measured", "goal_completed", "progress_at_least", "progress_at_most", "goal", "goal_reached",
    "stopped_at", "forbidden", "broken_guidelines", "events", "turns", "calls", "wasted_calls", "too_early",
    "repeated_calls", "invented_arguments", "unanswered_calls", "model_calls", "input_tokens",
    "output_tokens", "seconds",
    "reward", "trials", "ended", "error",
)  # fmt: skip
"""The columns of a row, in order; `Report.to_rows` says what they mean."""

# A spreadsheet runs a text that begins like this as a formula (OWASP, "CSV Injection").
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def make_row(record: Record) -> Row:
    """Return the row of a conversation, or of one that could not be measured."""
    row: Row = {}
    for name in COLUMNS:
        value = getattr(record, name, None)
        if isinstance(value, tuple | Mapping):
            value = len(value)
        row[name] = value
    row["is_measured"] = isinstance(record, ConversationRecord)
    if isinstance(record, ConversationRecord):
        if record.progress_range is not None:
            row["progress_at_least"], row["progress_at_most"] = record.progress_range
        if record.turn_seconds:
            row["seconds"] = sum(record.turn_seconds)
    return row


def write_csv(path: str | Path, rows: Iterable[Mapping[str, Cell]]) -> None:
    """Write the rows of a report as CSV in UTF-8, atomically.

    What isn't known is an empty cell. A text that a spreadsheet would run as a formula gets an apostrophe in front.

    Args:
        path: The file.
        rows: Those of `Report.to_rows()`; you may add columns, the same to each row.

    Raises:
        InputError: It cannot be written there.
    """
    rows = list(rows)
    columns = list(rows[0]) if rows else COLUMNS
    text = StringIO()
    writer = csv.DictWriter(text, fieldnames=columns)
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _guard_formula(value) for name, value in row.items()})
    write_atomically(path, text.getvalue())


def _guard_formula(value: Cell) -> Cell:
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return value
