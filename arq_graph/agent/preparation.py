"""Asking ahead of all conversations what never changes about a guideline.

Two properties of a guideline are the same in every turn: whether its action is continuous, and whether a tool's
result could make its condition true. Asked once, they are not asked in each turn (ARQ paper, Appendix A, asks
the first in the turn; the second is ours).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import create_model

from arq_graph.agent.prepared_file import (
    PreparedAnswer,
    PreparedFile,
    check_writable,
    filled,
    prepared_path,
    wording,
)
from arq_graph.agent.spec import Agent, Guideline
from arq_graph.errors import ReasoningError
from arq_graph.reasoning.answer import Answer, Question
from arq_graph.reasoning.blueprint import ARQ, query, respond
from arq_graph.reasoning.reasoner import Reasoner
from arq_graph.reasoning.templates import PromptTemplate

BATCH_SIZE = 10

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


def prepare(agent: A, model: BaseChatModel | str, *, path: str | os.PathLike[str] | None = None) -> A:
    """Ask what is not known yet; see `Agent.prepare`."""
    preparation = _Preparation(agent, path)
    questions = preparation.questions()
    return preparation.finished(agent, _reasoner(model).ask_all(questions) if questions else [])


async def aprepare(agent: A, model: BaseChatModel | str, *, path: str | os.PathLike[str] | None = None) -> A:
    """Ask what is not known yet; see `Agent.aprepare`."""
    preparation = _Preparation(agent, path)
    questions = preparation.questions()
    return preparation.finished(agent, await _reasoner(model).aask_all(questions) if questions else [])


def _reasoner(model: BaseChatModel | str) -> Reasoner:
    return Reasoner(model, module="prepare")


class _Preparation:
    """What is known about an agent's guidelines, and what is still to be asked."""

    def __init__(self, agent: Agent, path: str | os.PathLike[str] | None) -> None:
        self._path = Path(path) if path is not None else agent.file and prepared_path(agent.file)
        kept = PreparedFile.read(self._path) if self._path else PreparedFile(guidelines={})
        self._answers = {g.id: answer for g in agent.guidelines if (answer := kept.answer(g))}
        self.unknown = [g for g in agent.guidelines if g.id not in self._answers and _is_open(g)]
        if self.unknown and self._path:
            check_writable(self._path)

    def questions(self) -> list[Question[Any]]:
        """One question for each batch of guidelines."""
        starts = range(0, len(self.unknown), BATCH_SIZE)
        return [_question(self.unknown[start : start + BATCH_SIZE]) for start in starts]

    def finished(self, agent: A, replies: Sequence[Answer[Any] | ReasoningError]) -> A:
        """Keep what was answered and fill it in.

        Raises:
            ReasoningError: A batch was not answered; what the others answered is kept.
        """
        said = [reply.value for reply in replies if isinstance(reply, Answer)]
        new = {
            g.id: PreparedAnswer(wording=wording(g), **getattr(value, g.id).model_dump())
            for g in self.unknown
            for value in said
            if hasattr(value, g.id)
        }
        answers = self._answers | new
        if new and self._path:
            in_order = {g.id: answers[g.id] for g in agent.guidelines if g.id in answers}
            PreparedFile(guidelines=in_order).write(self._path)
        for reply in replies:
            if isinstance(reply, ReasoningError):
                kept = f"are kept in {self._path}" if self._path else "are lost, as no file keeps them"
                reply.add_note(
                    f"{len(new)} of {len(self.unknown)} guidelines were answered; these answers {kept}."
                    " Prepare again to ask for the rest."
                )
                raise reply
        return agent.with_guidelines([filled(g, answers.get(g.id)) for g in agent.guidelines])


def _is_open(guideline: Guideline) -> bool:
    return (guideline.continuous is None and guideline.action is not None) or (
        guideline.sensitive_to_tools is None and isinstance(guideline.condition, str)
    )


def _question(batch: Sequence[Guideline]) -> Question[Any]:
    shown = [
        {"id": g.id, "condition": None if callable(g.condition) else g.condition, "action": g.action}
        for g in batch
    ]
    ids = [g.id for g in batch]
    fields: dict[str, Any] = {id: (StaticProperties, respond(f"Guideline {id}.")) for id in ids}
    blueprint = create_model("Preparation", __base__=ARQ, __doc__="Each guideline by its id.", **fields)
    messages = [
        SystemMessage(_template().render("head", {"guidelines": shown})),
        HumanMessage(_template().render("tail", {"ids": ids})),
    ]
    return Question(blueprint, messages, name=f"{ids[0]}-{ids[-1]}" if len(ids) > 1 else ids[0])


@cache
def _template() -> PromptTemplate:
    file = Path(__file__).with_name("preparation.md")
    return PromptTemplate(file, file.parent)
