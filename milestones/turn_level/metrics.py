"""One step held against its ground truth, how near two answers are, and the figures over all steps."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from math import fsum
from typing import Annotated

from pydantic import ConfigDict, Field, computed_field
from rapidfuzz.distance import Indel

from arq_graph.milestones.reports.figures import Mean
from arq_graph.milestones.reports.records import Record
from arq_graph.milestones.turn_level.actions import Action, Text
from arq_graph.milestones.values import is_same_value

# Scripts without spaces between words are taken character by character.
_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


class StepOutcome(Record):
    """One step, compared with its ground truth. Pre-Act 4.2.

    Args:
        id: The conversation's id.
        step: Which of its steps, from 1.
        truth: The action that was taken.
        predicted: The action that the agent takes; None where it raised.
        similarity: How similar the answers are, 0 to 1, where both actions are final answers.
        error: What the agent raised.
    """

    model_config = ConfigDict(extra="ignore")  # what is read again holds what follows from it, too

    id: Text
    step: int
    truth: Action
    predicted: Action | None
    similarity: Annotated[float, Field(ge=0, le=1)] | None = None
    error: Text | None = None

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def matched(self) -> bool:
        """Whether the action is right: both are final answers, or the same tools are called, each as many times."""
        told = self.predicted
        return told is not None and (self.truth.kind, self.truth.tools) == (told.kind, told.tools)

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def parameters(self) -> bool | None:
        """Whether the calls of a matched step pair up one to one, by tool and arguments, in any order.

        Pre-Act's full parameter match; see `values.is_same_value`. A schema's default is not filled in: leaving an
        argument out is not the same as giving its default. None where there is nothing to compare: the step is not
        matched, or there is no true call, or a malformed one.
        """
        truth, told = self.truth.calls, self.predicted
        if (
            not truth
            or told is None
            or not self.matched
            or any(isinstance(each.arguments, str) for each in truth)
        ):
            return None
        left = list(told.calls)
        for call in truth:
            # Sameness is an equivalence, so the first that fits is as good as any.
            fits = (
                each
                for each in left
                if each.tool == call.tool and is_same_value(call.arguments, each.arguments)
            )
            if (fit := next(fits, None)) is None:
                return False
            left.remove(fit)
        return True


class Share(Record):
    """Of how many steps something is true, of how many it could be, and count / n (None where n is 0)."""

    count: int
    n: int
    rate: float | None


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
    """An action (its tools, or `final answer`) that was taken for another, or `nothing`, or `error`."""

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
        similarity: Its mean over the steps where both actions are final answers.
        mistaken: Which action was taken for which, most frequent first; wrong parameters are not among them.
        errors: On how many steps the agent raised.
    """

    steps: int
    conversations: int
    action_recall: Share
    tool_calls: PrecisionRecall
    final_answers: PrecisionRecall
    parameter_match: Share
    similarity: Mean
    mistaken: tuple[Mistaken, ...] = ()
    errors: int = 0


def turn_metrics(outcomes: Sequence[StepOutcome]) -> TurnMetrics:
    """The figures over compared steps. Cost O(steps)."""
    pairs = [(each.truth, each.predicted or Action()) for each in outcomes]
    answers = [(truth.kind == "answer", predicted.kind == "answer") for truth, predicted in pairs]
    matches = [each.parameters for each in outcomes if each.parameters is not None]
    similarities = [each.similarity for each in outcomes if each.similarity is not None]
    mistaken = Counter(
        (each.truth.label, each.predicted.label if each.predicted else "error")
        for each in outcomes
        if not each.matched
    )
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
        similarity=Mean(n=len(similarities), mean=_ratio(fsum(similarities), len(similarities))),
        mistaken=tuple(
            Mistaken(truth=truth, predicted=predicted, count=count)
            for (truth, predicted), count in sorted(mistaken.items(), key=lambda item: (-item[1], item[0]))
        ),
        errors=sum(each.error is not None for each in outcomes),
    )


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


def lexical_similarity(truth: str, predicted: str) -> float:
    """The F1 score of the longest common subsequence of words (ROUGE-L; Lin, 2004): 2 · LCS / (m + n).

    Words are compared without case, punctuation and compatibility forms of characters. It measures wording, not
    meaning: an answer that says the same in other words scores low.

    Returns:
        0 to 1; 1 only where the words are the same in the same order. Of texts without any word the signs are
        compared. Cost O(m · n / 64).
    """
    return Indel.normalized_similarity(_tokens(truth), _tokens(predicted))


def _tokens(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return _TOKEN.findall(plain) or plain.split()
