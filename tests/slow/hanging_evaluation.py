"""An evaluation of what hangs for ever: `python -m tests.slow.hanging_evaluation app|tool REPORT`."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from arq_graph.milestones import MilestoneGraph
from arq_graph.milestones.evaluation.runner import evaluate
from arq_graph.milestones.evaluation.scenario import Limits, Scenario
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.reports.report import write_report
from arq_graph.milestones.users.spec import UserSpec

NEVER = threading.Event()


class Hangs:
    def invoke(self, input: Any, config: Any = None) -> Any:
        NEVER.wait()


@tool
def hang() -> str:
    """Hang."""
    NEVER.wait()
    return "never"


def calling() -> Any:
    builder = StateGraph(MessagesState)
    call = AIMessage("", tool_calls=[{"name": "hang", "args": {}, "id": "1"}])
    builder.add_node("call", lambda state: {"messages": [call]})
    builder.add_node("tools", ToolNode([hang]))
    builder.set_entry_point("call")
    builder.add_edge("call", "tools")
    return builder.compile()


def main(what: str, file: Path) -> None:
    graph = MilestoneGraph.from_actions([{"name": "buy", "kwargs": {}}])
    user = UserSpec.model_validate({"intents": ["A lamp, please."], "closing": ""})
    limits = Limits(seconds=0.2)
    scenarios = [
        Scenario(name=f"lamp {number}", user=user, milestones=graph, limits=limits) for number in range(40)
    ]
    arms = {"hangs": Hangs() if what == "app" else calling()}
    write_report(file, evaluate(Suite(scenarios=tuple(scenarios)), arms, concurrency=20))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
