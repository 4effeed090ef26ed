"""Measure the library's own time in a turn, and how much of each prompt stays the same from turn to turn."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import defaultdict
from itertools import pairwise
from typing import Any

from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Matching, create_guided_agent
from benchmarks.in_process import make_agent, make_model

TURN = {"messages": [("user", "Where is my order ORD-1001?")]}
QUESTIONS = [
    "Hello, where is my order ORD-1001?",
    "Thanks. And can it be sent to another address than the one I gave?",
    "It would be my office, Market Street 4, if that is possible.",
    "What about the invoice: will it be sent there too?",
    "Good. How long do I have to return it if it does not fit?",
    "And who pays for sending it back?",
]


def measure_turn(guideline_count: int, runs: int = 50, **matching: Any) -> tuple[float, float]:
    """Return the median milliseconds of a turn with one tool call, sync and async.

    `matching` are the fields of `Matching`.
    """
    app = create_guided_agent(make_model(), make_agent(guideline_count), matching=Matching(**matching))
    app.invoke(TURN)
    sync_seconds = []
    for _ in range(runs):
        started = time.perf_counter()
        app.invoke(TURN)
        sync_seconds.append(time.perf_counter() - started)

    async def measure_async() -> list[float]:
        seconds = []
        for _ in range(runs):
            started = time.perf_counter()
            await app.ainvoke(TURN)
            seconds.append(time.perf_counter() - started)
        return seconds

    async_seconds = asyncio.run(measure_async())
    return 1000 * statistics.median(sync_seconds), 1000 * statistics.median(async_seconds)


def measure_stable_prefixes(guideline_count: int = 20) -> dict[str, tuple[float, float]]:
    """Return by blueprint the smallest and the mean share of a prompt that the next turn's prompt begins with."""
    model = make_model()
    app = create_guided_agent(model, make_agent(guideline_count), checkpointer=MemorySaver())
    prompts_by_turn: list[dict[tuple[str, str], str]] = []
    for question in QUESTIONS:
        earlier_call_count = len(model.calls)
        app.invoke({"messages": [("user", question)]}, {"configurable": {"thread_id": "1"}})
        # Of each head, the first prompt of the turn.
        first_prompts: dict[tuple[str, str], str] = {}
        for call in model.calls[earlier_call_count:]:
            first_prompts.setdefault((call.blueprint or "", call.messages[0].text), call.text)
        prompts_by_turn.append(first_prompts)
    shares = defaultdict(list)
    for prompts, next_prompts in pairwise(prompts_by_turn):
        for key, prompt in prompts.items():
            if key in next_prompts:
                blueprint, _ = key
                shares[blueprint].append(_count_common(prompt, next_prompts[key]) / len(prompt))
    return {blueprint: (min(values), statistics.mean(values)) for blueprint, values in shares.items()}


def _count_common(text: str, other_text: str) -> int:
    """Return how many characters both texts begin with."""
    count = 0
    for character, other_character in zip(text, other_text, strict=False):
        if character != other_character:
            break
        count += 1
    return count
