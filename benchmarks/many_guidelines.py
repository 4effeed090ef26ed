"""What grows with the number of guidelines, and what preselection finds of those that matter."""

from __future__ import annotations

import sqlite3
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver

from arq_graph import create_guided_agent
from arq_graph.nodes import GuidelineMatcher
from benchmarks.in_process import agent_of, model
from benchmarks.turn import TURN


def kilobytes_kept(guidelines: int, keep_matches: Any) -> float:
    """What the second turn of a thread adds to a SQLite database."""
    agent, asked = agent_of(guidelines), model()
    with SqliteSaver.from_conn_string(":memory:") as saver:
        matcher = GuidelineMatcher(asked, agent, keep_matches=keep_matches)
        app = create_guided_agent(asked, agent, matcher=matcher, checkpointer=saver)
        sizes = []
        for _ in range(2):
            app.invoke(TURN, {"configurable": {"thread_id": "1"}})
            sizes.append(_size(saver.conn))
    return (sizes[1] - sizes[0]) / 1000


def _size(database: sqlite3.Connection) -> int:
    columns = {"checkpoints": ("checkpoint", "metadata"), "writes": ("value",)}
    return sum(
        database.execute(f"select coalesce(sum(length({column})), 0) from {table}").fetchone()[0]
        for table, names in columns.items()
        for column in names
    )
