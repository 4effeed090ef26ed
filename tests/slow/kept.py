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


class Desk:
    """The desk, with a checkpointer that is opened anew for every turn."""

    def __init__(self, saver: str, address: str, runs: Runs) -> None:
        module, _, name = SAVERS[saver].partition(":")
        self.saver, self.address, self.runs = getattr(import_module(module), name), address, runs
        self.spec = load("server/app").DESK

    def turn(self, given: Any, at: Any = None, reply: Any = "offline") -> Any:
        """Take a turn, at an earlier checkpoint where one is given; the checkpoint that it ends with."""
        call, opened = self.runs.call, self.saver.from_conn_string(self.address)
        saver = call(*(getattr(opened, name, None) for name in ("__enter__", "__aenter__")))
        call(saver.setup, saver.setup)
        models = {"matcher": "offline", "strategy": "offline", "message": reply}
        app = create_guided_agent(models, self.spec, checkpointer=saver)
        given = {"messages": [("user", given)]} if isinstance(given, str) else given
        if at:
            state = self.runs.invoke(app, given, at, durability="sync")
        else:
            state = call(resume_or_invoke, aresume_or_invoke, app, given, THREAD, durability="sync")
        kept = call(app.get_state, app.aget_state, THREAD).config
        call(*(getattr(opened, name, None) for name in ("__exit__", "__aexit__")), None, None, None)
        messages = state["messages"]
        said = max(at for at, each in enumerate(messages) if isinstance(each, HumanMessage))
        tools = [each.name for each in messages[said:] if isinstance(each, ToolMessage)]
        asks = messages[-1].text.endswith("Reply yes to go ahead.")
        asked = "customer" if asks else "operator" if "__interrupt__" in state else None
        print(json.dumps([len(messages), tools, asked]), flush=True)
        return kept


def begin(desk: Desk) -> None:
    desk.turn("Where is my rental R-101?")
    desk.turn("Please cancel my rental R-101.")
    desk.turn("Yes please")
    desk.turn("Where is my rental R-102?", reply=ScriptedChatModel(lambda call: os._exit(DIED)))


def go_on(desk: Desk) -> None:
    desk.turn(None)
    desk.turn("I want a refund for rental R-102.")
    desk.turn(Command(resume={"decisions": [{"type": "approve"}]}))
    asked = desk.turn("Please cancel my rental R-102.")
    desk.turn("Yes please")
    desk.turn("No, thanks", at=asked)
    desk.turn("Thanks")


if __name__ == "__main__":
    step, saver, address = sys.argv[1:]
    with asyncio.Runner() as runner:
        desk = Desk(saver, address, Runs(runner if saver.startswith("async") else None))
        {"begin": begin, "go_on": go_on}[step](desk)
