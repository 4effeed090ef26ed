"""Asking for one step: the prediction, then the similarity; the sync and the async side differ in who performs it."""

from __future__ import annotations

from collections.abc import Generator
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
from arq_graph.reasoning.performing import aperform_steps, perform_steps


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

    def given(wanted: _Predict | _Score) -> Any:
        if isinstance(wanted, _Predict):
            return predictor.predict(predictor.prepare(wanted.step))
        return scorer.scores([wanted.pair])[0]

    return perform_steps(_outcome(step), given)


async def aperform(predictor: Predictor, scorer: Scorer, step: TurnStep) -> StepOutcome:
    """What came of a step, without blocking."""

    async def given(wanted: _Predict | _Score) -> Any:
        if isinstance(wanted, _Predict):
            return await predictor.apredict(predictor.prepare(wanted.step))
        return (await scorer.ascores([wanted.pair]))[0]

    return await aperform_steps(_outcome(step), given)
