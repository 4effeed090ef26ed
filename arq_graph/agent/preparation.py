"""Asking ahead of all conversations what never changes about a guideline, and keeping the answers in a JSON file.

Two properties of a guideline are the same in every turn: whether its action is continuous, and whether a tool's
result could make its condition true. Asked once, they are not asked in each turn (ARQ paper, Appendix A, asks
the first in the turn; the second is ours). An answer belongs to the wording of a guideline, not to its id: it
holds while condition and action are what they were, wherever in the specification the guideline stands. The file is a
list of answers, each with the wording that it is about, for the designer to look over.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, TypeAdapter, ValidationError, create_model

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.agent.spec import Agent, Guideline, prepared_path
from arq_graph.errors import InputError, ReasoningError, SpecError
from arq_graph.models.offline.model import is_stand_in
from arq_graph.models.resolve import ChatModelLike
from arq_graph.reasoning.answer import Answer, Question
from arq_graph.reasoning.blueprint import ARQ, query, respond
from arq_graph.reasoning.reasoner import Reasoner
from arq_graph.reasoning.templates import PromptTemplate

BATCH_SIZE = 10
FOLDER = Path(__file__).parent

A = TypeVar("A", bound=Agent)


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
    """An entry of the file: what was answered about guidelines of this condition and action.

    A condition that is None is always true, or is a function, which the model does not see.
    """

    condition: str | None
    action: str | None
    answer: StaticProperties


Wording = tuple[str | None, str | None]
Answers = Mapping[Wording, StaticProperties]

_FILE = TypeAdapter(list[PreparedAnswer])


def prepare(agent: A, model: ChatModelLike, given: str | os.PathLike[str] | None) -> A:
    """Ask about all batches at the same time, keep what was answered, and raise what a batch ended with."""
    path = Path(given) if given is not None else agent.file and prepared_path(agent.file)
    answers = read_answers(path) if path and path.exists() else {}
    unknown = [g for g in agent.guidelines if is_open(g) and _wording(g) not in answers]
    if not unknown:
        return filled(agent, answers)
    if is_stand_in(model):
        raise InputError(
            "the offline model cannot tell what never changes about a guideline: name another model"
        )
    if path and not os.access(path.parent, os.W_OK):  # before a model is paid for what goes into the file
        raise SpecError("there is no folder to write the prepared answers in", file=str(path))
    batches = [unknown[start : start + BATCH_SIZE] for start in range(0, len(unknown), BATCH_SIZE)]
    replies = Reasoner(model, module="prepare").ask_all([_question(batch) for batch in batches])
    for batch, reply in zip(batches, replies, strict=True):
        if isinstance(reply, Answer):
            answers |= {_wording(g): getattr(reply.value, g.id) for g in batch}
    if path and answers:
        kept = {wording: answers[wording] for g in agent.guidelines if (wording := _wording(g)) in answers}
        entries = [PreparedAnswer(condition=c, action=a, answer=said) for (c, a), said in kept.items()]
        write_atomically(path, _FILE.dump_json(entries, indent=2).decode() + "\n")
    if failed := next((reply for reply in replies if isinstance(reply, ReasoningError)), None):
        answered = sum(_wording(g) in answers for g in unknown)
        where = f"; {path} keeps the answers" if path else ""
        failed.add_note(f"{answered} of {len(unknown)} guidelines were answered{where}.")
        raise failed
    return filled(agent, answers)


def is_open(guideline: Guideline) -> bool:
    """Whether something about a guideline would be asked in every turn."""
    return (guideline.continuous is None and guideline.action is not None) or (
        guideline.sensitive_to_tools is None and isinstance(guideline.condition, str)
    )


def filled(agent: A, answers: Answers) -> A:
    """Fill in what the designer left open; a condition that is a function stays with the code."""
    guidelines = []
    for g in agent.guidelines:
        update = {}
        if said := answers.get(_wording(g)):
            if g.continuous is None and g.action is not None:
                update["continuous"] = said.continuous
            if g.sensitive_to_tools is None and not callable(g.condition):
                update["sensitive_to_tools"] = g.condition is not None and said.sensitive_to_tools
        guidelines.append(g.model_copy(update=update))
    return agent.replace(guidelines=guidelines)


def read_answers(path: Path) -> dict[Wording, StaticProperties]:
    """Read a file of answers."""
    try:
        entries = _FILE.validate_json(path.read_bytes())
    except OSError as error:
        raise SpecError(f"the prepared answers cannot be read: {error}", file=str(path)) from error
    except ValidationError as error:
        said = f"is not a file of prepared answers: {error.errors()[0]['msg']}"
        raise SpecError(f"{said}; delete it and prepare the agent again", file=str(path)) from None
    return {(each.condition, each.action): each.answer for each in entries}


def _wording(guideline: Guideline) -> Wording:
    return None if callable(guideline.condition) else guideline.condition, guideline.action


def _question(batch: Sequence[Guideline]) -> Question[Any]:
    ids = [g.id for g in batch]
    worded = zip(ids, map(_wording, batch), strict=True)
    shown = [{"id": id, "condition": condition, "action": action} for id, (condition, action) in worded]
    fields: dict[str, Any] = {id: (StaticProperties, respond(f"Guideline {id}.")) for id in ids}
    blueprint = create_model("Preparation", __base__=ARQ, __doc__="Each guideline by its id.", **fields)
    template = PromptTemplate(FOLDER / "preparation.md", FOLDER)
    messages = [
        SystemMessage(template.render("head", {"guidelines": shown})),
        HumanMessage(template.render("tail", {"ids": ids})),
    ]
    return Question(blueprint, messages, name=f"{ids[0]}-{ids[-1]}" if len(ids) > 1 else ids[0])
