"""The tables of guidelines: one for each arm whose agents noted them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from arq_graph.milestones.reports.guideline_figures import GuidelineFigures
from arq_graph.milestones.reports.summary import Summary
from arq_graph.milestones.reports.table_format import NOT_KNOWN, Table, format_number, make_table

GUIDELINES = "guidelines"
_COLUMNS = ("conversations", "turns", "followed", "broken", "excused", "score")
_MAX_ROWS = 30
_MAX_EXPLAINED = 3
_NOTE = (
    "Conversations and turns in which a guideline was active; of these turns, those whose reply followed it, broke it, "
    "or did not follow it for a reason that counts, as the agent itself checked; and its mean score, from 1 to 10."
)


def build_guideline_tables(summaries: Mapping[str, Summary]) -> Iterator[Table]:
    """Yield a table for each arm whose agents noted guidelines."""
    for arm, summary in summaries.items():
        if not summary.guidelines:
            continue
        counts = Counter(figures.guideline for figures in summary.guidelines)
        rows = {}
        notes = [_NOTE]
        for figures in summary.guidelines[:_MAX_ROWS]:
            is_unique = counts[figures.guideline] == 1
            name = figures.guideline if is_unique else f"{figures.agent}: {figures.guideline}"
            rows[name] = _make_cells(figures)
            if figures.reasons and len(notes) <= _MAX_EXPLAINED:
                reasons = [f"{text} ({count})" for text, count in figures.reasons.items()]
                notes.append(f"{name} was broken: {'; '.join(reasons)}.")
        omitted = len(summary.guidelines) - len(rows)
        if omitted > 0:
            notes.append(f"The JSON report has {omitted:,} more.")
        title = f"{GUIDELINES}: {arm}" if len(summaries) > 1 else GUIDELINES
        yield make_table(title, _COLUMNS, rows, notes, "chart")


def _make_cells(figures: GuidelineFigures) -> dict[str, str]:
    cells = {"score": format_number(figures.score, ".1f")}
    for column in _COLUMNS[:-1]:
        count = getattr(figures, column)
        cells[column] = NOT_KNOWN if count is None else f"{count:,}"
    return cells
