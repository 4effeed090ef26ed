"""Measure what `eager` costs and saves in a turn, with a model that takes a second for each call."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from arq_graph import ScriptedChatModel, create_guided_agent
from arq_graph.models.scripted import ScriptedCall
from benchmarks.counting import count_waves
from benchmarks.in_process import answer_call, make_agent
from benchmarks.turn import TURN
from tests.reasoning.endpoint import Request

SECONDS = 0.25
SIZES = [(20, 1), (20, 10), (200, 10)]
"""Guidelines, and tools of which each belongs to one."""
TURNS = {
    "no call": {"calls_tool": False},
    "a call": {},
    "a call that changes the reply": {"result_matters": True},
}


@dataclass(frozen=True)
class Cost:
    """The cost of one turn: model calls, their waves, characters sent, tokens written, and the customer's waiting."""

    turn: str
    eager: bool
    calls: int
    waves: int
    characters: int
    tokens: int
    seconds: float


def measure_turns(
    guideline_count: int, tool_count: int, count_tokens: Callable[[str], int]
) -> Iterator[Cost]:
    """Measure each kind of turn without and with `eager`."""
    agent = make_agent(guideline_count, tool_count)
    for turn, answer_options in TURNS.items():
        for eager in (False, True):
            model = _SlowModel(answer_options)
            app = create_guided_agent(ScriptedChatModel(model.answer), agent, eager=eager)
            started = time.monotonic()
            app.invoke(TURN)
            seconds = time.monotonic() - started
            yield Cost(
                turn=turn,
                eager=eager,
                calls=len(model.requests),
                waves=count_waves(model.requests),
                characters=model.characters,
                tokens=sum(map(count_tokens, model.answers)),
                seconds=seconds,
            )


class _SlowModel:
    """Answers each call after a while, and records the requests and answers."""

    def __init__(self, answer_options: dict[str, bool]) -> None:
        self.requests: list[Request] = []
        self.answers: list[str] = []
        self.characters = 0
        self._answer_options = answer_options

    def answer(self, call: ScriptedCall) -> str:
        arrived = time.monotonic()
        time.sleep(SECONDS)
        text = answer_call(call, **self._answer_options)
        self.requests.append(Request({}, arrived, time.monotonic()))
        self.answers.append(text)
        self.characters += len(call.text) + len(json.dumps(call.schema))
        return text
