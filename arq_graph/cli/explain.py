"""`arq-graph explain`: why the agent said what it said last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from langgraph.graph import START, StateGraph

from arq_graph.agent.state import AgentState
from arq_graph.cli.options import AsJson, Database
from arq_graph.cli.screen import command, output, print_json, sentence, words
from arq_graph.cli.threads import ThreadNote, ThreadStore, existing_threads
from arq_graph.cli.turn import Turn, last_turn
from arq_graph.cli.turn_view import explanation_of
from arq_graph.errors import InputError


def explain(
    thread: Annotated[
        str | None, typer.Option("--thread", "-t", metavar="ID", help="Else the thread used last.")
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """See why the last reply is what it is: guidelines, tool decisions, revisions."""
    with existing_threads(db) as threads:
        known = threads.latest()
        if thread is None and not known:
            raise InputError(f"{threads.file} holds no thread yet: hold a conversation first")
        id = known[0] if thread is None else thread
        turn, about = last_turn(_values(threads, id)), threads.about(id)
    if turn is None:
        there = f"; the latest are {', '.join(known)}" if known else ""
        raise InputError(f"{threads.file} holds no thread {id!r} in which a customer spoke{there}")
    if as_json:
        print_json({"thread": id, **_record(turn, about)})
        return
    console = output()
    name = words(about.agent if about else "Thread", "bold")
    model = f" · {about.model} · mode {about.mode}" if about else ""
    console.print(sentence(name, f"{model} · thread {id}, turn {turn.number}"))
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


def _record(turn: Turn, about: ThreadNote | None) -> dict[str, Any]:
    """The explanation of a turn, for programs."""
    told = turn.as_data()
    for match in told["guidelines"]:
        texts = about.guidelines.get(match["guideline"]) if about else None
        match["condition"], match["action"] = texts or (None, None)
    return {**{name: getattr(about, name, None) for name in ("agent", "file", "model", "mode")}, **told}
