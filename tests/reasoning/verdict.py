"""A small blueprint that the reasoner's tests ask, with good and bad answers to it."""

from __future__ import annotations

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from arq_graph.reasoning.blueprint import ARQ, query, respond, verify


class Verdict(ARQ):
    """Judge the case."""

    rationale: str = query("Which facts decide the case?")
    score: int = respond("How sure are you, from 1 to 10?", ge=1, le=10)
    certain: bool = verify("Does the score follow from the facts?", must_be=True)


GOOD = {"rationale": "The order is late.", "score": 8, "certain": True}
UNCERTAIN = {**GOOD, "score": 3, "certain": False}
OUT_OF_RANGE = {**GOOD, "score": 11}

PROMPT: list[BaseMessage] = [SystemMessage("You are a judge."), HumanMessage("Where is my order?")]
