"""The library's own time in a turn, and how much of each prompt stays the same from turn to turn."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import defaultdict
from itertools import pairwise
from typing import Any

from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Matching, create_guided_agent
from benchmarks.in_process import agent_of, model

TURN = {"messages": [("user", "Where is my order ORD-1001?")]}
QUESTIONS = [
    "Hello, where is my order ORD-1001?",
    "Thanks. And can it be sent to another address than the one I gave?",
    "It would be my office, Market Street 4, if that is possible.",
    "What about the invoice: will it be sent there too?",
    "Good. How long do I have to return it if it does not fit?",
    "And who pays for sending it back?",
]


def milliseconds(guidelines: int, runs: int = 50, **matching: Any) -> tuple[float, float]:
    """Median milliseconds of a turn with one tool call, sync and async; `matching` are the fields of `Matching`."""
    asked, agent = model(), agent_of(guidelines)
    app = create_guided_agent(asked, agent, matching=Matching(**matching))
    app.invoke(TURN)
    sync = []
    for _ in range(runs):
        started = time.perf_counter()
        app.invoke(TURN)
        sync.append(time.perf_counter() - started)

    async def measured() -> list[float]:
        taken = []
        for _ in range(runs):
            started = time.perf_counter()
            await app.ainvoke(TURN)
            taken.append(time.perf_counter() - started)
        return taken

    return 1000 * statistics.median(sync), 1000 * statistics.median(asyncio.run(measured()))


def stable_prefix(guidelines: int = 20) -> dict[str, tuple[float, float]]:
    """Per blueprint: the smallest and the mean share of a turn's prompt that the next turn's prompt begins with."""
    asked = model()
    app = create_guided_agent(asked, agent_of(guidelines), checkpointer=MemorySaver())
    turns: list[dict[tuple[str, str], str]] = []
    for question in QUESTIONS:
        seen = len(asked.calls)
        app.invoke({"messages": [("user", question)]}, {"configurable": {"thread_id": "1"}})
        first_looks: dict[tuple[str, str], str] = {}
        for call in asked.calls[seen:]:
            # One prompt a head: the first look of this turn.
            first_looks.setdefault((call.blueprint or "", call.messages[0].text), call.text)
        turns.append(first_looks)
    shares = defaultdict(list)
    for before, after in pairwise(turns):
        for key, prompt in before.items():
            if key in after:
                shares[key[0]].append(_common_prefix(prompt, after[key]) / len(prompt))
    return {name: (min(values), statistics.mean(values)) for name, values in shares.items()}


def _common_prefix(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
