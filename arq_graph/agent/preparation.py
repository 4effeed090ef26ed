"""Preparation: questions about guidelines that a model answers once, before any conversation.

Two properties of a guideline are the same in every turn: whether its action is continuous, and whether a tool's result
could make its condition true. If they are asked once, they need not be asked in each turn (ARQ paper, Appendix A, asks
the first in the turn; the second is ours). An answer belongs to the wording of a guideline, not to its id: it holds as
long as condition and action don't change, wherever the guideline is in the specification. The answers are stored in a
JSON file, each with its wording, for the designer to review.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, TypeAdapter, ValidationError, create_model

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.agent.guideline import Guideline
from arq_graph.agent.regular_file import read_regular_file
from arq_graph.errors import InputError, ReasoningError, SpecError
from arq_graph.models.resolve import ChatModelLike, is_offline
from arq_graph.reasoning.answer import Answer, Question
from arq_graph.reasoning.blueprint import ARQ, query, respond
from arq_graph.reasoning.reasoner import Reasoner
from arq_graph.reasoning.templates import PromptTemplate

BATCH_SIZE = 10
FOLDER = Path(__file__).parent


class StaticProperties(ARQ):
    """What can be said about a guideline before any conversation."""

    continuous_rationale: str = query(
        "In one sentence: is the action done with once it was taken, or does it shape every reply?"
    )
    sensitive_to_tools_rationale: str = query(
        "In one sentence: what would tell the agent that the condition holds, the customer or a tool's result?"
    )
    continuous: bool = respond("Is the action, or a part of it, continuous?")
    sensitive_to_tools: bool = respond("Could the result of a tool make the condition true?")


class PreparedAnswer(BaseModel):
    """An entry of the file: the answer for guidelines with this condition and action.

    `condition` is None if it is always true, or is a function, which the model doesn't see.
    """

    condition: str | None
    action: str | None
    answer: StaticProperties


Wording = tuple[str | None, str | None]
Answers = Mapping[Wording, StaticProperties]

_FILE = TypeAdapter(list[PreparedAnswer])


def prepare_guidelines(
    guidelines: Sequence[Guideline], model: ChatModelLike, path: Path | None
) -> list[Guideline]:
    """Ask a model about guidelines and return them with both properties filled in.

    All batches are asked at the same time. The answers are stored at `path`, if there is one, before the error of a
    batch is raised.
    """
    answers = read_answers(path) if path and path.exists() else {}
    unanswered = []
    for guideline in guidelines:
        if needs_preparation(guideline) and _get_wording(guideline) not in answers:
            unanswered.append(guideline)
    if not unanswered:
        return apply_answers(guidelines, answers)
    if is_offline(model):
        raise InputError(
            "the offline model cannot tell what never changes about a guideline: name another model"
        )
    if path and not os.access(path.parent, os.W_OK):  # checked before the model calls, which cost money
        raise SpecError("its folder is read-only, and the answers belong beside it", file=str(path))
    starts = range(0, len(unanswered), BATCH_SIZE)
    batches = [unanswered[start : start + BATCH_SIZE] for start in starts]
    replies = Reasoner(model, module="prepare").ask_all(list(map(_make_question, batches)))
    failures: list[ReasoningError] = []
    for batch, reply in zip(batches, replies, strict=True):
        if not isinstance(reply, Answer):
            failures.append(reply)
            continue
        for guideline in batch:
            answers[_get_wording(guideline)] = getattr(reply.value, guideline.id)
    if path and answers:
        _write_answers(path, guidelines, answers)
    if failures:
        count = sum(_get_wording(guideline) in answers for guideline in unanswered)
        where = f"; {path} keeps the answers" if path else ""
        failures[0].add_note(f"{count} of {len(unanswered)} guidelines were answered{where}.")
        raise failures[0]
    return apply_answers(guidelines, answers)


def needs_preparation(guideline: Guideline) -> bool:
    """Return True if the matcher would ask about the guideline's properties every turn."""
    if guideline.continuous is None and guideline.action is not None:
        return True
    return guideline.sensitive_to_tools is None and isinstance(guideline.condition, str)


def apply_answers(guidelines: Sequence[Guideline], answers: Answers) -> list[Guideline]:
    """Return the guidelines with the properties filled in that the designer left open.

    The sensitivity of a condition that is a function stays open: code decides it.
    """
    prepared = []
    for guideline in guidelines:
        update = {}
        if answer := answers.get(_get_wording(guideline)):
            if guideline.continuous is None and guideline.action is not None:
                update["continuous"] = answer.continuous
            if guideline.sensitive_to_tools is None and not callable(guideline.condition):
                update["sensitive_to_tools"] = guideline.condition is not None and answer.sensitive_to_tools
        prepared.append(guideline.model_copy(update=update))
    return prepared


def read_answers(path: Path) -> dict[Wording, StaticProperties]:
    """Read a file of prepared answers.

    Raises:
        SpecError: The file can't be read or isn't valid.
    """
    try:
        entries = _FILE.validate_json(read_regular_file(path))
    except OSError as error:
        message = f"the prepared answers cannot be read: {error.strerror}"
        raise SpecError(message, file=str(path)) from error
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        message = f"is not a file of prepared answers: {problem}; delete it and prepare the agent again"
        raise SpecError(message, file=str(path)) from None
    return {(entry.condition, entry.action): entry.answer for entry in entries}


def _write_answers(path: Path, guidelines: Sequence[Guideline], answers: Answers) -> None:
    entries = []
    for condition, action in dict.fromkeys(map(_get_wording, guidelines)):
        if answer := answers.get((condition, action)):
            entries.append(PreparedAnswer(condition=condition, action=action, answer=answer))
    write_atomically(path, _FILE.dump_json(entries, indent=2).decode() + "\n")


def _get_wording(guideline: Guideline) -> Wording:
    condition = None if callable(guideline.condition) else guideline.condition
    return condition, guideline.action


def _make_question(batch: Sequence[Guideline]) -> Question[Any]:
    descriptions = []
    fields: dict[str, Any] = {}
    for guideline in batch:
        condition, action = _get_wording(guideline)
        descriptions.append({"id": guideline.id, "condition": condition, "action": action})
        fields[guideline.id] = (StaticProperties, respond(f"Guideline {guideline.id}."))
    blueprint = create_model("Preparation", __base__=ARQ, __doc__="Each guideline by its id.", **fields)
    template = PromptTemplate(FOLDER / "preparation.md", FOLDER)
    messages = [
        SystemMessage(template.render("head", {"guidelines": descriptions})),
        HumanMessage(template.render("tail", {"ids": list(fields)})),
    ]
    name = f"{batch[0].id}-{batch[-1].id}" if len(batch) > 1 else batch[0].id
    return Question(blueprint, messages, name=name)
