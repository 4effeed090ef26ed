"""Compare the time of `import arq_graph` with that of `import langgraph.graph`, each in an interpreter of its own."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time


def measure_statement(statement: str, runs: int = 5) -> float:
    """Return the median seconds of a statement in fresh interpreters, their start included."""
    seconds = []
    for _ in range(runs):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def measure_imports() -> tuple[float, float, float]:
    """Return the seconds of `import langgraph.graph`, of `import arq_graph`, and of importing the agent's names."""
    return (
        measure_statement("import langgraph.graph"),
        measure_statement("import arq_graph"),
        measure_statement("from arq_graph import Agent, Guideline, create_guided_agent"),
    )
