"""Run by test_guided_persistence.py in processes of their own: LangGraph reads its strictness when it is imported.

    python strict_checkpoints.py first|second DATABASE

Prints one JSON line with what the thread holds.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from arq_graph import create_guided_agent
from arq_graph.nodes import GuidelineMatcher, MessageReviser
from tests.apps.desk import desk, says, thread
from tests.brain import brain

AGENT = desk(confirm={"get_order": "operator"})
APPROVED = Command(resume={"decisions": [{"type": "approve"}]})


def model() -> Any:
    asked = {"order_id": "A-1"}
    return brain(
        judge={"G1": lambda asked: 9 if "Where" in asked.lines[-1].get("text", "Where") else 2},
        call={"get_order": asked},
        reply=lambda asked: f"Reply to line {len(asked.lines)}",
    )


def app(checkpointer: Any) -> Any:
    return create_guided_agent(model(), AGENT, checkpointer=checkpointer)


def foreign(checkpointer: Any) -> Any:
    """Our nodes in a graph whose own state names nothing but messages."""
    builder = StateGraph(MessagesState)
    builder.add_node("match", GuidelineMatcher(model(), AGENT))
    builder.add_node("reply", MessageReviser(model(), AGENT))
    builder.add_edge(START, "match")
    builder.add_edge("match", "reply")
    return builder.compile(checkpointer)


def first(path: str) -> Any:
    with SqliteSaver.from_conn_string(path) as saver:
        app(saver).invoke(says("Hello"), thread())
        app(saver).invoke(says("Where is A-1?"), thread())
        foreign(saver).invoke({"messages": [HumanMessage("Hello")]}, thread("foreign"))
        return app(saver).get_state(thread())


async def second(path: str) -> Any:
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        await foreign(saver).ainvoke({"messages": [HumanMessage("Hello again")]}, thread("foreign"))
        await app(saver).ainvoke(APPROVED, thread())
        await app(saver).ainvoke(says("Thanks"), thread())
        return await app(saver).aget_state(thread())


def in_memory() -> None:
    saver = MemorySaver()
    app(saver).invoke(says("Where is A-1?"), thread())
    app(saver).invoke(APPROVED, thread())
    app(saver).invoke(says("Thanks"), thread())


def main(step: str, path: str) -> None:
    if step == "first":
        in_memory()
    snapshot = first(path) if step == "first" else asyncio.run(second(path))
    values = snapshot.values
    found = {
        "waits": bool(snapshot.interrupts),
        "kinds": [message.type for message in values["messages"]],
        "replies": [m.content for m in values["messages"] if m.type == "ai" and m.content],
        "applied": {record.guideline: record.times for record in values["applied_guidelines"]},
        "types": sorted(
            {type(item).__name__ for name in values if name != "messages" for item in values[name]}
        ),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
