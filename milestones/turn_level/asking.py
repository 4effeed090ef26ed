"""Asking for one step: the prediction, then the similarity; the sync and the async side differ in who performs it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterable
from dataclasses import dataclass
from typing import Any

from arq_graph.errors import ToolError
from arq_graph.milestones.turn_level.actions import action_of
from arq_graph.milestones.turn_level.agents import Predictor
from arq_graph.milestones.turn_level.comparison import (
    StepOutcome,
    answers_to_compare,
    not_scored,
    outcome_of,
    told,
)
from arq_graph.milestones.turn_level.similarity import Pair, Scorer
from arq_graph.milestones.turn_level.steps import TurnStep


@dataclass(frozen=True)
class _Predict:
    step: TurnStep


@dataclass(frozen=True)
class _Score:
    pair: Pair


_Asking = Generator[_Predict | _Score, Any, StepOutcome]


def _outcome(step: TurnStep) -> _Asking:
    """Ask for the prediction and for the similarity of a step, and compare."""
    predicted, error, score = None, "", None
    try:
        predicted = action_of((yield _Predict(step)))
    except ToolError:
        raise  # the same at every step: something must change first
    except Exception as raised:
        error = told(raised)
    pair = answers_to_compare(step.truth, predicted)
    if pair is not None:
        try:
            score = yield _Score(pair)
        except Exception as raised:
            error = not_scored(raised)
    return outcome_of(step.truth, predicted, score, id=step.conversation, step=step.number, error=error)


def perform(predictor: Predictor, scorer: Scorer, step: TurnStep) -> StepOutcome:
    """What came of a step."""
    asking = _outcome(step)
    try:
        wanted = next(asking)
        while True:
            try:
                if isinstance(wanted, _Predict):
                    given: Any = predictor.predict(predictor.prepare(wanted.step))
                else:
                    given = scorer.scores([wanted.pair])[0]
            except Exception as error:
                wanted = asking.throw(error)
            else:
                wanted = asking.send(given)
    except StopIteration as finished:
        outcome: StepOutcome = finished.value
        return outcome


async def aperform(predictor: Predictor, scorer: Scorer, step: TurnStep) -> StepOutcome:
    """What came of a step, without blocking."""
    asking = _outcome(step)
    try:
        wanted = next(asking)
        while True:
            try:
                if isinstance(wanted, _Predict):
                    given: Any = await predictor.apredict(predictor.prepare(wanted.step))
                else:
                    given = (await scorer.ascores([wanted.pair]))[0]
            except Exception as error:
                wanted = asking.throw(error)
            else:
                wanted = asking.send(given)
    except StopIteration as finished:
        outcome: StepOutcome = finished.value
        return outcome


async def at_once(
    works: Iterable[Coroutine[Any, Any, StepOutcome]], most: int
) -> AsyncGenerator[StepOutcome, None]:
    """The results of coroutines, as they come, with at most so many at work."""
    pending: set[asyncio.Task[StepOutcome]] = set()
    try:
        for work in works:
            pending.add(asyncio.ensure_future(work))
            if len(pending) >= most:
                finished, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in finished:
                    yield task.result()
        while pending:
            finished, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                yield task.result()
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
