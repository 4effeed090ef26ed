"""One turn in a process of its own, made to be killed in the middle.

python -m tests.slow.killed_turn DATABASE LOG THREAD sync|async invoke|resume [TEXT]

`invoke` gives the app the customer's TEXT whatever the thread was at; `resume` finishes an unfinished turn, and then
gives it TEXT, if there is any. At every moment that a crash could make a difference the process prints a mark and
waits for a line on its stdin, or for its end, so that whoever started it can kill it right there. Each run of a tool
appends its call's id to LOG.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from arq_graph import Agent, Guideline, aresume_or_invoke, create_guided_agent, resume_or_invoke
from tests.brain import Asked, brain

ORDERS = ["ORD-1", "ORD-2", "ORD-3"]
SAVED_INPUT = "saved input"

CallId = Annotated[str, InjectedToolCallId]

_one_at_a_time = threading.Lock()


def mark(moment: str) -> None:
    """Say where the turn is, and go on when told."""
    with _one_at_a_time:
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


class MarkedAsyncSaver(AsyncSqliteSaver):
    """The same for async runs."""

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        await asyncio.to_thread(mark, f"saving {metadata['source']}")
        saved = await super().aput(config, checkpoint, metadata, new_versions)
        await asyncio.to_thread(mark, f"saved {metadata['source']}")
        return saved

    async def aput_writes(
        self, config: Any, writes: Sequence[Any], task_id: str, task_path: str = ""
    ) -> None:
        await asyncio.to_thread(mark, "saving writes")
        await super().aput_writes(config, writes, task_id, task_path)
        await asyncio.to_thread(mark, "saved writes")


def agent(log: Path) -> Agent:
    """An agent that looks up three orders at once, and sends a voucher for two of them in a second round."""

    def done(call_id: str) -> None:
        mark("tool begins")
        with log.open("a") as file:
            file.write(f"{call_id}\n")
        mark("tool took effect")

    def get_order(order_id: str, call_id: CallId) -> str:
        """Look an order up.

        Args:
            order_id: The number of the order.
        """
        done(call_id)
        return f"{order_id} is late"

    def send_voucher(order_id: str, call_id: CallId) -> str:
        """Send a voucher.

        Args:
            order_id: The number of the order.
        """
        done(call_id)
        return "sent"

    return Agent(
        "Desk",
        "You help with orders.",
        [
            Guideline("the customer asks about orders", "look them up", tools=[get_order]),
            Guideline("an order is late", "send a voucher for it", tools=[send_voucher]),
            Guideline(None, "be polite", continuous=True),
        ],
    )


def app(log: Path, saver: Any) -> Any:
    """The compiled agent with a model that marks each of its answers."""

    def vouchers(asked: Asked) -> list[dict[str, str]]:
        looked_up = {
            line["arguments"]["order_id"] for line in asked.results("get_order") if "late" in line["result"]
        }
        sent = asked.results("send_voucher")
        return [{"order_id": order} for order in sorted(looked_up)[:2]] if looked_up and not sent else []

    def marked(value: Any) -> Any:
        def answer(asked: Asked) -> Any:
            mark(f"{asked.module} answers")
            return value(asked) if callable(value) else value

        return answer

    def orders(asked: Asked) -> list[dict[str, str]]:
        return [] if asked.results("get_order") else [{"order_id": order} for order in ORDERS]

    model = brain(
        judge={"G1": marked(9), "G2": lambda asked: 9 if "is late" in str(asked.turn) else 2},
        call={"get_order": marked(orders), "send_voucher": marked(vouchers)},
        reply=marked(lambda asked: f"After {len(asked.lines)} lines: it will take a while."),
    )
    return create_guided_agent(model, agent(log), checkpointer=saver)


def main(database: str, log: str, thread: str, way: str, action: str, text: str = "") -> None:
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    message = {"messages": [("user", text)]} if text else None
    if way == "sync":
        with MarkedSaver.from_conn_string(database) as saver:
            compiled = app(Path(log), saver)
            if action == "invoke":
                compiled.invoke(message, config, durability="sync")
            else:
                resume_or_invoke(compiled, message, config, durability="sync")
        return

    async def run() -> None:
        async with MarkedAsyncSaver.from_conn_string(database) as saver:
            compiled = app(Path(log), saver)
            if action == "invoke":
                await compiled.ainvoke(message, config, durability="sync")
            else:
                await aresume_or_invoke(compiled, message, config, durability="sync")

    asyncio.run(run())


if __name__ == "__main__":
    main(*sys.argv[1:])
