"""A small blueprint that the reasoner's tests ask, with good and bad answers to it."""

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

_model_numbers = count()


def script_model(answers: Any, **fields: Any) -> ScriptedChatModel:
    """Return a scripted model with a name of its own, so that nothing is remembered of its endpoint."""
    return ScriptedChatModel(answers, **{"model_name": f"scripted-{next(_model_numbers)}", **fields})


def make_reasoner(model: Any, **settings: Any) -> Reasoner:
    """Return a reasoner that doesn't pause between tries and is patient with a busy machine."""
    return Reasoner(model, **{"backoff": 0, "timeout": 120, **settings})
