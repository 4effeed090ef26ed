"""`arq-graph explain`: why the agent said what it said last."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph

from arq_graph.agent.state import AgentState
from arq_graph.cli.explanation import explanation_of, explanation_record
from arq_graph.cli.screen import command, output, print_json, sentence, words
from arq_graph.cli.threads import ThreadStore, existing_threads
from arq_graph.cli.turn import last_turn
from arq_graph.errors import InputError


def explain_thread(thread: str | None, db: Path | None, as_json: bool) -> None:
    """Print why the last reply of a thread is what it is."""
    with existing_threads(db) as threads:
        known = threads.latest()
        if thread is None and not known:
            raise InputError(f"{threads.file} holds no thread yet: hold a conversation first")
        id = known[0] if thread is None else thread
        turn = last_turn(_values(threads, id))
        if turn is None:
            there = f"; the latest are {', '.join(known)}" if known else ""
            raise InputError(f"{threads.file} holds no thread {id!r} in which a customer spoke{there}")
        about = threads.about(id)
        if as_json:
            print_json({"thread": id, **explanation_record(turn, about)})
            return
        title = f" · {about.model} · mode {about.mode}" if about else ""
        console = output()
        console.print(
            sentence(
                words(about.agent if about else "Thread", "bold"),
                f"{title} · thread {id}, turn {turn.number}",
            )
        )
        console.print()
        for part in explanation_of(turn, about):
            console.print(part)
        if turn.reply is None and about and about.file:
            console.print()
            console.print(words("The turn is unfinished. Go on with:"))
            where = ["--db", str(db)] if db else []
            console.print(command("arq-graph", "chat", about.file, "--thread", id, *where), soft_wrap=True)


def _values(threads: ThreadStore, thread: str) -> Mapping[str, Any]:
    """The state of a thread, without the agent that wrote it."""
    builder = StateGraph(AgentState)
    builder.add_node("read", lambda _: {})
    builder.add_edge(START, "read")
    reader = builder.compile(threads.checkpointer)
    values: Mapping[str, Any] = reader.get_state({"configurable": {"thread_id": thread}}).values
    return values
