"""Predictions that were recorded elsewhere, compared with the ground truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.store import is_head
from arq_graph.milestones.transcripts.formats import Format
from arq_graph.milestones.transcripts.records import read_records
from arq_graph.milestones.turn_level.actions import Action, action_of
from arq_graph.milestones.turn_level.comparison import (
    NOT_GIVEN as NOT_GIVEN,
)
from arq_graph.milestones.turn_level.comparison import (
    StepOutcome,
    answers_to_compare,
    not_scored,
    outcome_of,
)
from arq_graph.milestones.turn_level.dataset import Dataset, DatasetSteps
from arq_graph.milestones.turn_level.evaluation import OnStep, TurnEvaluation
from arq_graph.milestones.turn_level.similarity import Pair, Scorer, scorer
from arq_graph.milestones.turn_level.steps import TurnStep

BATCH = 64

Predictions = Mapping[tuple[str, int], Action]


def read_predictions(file: str | Path) -> dict[tuple[str, int], Action]:
    """The predicted actions of a JSON Lines file, by conversation and step.

    A line is `{"id": CONVERSATION, "step": NUMBER, "calls": [{"tool": …, "arguments": {…}}]}`, or has `"answer"`
    instead of `"calls"`; steps are numbered from 1, as `steps_of` does. Lines that `arq-graph turns --out` wrote
    are read too; those without a prediction are left out.

    Raises:
        InputError: The file cannot be read, a line is none of this, or a step is predicted twice.
    """
    found: dict[tuple[str, int], Action] = {}
    for raw in read_records(Path(file)):
        place = f"{file}: line {raw.index + 1}"
        line = raw.value
        if raw.error or not isinstance(line, Mapping):
            raise InputError(f"{place}: {raw.error or 'it is no JSON object'}")
        if is_head(line) or ("predicted" in line and line["predicted"] is None):
            continue
        key = _key(line, place)
        try:
            action = action_of(line.get("predicted", line))
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
        if key in found:
            raise InputError(f"{place}: step {key[1]} of conversation {key[0]!r} is predicted twice")
        found[key] = action
    return found


def evaluate_predictions(
    predictions: Predictions,
    dataset: Dataset,
    *,
    similarity: Any = None,
    format: Format | None = None,
    limit: int | None = None,
    on_step: OnStep | None = None,
) -> TurnEvaluation:
    """Compare recorded predictions with recorded conversations; a step without one counts as an error.

    Args:
        predictions: The predicted actions by conversation and step, as `read_predictions` gives them.
        dataset: See `evaluate_turns`.
        similarity: See `evaluate_turns`; embeddings get the answers of many steps at once.
        format: See `evaluate_turns`.
        limit: See `evaluate_turns`.
        on_step: See `evaluate_turns`.

    Raises:
        InputError: The file cannot be used, or a prediction belongs to no step of the dataset.
    """
    steps = DatasetSteps(dataset, format=format, limit=limit)
    scoring = scorer(similarity)
    outcomes: list[StepOutcome] = []
    ordered = iter(steps)
    while batch := list(islice(ordered, BATCH)):
        for outcome in _compared(batch, predictions, scoring):
            outcomes.append(outcome)
            if on_step is not None:
                on_step(outcome)
    if limit is None:
        known = {(each.id, each.step) for each in outcomes}
        if stray := next((key for key in predictions if key not in known), None):
            raise InputError(
                f"there is a prediction for step {stray[1]} of conversation {stray[0]!r}, but the dataset has no such "
                "step: are they of the same dataset?"
            )
    return TurnEvaluation(tuple(outcomes), tuple(steps.broken))


def _compared(steps: list[TurnStep], predictions: Predictions, scoring: Scorer) -> Iterator[StepOutcome]:
    predicted = [predictions.get((step.conversation, step.number)) for step in steps]
    pairs = [answers_to_compare(step.truth, action) for step, action in zip(steps, predicted, strict=True)]
    scores = iter(_scored([pair for pair in pairs if pair is not None], scoring))
    for step, action, pair in zip(steps, predicted, pairs, strict=True):
        score, error = next(scores) if pair is not None else (None, "")
        yield outcome_of(
            step.truth,
            action,
            score,
            id=step.conversation,
            step=step.number,
            error=error,
            is_given=action is not None,
        )


def _scored(pairs: list[Pair], scoring: Scorer) -> list[tuple[float | None, str]]:
    """The similarity of each pair, or what was raised; where many at once fail, each is tried by itself."""
    try:
        return [(score, "") for score in scoring.scores(pairs)] if pairs else []
    except Exception as raised:
        if len(pairs) == 1:
            return [(None, not_scored(raised))]
        return [one for pair in pairs for one in _scored([pair], scoring)]


def _key(line: Mapping[str, Any], place: str) -> tuple[str, int]:
    id, step = line.get("id"), line.get("step")
    if isinstance(id, int) and not isinstance(id, bool):
        id = str(id)
    if not isinstance(id, str) or not isinstance(step, int) or isinstance(step, bool):
        raise InputError(f"{place}: it needs `id`, the conversation's, and `step`, a number from 1")
    return id, step
