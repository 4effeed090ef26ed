"""One step compared with its ground truth: was it the right action, with the right parameters, and how similar?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self, get_args

from pydantic import Field

from arq_graph.milestones.reports.records import Record
from arq_graph.milestones.turn_level.actions import Action, Text, ToolCall
from arq_graph.milestones.turn_level.steps import TurnStep
from arq_graph.milestones.values import same_value

NOT_GIVEN = "no prediction was given for this step"

Confusion = Literal[
    "called_instead_of_answering",  # the truth is a final answer, and a tool was called
    "answered_instead_of_calling",
    "wrong_tool",  # others were called, or one of them too few or too many times
    "wrong_parameters",  # the right tools, with other parameters; the action itself is right
    "no_action",  # neither words nor calls
    "error",  # the agent raised
    "no_prediction",  # recorded predictions leave the step out, or the agent gave None
]
"""How a step went wrong."""
CONFUSIONS: tuple[Confusion, ...] = get_args(Confusion)


class StepOutcome(Record):
    """One step, compared with its ground truth. Pre-Act 4.2.

    Args:
        id: The conversation's id.
        step: Which of its steps, from 1.
        truth: The action that was taken.
        predicted: The action that the agent takes; None where it raised, or where none was given.
        matched: Whether the action is the right one: both are final answers, or the same tools are called, each
            as many times. Words beside calls do not count.
        parameters: Whether the calls of a matched step pair up with all parameters the same (see
            `values.same_value`); None elsewhere, and where the true call itself is malformed.
        similarity: How similar the answers are, 0 to 1, where both actions are final answers; None also where
            the similarity raised.
        confusion: How the step went wrong; None where it is right.
        error: What the agent raised, or the similarity; the action is compared all the same where it is there.
    """

    id: Text
    step: int
    truth: Action
    predicted: Action | None
    matched: bool
    parameters: bool | None = None
    similarity: Annotated[float, Field(ge=0, le=1)] | None = None
    confusion: Confusion | None = None
    error: Text | None = None

    @classmethod
    def of(
        cls, step: TurnStep, predicted: Action | None, similarity: float | None, error: str | None
    ) -> Self:
        """The outcome of a step; `error` says why there is no prediction, or no similarity of two final answers."""
        truth = step.truth
        matched = predicted is not None and (truth.kind, truth.tools) == (predicted.kind, predicted.tools)
        parameters = _same_calls(truth.calls, predicted.calls) if predicted and matched else None
        confusion: Confusion | None = None
        if predicted is None:
            confusion = "no_prediction" if error == NOT_GIVEN else "error"
        elif not matched:
            confusion = _confusion(truth, predicted)
        elif parameters is False:
            confusion = "wrong_parameters"
        return cls(
            id=step.conversation,
            step=step.number,
            truth=truth,
            predicted=predicted,
            matched=matched,
            parameters=parameters,
            similarity=similarity,
            confusion=confusion,
            error=error,
        )


def _confusion(truth: Action, predicted: Action) -> Confusion:
    if predicted.kind == "nothing":
        return "no_action"
    if truth.kind == "answer":
        return "called_instead_of_answering"
    return "answered_instead_of_calling" if predicted.kind == "answer" else "wrong_tool"


def _same_calls(truth: Sequence[ToolCall], predicted: Sequence[ToolCall]) -> bool | None:
    """Whether calls pair up one to one, by tool and arguments, in any order: Pre-Act's full parameter match.

    A schema's default is not filled in: leaving an argument out is not the same as giving its default. Where there is
    no true call, or a malformed one, there is nothing to compare with.
    """
    if not truth or any(isinstance(call.arguments, str) for call in truth):
        return None
    left = list(predicted)
    for call in truth:
        # Sameness is an equivalence, so the first that fits is as good as any.
        fits = (each.tool == call.tool and same_value(call.arguments, each.arguments) for each in left)
        at = next((index for index, fit in enumerate(fits) if fit), None)
        if at is None:
            return False
        del left[at]
    return True
