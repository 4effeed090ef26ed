"""A conversation with the desk of examples/server that two processes hold, with a new checkpointer for every turn.

python -m tests.slow.kept begin SAVER ADDRESS     three turns, and a fourth in which the process dies
python -m tests.slow.kept go_on SAVER ADDRESS     finishes it, asks an operator, and goes back to an earlier checkpoint

Each turn prints a line of JSON: how many messages there are, the tools that ran in the turn, who is asked about one.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.types import Command

from arq_graph import ScriptedChatModel, aresume_or_invoke, create_guided_agent, resume_or_invoke
from tests.running import Runs
from tests.test_examples import load

SAVERS = {
    "sqlite": "langgraph.checkpoint.sqlite:SqliteSaver",
    "async sqlite": "langgraph.checkpoint.sqlite.aio:AsyncSqliteSaver",
    "postgres": "langgraph.checkpoint.postgres:PostgresSaver",
    "async postgres": "langgraph.checkpoint.postgres.aio:AsyncPostgresSaver",
}
THREAD: Any = {"configurable": {"thread_id": "1"}}
DIED = 9
ASKS = "Reply yes to go ahead."


class Desk:
    """The desk, with a checkpointer that is opened anew for every turn."""

    def __init__(self, saver: str, address: str, runs: Runs) -> None:
        module, _, name = SAVERS[saver].partition(":")
        self.saver = getattr(import_module(module), name)
        self.address, self.runs = address, runs
        self.spec = load("server/app").DESK

    @contextmanager
    def app(self, reply: Any = "offline") -> Iterator[Any]:
        opened = self.saver.from_conn_string(self.address)
        runner = self.runs.runner
        saver = runner.run(opened.__aenter__()) if runner else opened.__enter__()
        try:
            self.runs.call(saver.setup, saver.setup)
            models = {"matcher": "offline", "strategy": "offline", "message": reply}
            yield create_guided_agent(models, self.spec, checkpointer=saver)
        finally:
            none = (None, None, None)
            _ = runner.run(opened.__aexit__(*none)) if runner else opened.__exit__(*none)

    def turn(self, given: Any, thread: Any = THREAD, **options: Any) -> None:
        if isinstance(given, str):
            given = {"messages": [("user", given)]}
        with self.app(**options) as app:
            begin = (
                (app.invoke, app.ainvoke) if thread is not THREAD else (resume_or_invoke, aresume_or_invoke)
            )
            args = (given, thread) if thread is not THREAD else (app, given, thread)
            state = self.runs.call(*begin, *args, durability="sync")
        messages = state["messages"]
        said = max(at for at, each in enumerate(messages) if isinstance(each, HumanMessage))
        tools = [each.name for each in messages[said:] if isinstance(each, ToolMessage)]
        asked = (
            "customer"
            if messages[-1].text.endswith(ASKS)
            else "operator"
            if "__interrupt__" in state
            else None
        )
        print(json.dumps([len(messages), tools, asked]), flush=True)

    def asked_before(self) -> Any:
        """The newest checkpoint at which the customer is asked whether to cancel."""

        async def collect(app: Any) -> list[Any]:
            return [each async for each in app.aget_state_history(THREAD)]

        with self.app() as app:
            history = self.runs.call(lambda: list(app.get_state_history(THREAD)), lambda: collect(app))
        for each in history:
            messages = each.values.get("messages")
            if not each.next and messages and messages[-1].text.endswith(ASKS):
                return each.config
        raise AssertionError("nobody was asked")


def begin(desk: Desk) -> None:
    desk.turn("Where is my rental R-101?")
    desk.turn("Please cancel my rental R-101.")
    desk.turn("Yes please")
    desk.turn("Where is my rental R-102?", reply=ScriptedChatModel(lambda call: os._exit(DIED)))


def go_on(desk: Desk) -> None:
    desk.turn(None)
    desk.turn("I want a refund for rental R-102.")
    desk.turn(Command(resume={"decisions": [{"type": "approve"}]}))
    desk.turn("No, thanks", desk.asked_before())
    desk.turn("Thanks")


if __name__ == "__main__":
    step, saver, address = sys.argv[1:]
    part = {"begin": begin, "go_on": go_on}[step]
    if saver.startswith("async"):
        with asyncio.Runner() as runner:
            part(Desk(saver, address, Runs(runner)))
    else:
        part(Desk(saver, address, Runs(None)))
