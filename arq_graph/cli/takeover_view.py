"""How checks and a takeover look in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.table import Table
from rich.text import Text

from arq_graph.agent.check import CheckDecision
from arq_graph.agent.takeover import Takeover, TakeoverSummary
from arq_graph.cli.screen import Row, join_parts, label_grid, safe_text

HOW_TO_WRITE = "/colleague TEXT writes to the customer as the person; /give-back gives the conversation back."


def format_checks(decisions: Iterable[CheckDecision]) -> Iterator[Text]:
    """Yield each decision on a line: the check, what it read, how it came out, and why."""
    for decision in decisions:
        outcome = safe_text("passed", "green")
        if not decision.passed:
            outcome = safe_text(f"failed: {decision.then}", "yellow")
        reason = f" · {decision.reason}" if decision.reason else ""
        yield join_parts(safe_text(decision.check, "bold"), f" ({decision.on}) ", outcome, reason)


def takeover_view(takeover: Takeover, *, with_summary: bool = True) -> Table:
    """Lay out who has the conversation, and what they have to know."""
    by = "the agent" if takeover.by == "agent" else takeover.by or "a person"
    reason = f" · {takeover.reason}" if takeover.reason else ""
    rows: list[Row] = [("handed", "bold yellow", [safe_text(f"over to a person by {by}{reason}")])]
    summary = TakeoverSummary()
    if with_summary and takeover.summary is not None:
        summary = takeover.summary
    for label in ("asked", "done", "agreed", "journeys"):
        if texts := getattr(summary, label):
            rows.append((label, "dim", [safe_text(text) for text in texts]))
    if summary.open_question:
        rows.append(("open", "dim", [safe_text(summary.open_question)]))
    return label_grid(rows)
