"""What an evaluation writes to an app's own checkpointer: each turn once, and what was done until it went wrong."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from arq_graph.milestones import evaluate
from tests.milestones.evaluated import deed, suite


class Counting(InMemorySaver):
    """Counts what is written to it."""

    written = 0

    def put(self, *given: Any, **settings: Any) -> Any:
        self.written += 1
        return super().put(*given, **settings)


def app(checkpointer: InMemorySaver, *deeds: Any) -> Any:
    """One step after the other."""
    builder = StateGraph(MessagesState)
    for number, done in enumerate(deeds):
        builder.add_node(f"{number}", done)
        builder.add_edge(START if number == 0 else f"{number - 1}", f"{number}")
    return builder.compile(checkpointer)


def find(state: Any) -> Any:
    return {"messages": deed("find")}


def buy(state: Any) -> Any:
    return {"messages": deed("buy")}


def talk(state: Any) -> Any:
    return {"messages": [AIMessage("Done.")]}


def fail(state: Any) -> Any:
    raise RuntimeError("kaputt")


def test_each_turn_is_written_once_however_many_steps_it_took():
    kept = Counting()
    report = evaluate(suite(), {"shop": app(kept, find, buy, talk)})
    (held,) = report.conversations
    assert held.goal_completed
    assert kept.written == held.turns == 2


def test_what_a_turn_did_before_it_raised_is_written_too():
    kept = Counting()
    (held,) = evaluate(suite(), {"shop": app(kept, find, fail)}).conversations
    assert held.error == "RuntimeError: kaputt"
    assert kept.written == 1
    assert [each.name for each in held.reached] == ["Start", "find"]
