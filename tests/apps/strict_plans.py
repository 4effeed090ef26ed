"""Run by test_planning_persistence.py in a process of its own: LangGraph reads its strictness when it is imported.

    python strict_plans.py DATABASE

Prints one JSON line with the plans that a thread holds.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from arq_graph import Agent, create_guided_agent, create_planning_agent
from arq_graph.nodes import PreActPlanner, guarded_tools, route_calls
from tests.apps.desk import desk, get_order, says, thread
from tests.planning import act, planner, say

A1 = {"order_id": "A-1"}
ALONE = Agent("Desk", "You help.", tools=[get_order])


def model() -> Any:
    changed = {"observation": "another_branch", "change": {"what": "Stop.", "why": "T1: it is late."}}
    return planner([act("get_order", A1), say("It is late.", **changed), say("Bye.")], judge={"G1": 9})


def foreign(saver: Any) -> Any:
    """The planner in a graph whose own state names nothing but messages."""
    builder = StateGraph(MessagesState)
    builder.add_node("plan", PreActPlanner(model(), ALONE))
    builder.add_node("tools", guarded_tools(ALONE))
    builder.add_edge(START, "plan")
    builder.add_edge("tools", "plan")
    builder.add_conditional_edges("plan", route_calls(ALONE, otherwise=END), ["tools", END])
    return builder.compile(saver)


def main(path: str) -> None:
    found = {}
    with SqliteSaver.from_conn_string(path) as saver:
        apps = {
            "guided": create_guided_agent(model(), desk(), planning="pre-act", checkpointer=saver),
            "alone": create_planning_agent(model(), ALONE, checkpointer=saver),
            "foreign": foreign(saver),
        }
        for name, app in apps.items():
            app.invoke(says("Where is A-1?"), thread(name))
            first = app.get_state(thread(name)).values["plan"]
            app.invoke(says("Thanks"), thread(name))
            second = app.get_state(thread(name)).values["plan"]
            found[name] = [
                type(first).__name__,
                first.version,
                [step.tool for step in first.steps],
                [change.what for change in first.changes],
                [second.version, second.final_answer],
            ]
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
