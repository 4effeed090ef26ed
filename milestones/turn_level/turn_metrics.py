"""One step compared with its ground truth, the similarity of two answers, and the figures over all steps."""

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

from arq_graph.milestones.reports.records import Record
from arq_graph.milestones.reports.summary import Mean
from arq_graph.milestones.turn_level.actions import Action, Text, ToolCall
from arq_graph.milestones.values import is_same_value

# Scripts without spaces between words are taken character by character.
_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


class StepOutcome(Record):
    """One step, compared with its ground truth. Pre-Act 4.2.

    Args:
        id: The conversation's id.
        step: The number of the step in its conversation, from 1.
        truth: The action that was taken.
        predicted: The action that the agent takes; None where it raised `error`.
        similarity: The similarity of the answers, 0 to 1; None unless both actions are final answers.
    """

    model_config = ConfigDict(extra="ignore")  # a stored outcome holds its computed fields, too

    id: Text
    step: int
    truth: Action
    predicted: Action | None
    similarity: Annotated[float, Field(ge=0, le=1)] | None = None
    error: Text | None = None

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def matched(self) -> bool:
        """True if both actions are final answers, or the same tools are called, each as many times."""
        predicted = self.predicted
        if predicted is None:
            return False
        return self.truth.kind == predicted.kind and self.truth.tools == predicted.tools

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def parameters(self) -> bool | None:
        """True if the calls of a matched step pair up one to one, by tool and arguments, in any order.

        Pre-Act's full parameter match; see `values.is_same_value`. A schema's default is not filled in: leaving an
        argument out is not the same as giving its default. None if there is nothing to compare: the step is not
        matched, or there is no true call, or a malformed one.
        """
        if self.predicted is None or not self.matched or not self.truth.calls:
            return None
        if any(isinstance(call.arguments, str) for call in self.truth.calls):
            return None
        unpaired = list(self.predicted.calls)
        for call in self.truth.calls:
            counterpart = _find_same_call(call, unpaired)
            if counterpart is None:
                return False
            unpaired.remove(counterpart)
        return True


def _find_same_call(call: ToolCall, candidates: Sequence[ToolCall]) -> ToolCall | None:
    # Sameness is an equivalence, so the first that fits is as good as any.
    for candidate in candidates:
        if candidate.tool == call.tool and is_same_value(call.arguments, candidate.arguments):
            return candidate
    return None


class Share(Record):
    """The number of steps of which something is true, of n of which it could be; rate = count / n, None if n is 0."""

    count: int
    n: int
    rate: float | None


class PrecisionRecall(Record):
    """Precision and recall of one kind of action; of the predicted actions, the correct ones are right.

    Args:
        precision: correct / predicted; None if nothing was predicted.
        recall: correct / actual, the number of true ones; None if there are none.
        f1: 2 · correct / (predicted + actual), their harmonic mean; None if both are 0.
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
        action_recall: Steps whose predicted action is the right one (`StepOutcome.matched`), of all steps; those
            on which the agent raised are among them, and not right.
        tool_calls: Over single calls. Correct are those whose tool is called in the true step, each true call
            counted once: in a step with the true calls a, a, b and the predicted a, b, b two are correct.
            Parameters do not count here.
        final_answers: Over steps: correct are those where both actions are final answers.
        parameter_match: Steps with all parameters right, of the steps with the right tools.
        similarity: The mean over the steps where both actions are final answers.
        mistaken: The actions that were taken for others, most frequent first; wrong parameters are not among them.
        errors: The number of steps on which the agent raised.
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


def compute_turn_metrics(outcomes: Sequence[StepOutcome]) -> TurnMetrics:
    """Return the figures over compared steps. Cost O(steps)."""
    correct_calls = predicted_calls = actual_calls = 0
    correct_answers = predicted_answers = actual_answers = 0
    parameters: list[bool] = []
    similarities: list[float] = []
    mistakes: Counter[tuple[str, str]] = Counter()
    errors = 0
    for outcome in outcomes:
        truth, predicted = outcome.truth, outcome.predicted or Action()
        correct_calls += (truth.tools & predicted.tools).total()
        predicted_calls += len(predicted.calls)
        actual_calls += len(truth.calls)
        correct_answers += truth.kind == predicted.kind == "answer"
        predicted_answers += predicted.kind == "answer"
        actual_answers += truth.kind == "answer"
        if outcome.parameters is not None:
            parameters.append(outcome.parameters)
        if outcome.similarity is not None:
            similarities.append(outcome.similarity)
        if outcome.predicted is None:
            errors += 1
            mistakes[truth.label, "error"] += 1
        elif not outcome.matched:
            mistakes[truth.label, predicted.label] += 1
    mistaken = []
    for (label, predicted_label), count in sorted(mistakes.items(), key=lambda item: (-item[1], item[0])):
        mistaken.append(Mistaken(truth=label, predicted=predicted_label, count=count))
    return TurnMetrics(
        steps=len(outcomes),
        conversations=len({outcome.id for outcome in outcomes}),
        action_recall=_count_share([outcome.matched for outcome in outcomes]),
        tool_calls=_compute_precision_recall(correct_calls, predicted_calls, actual_calls),
        final_answers=_compute_precision_recall(correct_answers, predicted_answers, actual_answers),
        parameter_match=_count_share(parameters),
        similarity=Mean(n=len(similarities), mean=_divide(fsum(similarities), len(similarities))),
        mistaken=tuple(mistaken),
        errors=errors,
    )


def _count_share(flags: Sequence[bool]) -> Share:
    return Share(count=sum(flags), n=len(flags), rate=_divide(sum(flags), len(flags)))


def _compute_precision_recall(correct: int, predicted: int, actual: int) -> PrecisionRecall:
    return PrecisionRecall(
        correct=correct,
        predicted=predicted,
        actual=actual,
        precision=_divide(correct, predicted),
        recall=_divide(correct, actual),
        f1=_divide(2 * correct, predicted + actual),
    )


def _divide(count: float, n: int) -> float | None:
    return count / n if n else None


def measure_similarity(truth: str, predicted: str) -> float:
    """Return the F1 score of the longest common subsequence of words (ROUGE-L; Lin, 2004): 2 · LCS / (m + n).

    Words are compared without case, punctuation and compatibility forms of characters. It measures wording, not
    meaning: an answer that says the same in other words scores low.

    Returns:
        0 to 1; 1 only if the words are the same in the same order. Of texts without any word the signs are
        compared. Cost O(m · n / 64).
    """
    return Indel.normalized_similarity(_tokenize(truth), _tokenize(predicted))


def _tokenize(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return _TOKEN.findall(plain) or plain.split()
