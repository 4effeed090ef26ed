"""The tables of guidelines: one for each arm whose agents noted them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from arq_graph.milestones.reports.summary import Summary
from arq_graph.milestones.reports.table_format import NOT_KNOWN, Table, format_number, make_table

_COLUMNS = ("conversations", "turns", "followed", "broken", "score")
_MAX_ROWS = 30
_MAX_REASONS = 3
_NOTE = (
    "Conversations and turns in which a guideline was active; of these turns, those whose reply followed it, or broke "
    "it, as the agent itself checked; and its mean score, from 1 to 10."
)


def build_guideline_tables(summaries: Mapping[str, Summary]) -> Iterator[Table]:
    """Yield a table for each arm whose agents noted guidelines."""
    for arm, summary in summaries.items():
        rows: dict[str, dict[str, str]] = {}
        notes = [_NOTE]
        for use in summary.guidelines[:_MAX_ROWS]:
            name = f"{use.agent}: {use.guideline}" if use.guideline in rows else use.guideline
            rows[name] = {column: f"{getattr(use, column):,}" for column in _COLUMNS[:4]}
            if not use.checked:
                rows[name]["broken"] = NOT_KNOWN
            rows[name]["score"] = format_number(use.score, ".1f")
            for reason, count in list(use.reasons.items())[:_MAX_REASONS]:
                notes.append(f"{name} was broken in {count:,}: {reason}")
        if rows:
            title = f"guidelines: {arm}" if len(summaries) > 1 else "guidelines"
            yield make_table(title, _COLUMNS, rows, notes, "chart")
