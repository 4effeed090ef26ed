"""One step compared with its ground truth: was it the right action, with the right parameters, and how similar?"""

from __future__ import annotations

from typing import Any, Literal, get_args

from pydantic import Field

from arq_graph.errors import InputError
from arq_graph.milestones.reports.records import Record
from arq_graph.milestones.transcript import Call
from arq_graph.milestones.turn_level.actions import Action
from arq_graph.milestones.turn_level.arguments import same_calls
from arq_graph.milestones.turn_level.similarity import Pair, scorer
from arq_graph.reasoning.sections import clean

MAX_ERROR = 500
NOT_GIVEN = "no prediction was given for this step"

Confusion = Literal[
    "called_instead_of_answering",
    "answered_instead_of_calling",
    "wrong_tool",
    "wrong_parameters",
    "no_action",
    "error",
    "no_prediction",
]
"""How a step went wrong.

- `called_instead_of_answering`: the truth is a final answer, and a tool was called.
- `answered_instead_of_calling`: the reverse.
- `wrong_tool`: tools were called, but others, or one of them too few or too many times.
- `wrong_parameters`: the right tools, with other parameters. The action itself is right.
- `no_action`: neither words nor calls were predicted.
- `error`: there is no prediction, because the agent raised.
- `no_prediction`: there is none, because recorded predictions leave the step out.
"""

CONFUSIONS: tuple[Confusion, ...] = get_args(Confusion)


class CallRecord(Record):
    """A tool call, as it is written to files.

    Args:
        tool: The tool's name.
        arguments: The arguments by name.
        malformed: The raw text of arguments that are no JSON object.
    """

    tool: str
    arguments: dict[Any, Any] = Field(default_factory=dict)
    malformed: str | None = None


class ActionRecord(Record):
    """An action, as it is written to files.

    Args:
        calls: The tool calls.
        answer: The words.
    """

    calls: tuple[CallRecord, ...] = ()
    answer: str = ""

    @classmethod
    def of(cls, action: Action) -> ActionRecord:
        """The record of an action."""
        return cls(
            calls=tuple(
                CallRecord(
                    tool=clean(call.tool),
                    arguments=dict(call.arguments),
                    malformed=None if call.malformed is None else clean(call.malformed),
                )
                for call in action.calls
            ),
            answer=clean(action.answer),
        )

    def action(self) -> Action:
        """The action that was written down."""
        return Action(
            tuple(Call(call.tool, call.arguments, None, call.malformed) for call in self.calls), self.answer
        )


class StepOutcome(Record):
    """One step, compared with its ground truth.

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

    id: str
    step: int
    truth: ActionRecord
    predicted: ActionRecord | None
    matched: bool
    parameters: bool | None = None
    similarity: float | None = None
    confusion: Confusion | None = None
    error: str | None = None


def compare(
    truth: Action,
    predicted: Action | None,
    *,
    similarity: Any = None,
    id: str = "",
    step: int = 1,
    error: str = "",
) -> StepOutcome:
    """Compare one predicted action with the true one. Pre-Act 4.2.

    Args:
        truth: The action that was taken.
        predicted: The action that the agent takes; None where it raised.
        similarity: LangChain embeddings or a function of two texts; None takes `lexical_similarity`.
        id: The conversation's id.
        step: Which of its steps, from 1.
        error: What the agent raised.

    Raises:
        InputError: The true action is nothing: there is nothing to compare with.
    """
    pair = answers_to_compare(truth, predicted)
    score = scorer(similarity).scores([pair])[0] if pair else None
    return outcome_of(truth, predicted, score, id=id, step=step, error=error)


def answers_to_compare(truth: Action, predicted: Action | None) -> Pair | None:
    """The true and the predicted answer, where both actions are final answers."""
    if predicted is not None and truth.kind == predicted.kind == "answer":
        return clean(truth.answer), clean(predicted.answer)
    return None


def outcome_of(
    truth: Action,
    predicted: Action | None,
    score: float | None,
    *,
    id: str,
    step: int,
    error: str = "",
    is_given: bool = True,
) -> StepOutcome:
    """The outcome of a step whose answers, if both are answers, have this similarity; see `compare`.

    Where `is_given` is False, nobody was asked for a prediction, and none was given.
    """
    if truth.kind == "nothing":
        raise InputError(f"conversation {id!r}, step {step}: the true action is neither words nor calls")
    matched = predicted is not None and _is_right_action(truth, predicted)
    parameters = same_calls(truth.calls, predicted.calls) if predicted and matched and truth.calls else None
    if predicted is None and not error:
        error = "no prediction" if is_given else NOT_GIVEN
    confusion = None
    if not matched or parameters is False:
        confusion = _confusion(truth, predicted, parameters) if is_given else "no_prediction"
    return StepOutcome(
        id=clean(id),
        step=step,
        truth=ActionRecord.of(truth),
        predicted=None if predicted is None else ActionRecord.of(predicted),
        matched=matched,
        parameters=parameters,
        similarity=score,
        confusion=confusion,
        error=clean(error) or None,
    )


def told(raised: Exception) -> str:
    """What was raised, cut off where it is long."""
    return f"{type(raised).__name__}: {raised}"[:MAX_ERROR]


def not_scored(raised: Exception) -> str:
    """What the similarity raised; the prediction is not to blame."""
    return f"the similarity raised {told(raised)}"


def _is_right_action(truth: Action, predicted: Action) -> bool:
    return truth.kind == predicted.kind and truth.tools == predicted.tools


def _confusion(truth: Action, predicted: Action | None, parameters: bool | None) -> Confusion:
    if predicted is None:
        return "error"
    if predicted.kind == "nothing":
        return "no_action"
    if truth.kind == "answer":
        return "called_instead_of_answering"
    if predicted.kind == "answer":
        return "answered_instead_of_calling"
    return "wrong_tool" if parameters is None else "wrong_parameters"
