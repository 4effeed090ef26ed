"""Short ways to say how far conversations got, without holding any."""

from __future__ import annotations

from typing import Any

from arq_graph.milestones.reports.records import ConversationRecord


def measured(id: str, goal: bool | None = True, rate: float | None = None, **more: Any) -> ConversationRecord:
    """A conversation of which goal completion and progress are known; undecided where `goal` is None."""
    if rate is None and goal is not None:
        rate = 1.0 if goal else 0.5
    fields = {
        "id": id,
        "goal_completed": goal,
        "progress_rate": rate,
        "progress_range": (0.25, 0.75) if rate is None else (rate, rate),
        "reached": (),
        "path_taken": ("Start", "End") if goal else ("Start", "find_order"),
        "events": 4,
        "turns": 2,
        "calls": 1,
    }
    return ConversationRecord(**{**fields, **more})


def runs(task: str, *goals: bool | None, **more: Any) -> list[ConversationRecord]:
    """Several runs of one task."""
    return [measured(f"{task}-{n}", goal, task=task, **more) for n, goal in enumerate(goals)]
