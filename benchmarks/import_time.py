"""How much longer `import arq_graph` takes than `import langgraph.graph`, each in an interpreter of its own."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time


def seconds(statement: str, runs: int = 7) -> float:
    """Median seconds of one statement in fresh interpreters, their start included."""
    taken = []
    for _ in range(runs):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def ratio() -> tuple[float, float, float]:
    """Seconds of `import langgraph.graph`, of `import arq_graph`, and of both with the agent's names in use."""
    return (
        seconds("import langgraph.graph"),
        seconds("import arq_graph"),
        seconds("from arq_graph import Agent, Guideline, create_guided_agent"),
    )
