"""A run of an evaluation that is made to be killed: `python -m tests.slow.killed_evaluation RESULTS RUNS`.

It prints a line for each conversation that its app begins, so that whoever started it knows how far it is.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from arq_graph.milestones import MilestoneGraph
from arq_graph.milestones.evaluation.runner import evaluate
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.reports.report import write_report
from arq_graph.milestones.users.spec import UserSpec


class App:
    """Buys in every second conversation."""

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        thread = config["configurable"]["thread_id"]
        if len(input["messages"]) == 1:
            print("began", thread, flush=True)
        await asyncio.sleep(0.002)
        run = int(thread.split(" / ")[2])
        if run % 2:
            call = {"name": "buy", "args": {}, "id": "1"}
            bought = [AIMessage("", tool_calls=[call]), ToolMessage("done", tool_call_id="1")]
            return {"messages": [*bought, AIMessage("Ünïcode")]}
        return {"messages": [AIMessage("No lamps. " * 50)]}


def main(results: Path, runs: int) -> None:
    graph = MilestoneGraph.from_actions([{"name": "buy", "kwargs": {}}])
    user = UserSpec.model_validate({"intents": ["A lamp, please."], "closing": ""})
    suite = Suite(
        scenarios=tuple(Scenario(name=f"lamp {number}", user=user, milestones=graph) for number in range(5))
    )
    report = evaluate(suite, {"a": App(), "b": App()}, runs=runs, concurrency=8, results=results, resume=True)
    write_report(results.with_suffix(".report.json"), report)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
