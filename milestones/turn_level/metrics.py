"""The figures over all steps: action recall, F1 of calls and answers, parameter match, similarity, confusion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum

from arq_graph.milestones.reports.records import Record
from arq_graph.milestones.turn_level.actions import Action
from arq_graph.milestones.turn_level.outcomes import CONFUSIONS, Confusion, StepOutcome


class Share(Record):
    """Of how many steps something is true, of how many it could be, and count / n (None where n is 0)."""

    count: int
    n: int
    rate: float | None


class MeanSimilarity(Record):
    """A mean similarity, 0 to 1, over n steps; None where n is 0."""

    n: int
    mean: float | None


class PrecisionRecall(Record):
    """How well one kind of action is predicted.

    Args:
        correct: How many of those predicted are right.
        predicted: How many were predicted: the n of the precision.
        actual: How many there truly are: the n of the recall.
        precision: correct / predicted; None where nothing was predicted.
        recall: correct / actual; None where there are none.
        f1: 2 · correct / (predicted + actual), their harmonic mean; None where both are 0.
    """

    correct: int
    predicted: int
    actual: int
    precision: float | None
    recall: float | None
    f1: float | None


class Mistaken(Record):
    """An action (its tools, or `final answer`) that was taken for another, or `nothing`, `error`, `no prediction`."""

    truth: str
    predicted: str
    count: int


class TurnMetrics(Record):
    """Turn-level evaluation, Pre-Act 4.2 and Table 2: the figures over all steps, each with its n.

    Args:
        steps: How many steps.
        conversations: Of how many conversations.
        action_recall: Steps whose predicted action is the right one (`StepOutcome.matched`), of all steps; those
            on which the agent raised are among them, and not right.
        tool_calls: Over single calls. Correct are those whose tool is called in the true step, each true call
            counted once: in a step with the true calls a, a, b and the predicted a, b, b two are correct.
            Parameters do not count here.
        final_answers: Over steps: correct are those where both actions are final answers.
        parameter_match: Steps with all parameters right, of the steps with the right tools.
        similarity: Over the steps where both actions are final answers.
        confusion: How many steps went wrong in which way, all ways named.
        mistaken: Which action was taken for which, most frequent first; wrong parameters are not among them.
        errors: How many steps have an error: the agent raised, the similarity did, or no prediction was given.
    """

    steps: int
    conversations: int
    action_recall: Share
    tool_calls: PrecisionRecall
    final_answers: PrecisionRecall
    parameter_match: Share
    similarity: MeanSimilarity
    confusion: Mapping[Confusion, int]
    mistaken: tuple[Mistaken, ...] = ()
    errors: int = 0


def turn_metrics(outcomes: Sequence[StepOutcome]) -> TurnMetrics:
    """The figures over compared steps. Cost O(steps)."""
    pairs = [(each.truth, each.predicted or Action()) for each in outcomes]
    answers = [(truth.kind == "answer", predicted.kind == "answer") for truth, predicted in pairs]
    matches = [each.parameters for each in outcomes if each.parameters is not None]
    similarities = [each.similarity for each in outcomes if each.similarity is not None]
    confusion = Counter(each.confusion for each in outcomes)
    mistaken = Counter((each.truth.label, _label(each)) for each in outcomes if not each.matched)
    return TurnMetrics(
        steps=len(pairs),
        conversations=len({each.id for each in outcomes}),
        action_recall=_share([each.matched for each in outcomes]),
        tool_calls=_precision_recall(
            sum((truth.tools & predicted.tools).total() for truth, predicted in pairs),
            sum(len(predicted.calls) for _, predicted in pairs),
            sum(len(truth.calls) for truth, _ in pairs),
        ),
        final_answers=_precision_recall(
            sum(truth and predicted for truth, predicted in answers),
            sum(predicted for _, predicted in answers),
            sum(truth for truth, _ in answers),
        ),
        parameter_match=_share(matches),
        similarity=MeanSimilarity(n=len(similarities), mean=_ratio(fsum(similarities), len(similarities))),
        confusion={kind: confusion[kind] for kind in CONFUSIONS},
        mistaken=tuple(
            Mistaken(truth=truth, predicted=predicted, count=count)
            for (truth, predicted), count in sorted(mistaken.items(), key=lambda item: (-item[1], item[0]))
        ),
        errors=sum(each.error is not None for each in outcomes),
    )


def _label(outcome: StepOutcome) -> str:
    return outcome.predicted.label if outcome.predicted else str(outcome.confusion).replace("_", " ")


def _share(held: Sequence[bool]) -> Share:
    return Share(count=sum(held), n=len(held), rate=_ratio(sum(held), len(held)))


def _precision_recall(correct: int, predicted: int, actual: int) -> PrecisionRecall:
    return PrecisionRecall(
        correct=correct,
        predicted=predicted,
        actual=actual,
        precision=_ratio(correct, predicted),
        recall=_ratio(correct, actual),
        f1=_ratio(2 * correct, predicted + actual),
    )


def _ratio(count: float, n: int) -> float | None:
    return count / n if n else None
