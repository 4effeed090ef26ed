"""Measure how long many conversations at once take that wait for a model, beside the time of the waiting alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from arq_graph import ScriptedChatModel, create_guided_agent
from arq_graph.models.scripted import ScriptedCall
from benchmarks.counting import count_waves
from benchmarks.floor import answer_agent, make_langchain_agent
from benchmarks.in_process import answer_call, make_agent
from benchmarks.turn import TURN
from tests.reasoning.endpoint import Request

CONVERSATIONS = 200
SECONDS = 0.3
GUIDELINES = 20


@dataclass(frozen=True)
class Load:
    """One turn with a tool call in each of many conversations at once.

    Args:
        app: The app that answers.
        calls: The model calls of all conversations.
        waves: How many of its model calls a turn waits for one after the other.
        seconds: The time it took.
        processor_seconds: The time that this process was busy.
    """

    app: str
    calls: int
    waves: int
    seconds: float
    processor_seconds: float

    @property
    def ideal(self) -> float:
        """The time that the waves of one turn take."""
        return self.waves * SECONDS


def measure_loads() -> Iterator[Load]:
    """Measure guided agents and LangChain's `create_agent` with the same tool."""
    agent = make_agent(GUIDELINES)
    guided_model = _SlowModel(answer_call)
    yield _measure_load(
        f"guided agent, {GUIDELINES} guidelines", create_guided_agent(guided_model.model, agent), guided_model
    )
    eager_model = _SlowModel(answer_call)
    eager_agent = create_guided_agent(eager_model.model, agent, eager=True)
    yield _measure_load(f"guided agent, {GUIDELINES} guidelines, eager", eager_agent, eager_model)
    langchain_model = _SlowModel(answer_agent)
    yield _measure_load(
        "langchain create_agent", make_langchain_agent(langchain_model.model), langchain_model
    )


def _measure_load(name: str, app: Any, model: _SlowModel) -> Load:
    asyncio.run(app.ainvoke(TURN))  # what a first turn loads or caches isn't counted
    waves = count_waves(model.requests)
    model.requests.clear()

    async def run_all() -> None:
        await asyncio.gather(*(app.ainvoke(TURN) for _ in range(CONVERSATIONS)))

    processor_start = time.process_time()
    start = time.perf_counter()
    asyncio.run(run_all())
    seconds = time.perf_counter() - start
    processor_seconds = time.process_time() - processor_start
    return Load(name, len(model.requests), waves, seconds, processor_seconds)


class _SlowModel:
    """A chat model that answers each call after a while, and its requests."""

    def __init__(self, answer: Callable[[ScriptedCall], Any]) -> None:
        self.requests: list[Request] = []
        self.model = ScriptedChatModel(self._answer)
        self._make_answer = answer

    async def _answer(self, call: ScriptedCall) -> Any:
        arrived = time.monotonic()
        await asyncio.sleep(SECONDS)
        self.requests.append(Request({}, arrived, time.monotonic()))
        return self._make_answer(call)
