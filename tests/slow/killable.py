"""Programs that the tests kill: a turn, an evaluation, and an evaluation of an app that hangs.

python -m tests.slow.killable turn DATABASE LOG [TEXT]    one turn on a thread; without a text, finish it
python -m tests.slow.killable journey DATABASE LOG [TEXT] the same, in a journey of three steps
python -m tests.slow.killable evaluation RESULTS          conversations that print when they begin
python -m tests.slow.killable workers RESULTS             the same, in two workers
python -m tests.slow.killable hanging REPORT              conversations that never end by themselves
"""

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

from arq_graph import Agent, Guideline, Journey, JourneyStep, create_guided_agent, resume_or_invoke
from arq_graph.milestones import Limits, MilestoneGraph, Scenario, Suite, UserSpec, evaluate, write_report
from tests.brain import brain

THREAD: RunnableConfig = {"configurable": {"thread_id": "1"}}
SAVED_INPUT = "saved input"
ORDERS = [{"order_id": f"ORD-{number}"} for number in range(1, 5)]

_lock = threading.Lock()


def mark(moment: str) -> None:
    """Print the moment, and wait for a line before going on."""
    with _lock:
        print(moment, flush=True)
        sys.stdin.readline()


class MarkedSaver(SqliteSaver):
    """Marks the moments before and after each write."""

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        mark(f"saving {metadata['source']}")
        saved = super().put(config, checkpoint, metadata, new_versions)
        mark(f"saved {metadata['source']}")
        return saved

    def put_writes(self, config: Any, writes: Sequence[Any], task_id: str, task_path: str = "") -> None:
        mark("saving writes")
        super().put_writes(config, writes, task_id, task_path)
        mark("saved writes")


def make_app(log: Path, saver: Any) -> Any:
    """Return an agent that looks up four orders at once; its tool appends each call's id to the log.

    Its prompts hold a short history, so that most turns end with a summary.
    """

    def get_order(order_id: str, call_id: Annotated[str, InjectedToolCallId]) -> str:
        """Look an order up."""
        mark("tool begins")
        with log.open("a") as file:
            file.write(f"{call_id}\n")
        mark("tool took effect")
        return f"{order_id} is late"

    agent = Agent("Desk", "You help.", [Guideline("they ask about orders", "look up", tools=[get_order])])

    def summarise(_: Any) -> list[dict[str, Any]]:
        mark("summary begins")
        return [{"text": "They ask where their orders are.", "sources": ["M1"]}]

    model = brain(judge={"G1": 9}, call={"get_order": ORDERS}, summary=summarise)
    return create_guided_agent(model, agent, checkpointer=saver, history_tokens=300)


def make_journey_app(log: Path, saver: Any) -> Any:
    """Return an agent whose journey calls two tools, one after the other, and then tells how it went."""

    def get_order(order_id: str) -> str:
        """Look an order up."""
        mark("tool begins")
        return f"{order_id} is broken"

    def refund(order_id: str, call_id: Annotated[str, InjectedToolCallId]) -> str:
        """Refund an order."""
        with log.open("a") as file:
            file.write(f"{call_id}\n")
        mark("tool took effect")
        return f"refunded {order_id}"

    steps = [
        JourneyStep("order", "look the order up", tools=[get_order]),
        JourneyStep("refund", "refund it", tools=[refund], after="order"),
        JourneyStep("close", "say how it went", after="refund"),
    ]
    agent = Agent("Desk", "You help.", journeys=[Journey("return", "they want to return", steps)])
    model = brain(judge={"return": 9}, call={"get_order": ORDERS[0], "refund": ORDERS[0]})
    return create_guided_agent(model, agent, checkpointer=saver)


def run_turn(database: str, log: str, text: str = "", make: Any = make_app) -> None:
    with MarkedSaver.from_conn_string(database) as saver:
        message = {"messages": [("user", text)]} if text else None
        resume_or_invoke(make(Path(log), saver), message, THREAD, durability="sync")


def run_journey(database: str, log: str, text: str = "") -> None:
    run_turn(database, log, text, make_journey_app)


def make_lamp_suite(count: int, **fields: Any) -> Suite:
    graph = MilestoneGraph.from_actions([{"name": "buy", "kwargs": {}}])
    user = UserSpec.model_validate({"intents": ["A lamp, please."], "closing": ""})
    names = [f"lamp {number}" for number in range(count)]
    scenarios = [Scenario(name=name, user=user, milestones=graph, **fields) for name in names]
    return Suite(scenarios=tuple(scenarios))


class Shop:
    """An app that sells a lamp in every second run of a conversation."""

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        thread = config["configurable"]["thread_id"]
        if len(input["messages"]) == 1:
            # Without the run's own suffix, and in one write: a kill must not cut the line short.
            print(f"began {thread.rpartition(' / ')[0]}\n", end="", flush=True)
        await asyncio.sleep(0.005)
        if int(thread.split(" / ")[2]) % 2:
            sold = AIMessage("", tool_calls=[{"name": "buy", "args": {}, "id": "1"}])
            return {"messages": [sold, ToolMessage("done", tool_call_id="1"), AIMessage("Ünïcode")]}
        return {"messages": [AIMessage("No lamps. " * 50)]}


def run_evaluation(results: str, **settings: Any) -> None:
    settings = {"concurrency": 8, "runs": 20, "results": Path(results), "resume": True, **settings}
    report = evaluate(make_lamp_suite(5), {"a": Shop(), "b": Shop()}, **settings)
    write_report(Path(results).with_suffix(".report.json"), report)


def run_workers(results: str) -> None:
    run_evaluation(results, workers=2, concurrency=4)


def run_hanging(report: str) -> None:
    never = threading.Event()
    builder = StateGraph(MessagesState)
    builder.add_node("hang", lambda state: never.wait())
    builder.set_entry_point("hang")
    suite = make_lamp_suite(40, limits=Limits(seconds=0.2))
    arms = {"hangs": builder.compile()}
    write_report(Path(report), evaluate(suite, arms, concurrency=20))


PROGRAMS: dict[str, Any] = {
    "turn": run_turn,
    "journey": run_journey,
    "evaluation": run_evaluation,
    "workers": run_workers,
    "hanging": run_hanging,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
