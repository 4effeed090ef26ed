"""The figures over all steps: action recall, F1 of calls and answers, parameter match, similarity, confusion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import fsum

from arq_graph.milestones.reports.records import Record
from arq_graph.milestones.turn_level.actions import Action
from arq_graph.milestones.turn_level.outcomes import CONFUSIONS, Confusion, StepOutcome


class Share(Record):
    """Of how many steps something is true, of how many it could be, and count / n (None where n is 0)."""

    count: int
    n: int
    rate: float | None

    @classmethod
    def of(cls, count: int, n: int) -> Share:
        """The share of two numbers."""
        return cls(count=count, n=n, rate=count / n if n else None)


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

    @classmethod
    def of(cls, correct: int, predicted: int, actual: int) -> PrecisionRecall:
        """The figures of three counts."""
        both = predicted + actual
        return cls(
            correct=correct,
            predicted=predicted,
            actual=actual,
            precision=correct / predicted if predicted else None,
            recall=correct / actual if actual else None,
            f1=2 * correct / both if both else None,
        )


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
        confusion: How many steps went wrong in which way (`outcomes.Confusion`), all ways named.
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


def turn_metrics(outcomes: Iterable[StepOutcome]) -> TurnMetrics:
    """The figures over compared steps. Cost O(steps)."""
    held = list(outcomes)
    calls, answers = Counter[str](), Counter[str]()
    confusion: Counter[Confusion] = Counter()
    mistaken: Counter[tuple[str, str]] = Counter()
    for outcome in held:
        truth, predicted = outcome.truth, outcome.predicted or Action()
        calls["correct"] += (truth.tools & predicted.tools).total()
        calls["predicted"] += len(predicted.calls)
        calls["actual"] += len(truth.calls)
        answers["correct"] += truth.kind == predicted.kind == "answer"
        answers["predicted"] += predicted.kind == "answer"
        answers["actual"] += truth.kind == "answer"
        if outcome.confusion is not None:
            confusion[outcome.confusion] += 1
        if not outcome.matched:
            missing = "no prediction" if outcome.confusion == "no_prediction" else "error"
            mistaken[truth.label, predicted.label if outcome.predicted else missing] += 1
    matches = [outcome.parameters for outcome in held if outcome.parameters is not None]
    similarities = [outcome.similarity for outcome in held if outcome.similarity is not None]
    return TurnMetrics(
        steps=len(held),
        conversations=len({outcome.id for outcome in held}),
        action_recall=Share.of(sum(outcome.matched for outcome in held), len(held)),
        tool_calls=PrecisionRecall.of(calls["correct"], calls["predicted"], calls["actual"]),
        final_answers=PrecisionRecall.of(answers["correct"], answers["predicted"], answers["actual"]),
        parameter_match=Share.of(sum(matches), len(matches)),
        similarity=MeanSimilarity(
            n=len(similarities), mean=fsum(similarities) / len(similarities) if similarities else None
        ),
        confusion={kind: confusion[kind] for kind in CONFUSIONS},
        mistaken=tuple(
            Mistaken(truth=truth, predicted=predicted, count=count)
            for (truth, predicted), count in sorted(mistaken.items(), key=lambda item: (-item[1], item[0]))
        ),
        errors=sum(outcome.error is not None for outcome in held),
    )
