"""Compare the time of `import arq_graph` with that of `import langgraph.graph`, each in an interpreter of its own."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.scoring import read_child_seconds


def measure_statement(statement: str, runs: int = 3) -> float:
    """Return the seconds of processor time of a statement in a fresh interpreter, its start included.

    The least of several runs is the one that other processes disturbed least.
    """
    seconds: list[float] = []
    for _ in range(runs):
        start = read_child_seconds()
        subprocess.run([sys.executable, "-c", statement], check=True)
        seconds.append(read_child_seconds() - start)
    return min(seconds)


def measure_imports() -> tuple[float, float, float]:
    """Return the seconds of `import langgraph.graph`, of `import arq_graph`, and of importing the agent's names."""
    return (
        measure_statement("import langgraph.graph"),
        measure_statement("import arq_graph"),
        measure_statement("from arq_graph import Agent, Guideline, create_guided_agent"),
    )
