"""A conversation with the desk of examples/server in two processes, with a new checkpointer for every turn.

python -m tests.slow.stored_conversation begin SAVER ADDRESS     three turns, and a fourth in which the process dies
python -m tests.slow.stored_conversation resume SAVER ADDRESS    finish it, ask an operator, go back to a checkpoint

Each turn prints a line of JSON: the number of messages, the tools that ran in the turn, who is asked about a call.
"""

import asyncio
import json
import os
import sys
from importlib import import_module
from typing import Any

from langchain_core.messages import ToolMessage
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
EXIT_CODE = 9


class Desk:
    """The desk, with a checkpointer that is opened anew for every turn."""

    def __init__(self, saver: str, address: str, runs: Runs) -> None:
        module, _, name = SAVERS[saver].partition(":")
        self.saver_class = getattr(import_module(module), name)
        self.address, self.runs = address, runs
        self.agent = load("server/app").DESK

    def run_turn(self, given: Any, checkpoint: Any = None, reply_model: Any = "offline") -> Any:
        """Run a turn, from an earlier checkpoint if there is one; return the checkpoint at its end."""
        call = self.runs.call
        context = self.saver_class.from_conn_string(self.address)
        saver = call(getattr(context, "__enter__", None), getattr(context, "__aenter__", None))
        call(saver.setup, saver.setup)
        models = {"matcher": "offline", "strategy": "offline", "message": reply_model}
        app = create_guided_agent(models, self.agent, checkpointer=saver)
        if isinstance(given, str):
            given = {"messages": [("user", given)]}
        if checkpoint:
            state = self.runs.invoke(app, given, checkpoint, durability="sync")
        else:
            state = call(resume_or_invoke, aresume_or_invoke, app, given, THREAD, durability="sync")
        last_checkpoint = call(app.get_state, app.aget_state, THREAD).config
        call(getattr(context, "__exit__", None), getattr(context, "__aexit__", None), None, None, None)
        print(json.dumps(describe_turn(state)), flush=True)
        return last_checkpoint


def describe_turn(state: Any) -> list[Any]:
    messages = state["messages"]
    tools: list[str] = []
    for message in messages:
        if message.type == "human":
            tools = []
        elif isinstance(message, ToolMessage):
            tools.append(str(message.name))
    asked = None
    if messages[-1].text.endswith("Reply yes to go ahead."):
        asked = "customer"
    elif "__interrupt__" in state:
        asked = "operator"
    return [len(messages), tools, asked]


def begin(desk: Desk) -> None:
    desk.run_turn("Where is my rental R-101?")
    desk.run_turn("Please cancel my rental R-101.")
    desk.run_turn("Yes please")
    desk.run_turn(
        "Where is my rental R-102?", reply_model=ScriptedChatModel(lambda call: os._exit(EXIT_CODE))
    )


def resume(desk: Desk) -> None:
    desk.run_turn(None)
    desk.run_turn("I want a refund for rental R-102.")
    desk.run_turn(Command(resume={"decisions": [{"type": "approve"}]}))
    question = desk.run_turn("Please cancel my rental R-102.")
    desk.run_turn("Yes please")
    desk.run_turn("No, thanks", checkpoint=question)
    desk.run_turn("Thanks")


if __name__ == "__main__":
    step, saver, address = sys.argv[1:]
    with asyncio.Runner() as runner:
        desk = Desk(saver, address, Runs(runner if saver.startswith("async") else None))
        {"begin": begin, "resume": resume}[step](desk)
