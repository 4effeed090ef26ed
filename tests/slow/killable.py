"""What the tests kill: a turn, an evaluation, and an evaluation of what hangs, each in a process of its own.

python -m tests.slow.killable turn DATABASE LOG [TEXT]    one turn on a thread; without a text it is only finished
python -m tests.slow.killable evaluation RESULTS          conversations whose beginning is printed
python -m tests.slow.killable workers RESULTS             the same, held by two workers
python -m tests.slow.killable hanging REPORT              conversations that never end by themselves
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import MessagesState, StateGraph

from arq_graph import Agent, Guideline, create_guided_agent, resume_or_invoke
from arq_graph.milestones import Limits, MilestoneGraph, Scenario, Suite, UserSpec, evaluate, write_report
from tests.brain import brain

THREAD: RunnableConfig = {"configurable": {"thread_id": "1"}}
SAVED_INPUT = "saved input"
ORDERS = [{"order_id": f"ORD-{number}"} for number in range(1, 5)]

_lock = threading.Lock()


def mark(moment: str) -> None:
    """Say where the turn is, and go on when told."""
    with _lock:
        print(moment, flush=True)
        sys.stdin.readline()


class MarkedSaver(SqliteSaver):
    """Marks the moments before and after everything that is saved."""

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        mark(f"saving {metadata['source']}")
        saved = super().put(config, checkpoint, metadata, new_versions)
        mark(f"saved {metadata['source']}")
        return saved

    def put_writes(self, config: Any, writes: Sequence[Any], task_id: str, task_path: str = "") -> None:
        mark("saving writes")
        super().put_writes(config, writes, task_id, task_path)
        mark("saved writes")


def turn_app(log: Path, saver: Any) -> Any:
    """An agent that looks four orders up at once; each run of its tool appends its call's id to the log."""

    def get_order(order_id: str, call_id: Annotated[str, InjectedToolCallId]) -> str:
        """Look an order up."""
        mark("tool begins")
        with log.open("a") as file:
            file.write(f"{call_id}\n")
        mark("tool took effect")
        return f"{order_id} is late"

    agent = Agent("Desk", "You help.", [Guideline("they ask about orders", "look up", tools=[get_order])])
    model = brain(judge={"G1": 9}, call={"get_order": ORDERS})
    return create_guided_agent(model, agent, checkpointer=saver)


def turn(database: str, log: str, text: str = "") -> None:
    with MarkedSaver.from_conn_string(database) as saver:
        message = {"messages": [("user", text)]} if text else None
        resume_or_invoke(turn_app(Path(log), saver), message, THREAD, durability="sync")


def lamps(count: int, **fields: Any) -> Suite:
    graph = MilestoneGraph.from_actions([{"name": "buy", "kwargs": {}}])
    user = UserSpec.model_validate({"intents": ["A lamp, please."], "closing": ""})
    names = [f"lamp {number}" for number in range(count)]
    scenarios = [Scenario(name=name, user=user, milestones=graph, **fields) for name in names]
    return Suite(scenarios=tuple(scenarios))


class Shop:
    """Sells a lamp in every second run of a conversation."""

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        thread = config["configurable"]["thread_id"]
        if len(input["messages"]) == 1:
            # Without what differs from run to run, and in one piece: a kill must not cut a line short.
            print(f"began {thread.rpartition(' / ')[0]}\n", end="", flush=True)
        await asyncio.sleep(0.005)
        if int(thread.split(" / ")[2]) % 2:
            sold = AIMessage("", tool_calls=[{"name": "buy", "args": {}, "id": "1"}])
            return {"messages": [sold, ToolMessage("done", tool_call_id="1"), AIMessage("Ünïcode")]}
        return {"messages": [AIMessage("No lamps. " * 50)]}


def evaluation(results: str, **settings: Any) -> None:
    settings = {"concurrency": 8, "runs": 20, "results": Path(results), "resume": True, **settings}
    report = evaluate(lamps(5), {"a": Shop(), "b": Shop()}, **settings)
    write_report(Path(results).with_suffix(".report.json"), report)


def workers(results: str) -> None:
    evaluation(results, workers=2, concurrency=4)


def hanging(report: str) -> None:
    never = threading.Event()
    builder = StateGraph(MessagesState)
    builder.add_node("hang", lambda state: never.wait())
    builder.set_entry_point("hang")
    suite, arms = lamps(40, limits=Limits(seconds=0.2)), {"hangs": builder.compile()}
    write_report(Path(report), evaluate(suite, arms, concurrency=20))


if __name__ == "__main__":
    {"turn": turn, "evaluation": evaluation, "workers": workers, "hanging": hanging}[sys.argv[1]](
        *sys.argv[2:]
    )
