"""Asking ahead of all conversations what never changes about a guideline, and keeping the answers in a JSON file.

Two properties of a guideline are the same in every turn: whether its action is continuous, and whether a tool's
result could make its condition true. Asked once, they are not asked in each turn (ARQ paper, Appendix A, asks
the first in the turn; the second is ours). An answer belongs to the wording of a guideline, not to its id: it
holds while condition and action are what they were, wherever in the specification the guideline stands.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.agent.spec import Agent, Guideline, prepared_path
from arq_graph.errors import ReasoningError, SpecError
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
    """What was answered about the guideline whose condition and action have this digest."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    wording: str
    continuous: bool
    continuous_rationale: str = ""
    sensitive_to_tools: bool
    sensitive_to_tools_rationale: str = ""


class PreparedFile(BaseModel):
    """A file of answers by guideline id."""

    model_config = ConfigDict(extra="forbid", strict=True)

    about: str = (
        "Written by arq_graph: what a model answered about each guideline, ahead of all conversations."
    )
    version: Literal[1] = 1
    guidelines: dict[str, PreparedAnswer]


def prepare(agent: A, model: BaseChatModel | str, given: str | os.PathLike[str] | None) -> A:
    """Ask about all batches at the same time, keep what was answered, and raise what a batch ended with."""
    path = Path(given) if given is not None else agent.file and prepared_path(agent.file)
    answers = answers_of(agent, path) if path and path.exists() else {}
    unknown = [g for g in agent.guidelines if g.id not in answers and _is_open(g)]
    if not unknown:
        return filled(agent, answers)
    if path and not os.access(path.parent, os.W_OK):  # before a model is paid for what goes into the file
        raise SpecError("there is no folder to write the prepared answers in", file=str(path))
    starts = range(0, len(unknown), BATCH_SIZE)
    questions = [_question(unknown[start : start + BATCH_SIZE]) for start in starts]
    replies = Reasoner(model, module="prepare").ask_all(questions)
    said = [reply.value for reply in replies if isinstance(reply, Answer)]
    new = {
        g.id: PreparedAnswer(wording=_wording(g), **getattr(value, g.id).model_dump())
        for g in unknown
        for value in said
        if hasattr(value, g.id)
    }
    answers |= new
    if new and path:
        kept = PreparedFile(guidelines={g.id: answers[g.id] for g in agent.guidelines if g.id in answers})
        write_atomically(path, f"{kept.model_dump_json(indent=2)}\n".encode())
    if failed := next((reply for reply in replies if isinstance(reply, ReasoningError)), None):
        where = f"; {path} keeps the answers" if path else ""
        failed.add_note(f"{len(new)} of {len(unknown)} guidelines were answered{where}.")
        raise failed
    return filled(agent, answers)


def _is_open(guideline: Guideline) -> bool:
    return (guideline.continuous is None and guideline.action is not None) or (
        guideline.sensitive_to_tools is None and isinstance(guideline.condition, str)
    )


def filled(agent: A, answers: dict[str, PreparedAnswer]) -> A:
    """Fill in what the designer left open; a condition that is a function stays with the code."""
    guidelines = []
    for g in agent.guidelines:
        continuous, sensitive = g.continuous, g.sensitive_to_tools
        if answer := answers.get(g.id):
            if continuous is None and g.action is not None:
                continuous = answer.continuous
            if sensitive is None and not callable(g.condition):
                sensitive = g.condition is not None and answer.sensitive_to_tools
        guidelines.append(g.model_copy(update={"continuous": continuous, "sensitive_to_tools": sensitive}))
    return agent.replace(guidelines=guidelines)


def _question(batch: Sequence[Guideline]) -> Question[Any]:
    shown = [
        {"id": g.id, "condition": None if callable(g.condition) else g.condition, "action": g.action}
        for g in batch
    ]
    ids = [g.id for g in batch]
    fields: dict[str, Any] = {id: (StaticProperties, respond(f"Guideline {id}.")) for id in ids}
    blueprint = create_model("Preparation", __base__=ARQ, __doc__="Each guideline by its id.", **fields)
    template = PromptTemplate(FOLDER / "preparation.md", FOLDER)
    messages = [
        SystemMessage(template.render("head", {"guidelines": shown})),
        HumanMessage(template.render("tail", {"ids": ids})),
    ]
    return Question(blueprint, messages, name=f"{ids[0]}-{ids[-1]}" if len(ids) > 1 else ids[0])


def _wording(guideline: Guideline) -> str:
    """A digest of what the guideline says."""
    condition = guideline.condition
    if callable(condition):
        condition = f"function {getattr(condition, '__qualname__', type(condition).__qualname__)}"
    return sha256(json.dumps([condition, guideline.action]).encode()).hexdigest()[:32]


def answers_of(agent: Agent, path: Path) -> dict[str, PreparedAnswer]:
    """What a file says about an agent's guidelines as they are worded now, by id."""
    try:
        kept = PreparedFile.model_validate_json(path.read_bytes())
    except OSError as error:
        raise SpecError(f"the prepared answers cannot be read: {error}", file=str(path)) from error
    except ValidationError as error:
        said = f"is not a file of prepared answers: {error.errors()[0]['msg']}"
        raise SpecError(f"{said}; delete it and prepare the agent again", file=str(path)) from None
    by_wording = {answer.wording: answer for answer in kept.guidelines.values()}
    return {g.id: by_wording[wording] for g in agent.guidelines if (wording := _wording(g)) in by_wording}
