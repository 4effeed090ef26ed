"""A small blueprint that the reasoner's tests ask, with good and bad answers to it."""

from __future__ import annotations

from itertools import count
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from arq_graph import ARQ, Reasoner, ScriptedChatModel, query, respond, verify


class Verdict(ARQ):
    """Judge the case."""

    rationale: str = query("Which facts decide the case?")
    score: int = respond("How sure are you, from 1 to 10?", ge=1, le=10)
    certain: bool = verify("Does the score follow from the facts?", must_be=True)


GOOD = {"rationale": "The order is late.", "score": 8, "certain": True}
UNCERTAIN = {**GOOD, "score": 3, "certain": False}
OUT_OF_RANGE = {**GOOD, "score": 11}

PROMPT: list[BaseMessage] = [SystemMessage("You are a judge."), HumanMessage("Where is my order?")]

_numbers = count()


def scripted(answers: Any, **fields: Any) -> ScriptedChatModel:
    """A scripted model that no other test's endpoint is remembered for."""
    return ScriptedChatModel(answers, **{"model_name": f"scripted-{next(_numbers)}", **fields})


def reasoner_of(model: Any, **settings: Any) -> Reasoner:
    """A reasoner that does not pause between tries."""
    return Reasoner(model, **{"backoff": 0, "timeout": 10, **settings})
