"""What `eager` costs and saves in a turn, with a model that takes a second for each call."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from arq_graph import ScriptedChatModel, create_guided_agent
from arq_graph.models.scripted import ScriptedCall
from benchmarks.counting import waves
from benchmarks.in_process import agent_of, answer
from benchmarks.turn import TURN
from tests.reasoning.endpoint import Request

SECONDS = 1.0
SIZES = [(20, 1), (20, 10), (200, 10)]
"""Guidelines, and tools of which each belongs to one."""
TURNS = {
    "no call": {"calls": False},
    "a call": {},
    "a call that changes the reply": {"changes": True},
}


@dataclass(frozen=True)
class Cost:
    """What one turn takes: model calls and their waves, what is sent and written, and how long the customer waits."""

    turn: str
    eager: bool
    calls: int
    waves: int
    characters: int
    tokens: int
    seconds: float


def costs(guidelines: int, tools: int, count: Callable[[str], int]) -> Iterator[Cost]:
    """Each kind of turn without and with `eager`; `count` gives the tokens of an answer."""
    for turn, what in TURNS.items():
        for eager in (False, True):
            made: list[tuple[Request, int, str]] = []

            def slowly(call: ScriptedCall) -> str:
                arrived = time.monotonic()
                time.sleep(SECONDS)
                text = answer(call, **what)  # noqa: B023
                sent = len(call.text) + len(json.dumps(call.schema))
                made.append((Request({}, arrived, time.monotonic()), sent, text))  # noqa: B023
                return text

            app = create_guided_agent(ScriptedChatModel(slowly), agent_of(guidelines, tools), eager=eager)
            started = time.monotonic()
            app.invoke(TURN)
            seconds = time.monotonic() - started
            requests, sent, texts = zip(*made, strict=True)
            yield Cost(turn, eager, len(made), waves(requests), sum(sent), sum(map(count, texts)), seconds)
