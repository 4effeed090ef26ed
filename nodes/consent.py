"""Consent in free words: most people write more than "yes", such as "Yes, please proceed with the cancellation."

Such an answer needs two keys. Code's key is a veto (`find_reservation` in `nodes/yes.py`). The model's key is the
blueprint `Consent`, which is asked only if code finds no reservation. Neither key opens the gate alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage

from arq_graph.agent.state import PendingCall
from arq_graph.nodes.blueprint_node import PROMPTS
from arq_graph.reasoning.answer import Question
from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond
from arq_graph.reasoning.sections import normalize_text
from arq_graph.reasoning.templates import PromptTemplate


class Consent(ARQ):
    """Decide whether the customer's answer agrees to exactly the calls that they were asked about."""

    calls_in_words: str = reinstate("What would be done, call by call, with the values that matter.")
    answer_in_parts: str = query("Part by part: what does the answer say, and is that about these calls?")
    agreeing_words: str | None = respond("The words of `answer` that agree, copied exactly; null: none do.")
    left_open: str | None = respond(
        "What the answer leaves open about these calls, in a few words: a condition, a question, a change, a doubt, "
        "something to happen first, a part only. Null: nothing."
    )
    agrees: bool = respond("Does it agree that exactly these calls are made now, as they are?")


def make_consent_question(question: str, calls: Sequence[PendingCall], answer: str) -> Question[Consent]:
    """Return the question that asks a model if an answer in free words agrees to calls."""
    template = _load_template()
    values = {
        "calls": [{"tool": call.tool, "arguments": call.arguments} for call in calls],
        "question": question,
        "answer": answer,
    }
    messages = [SystemMessage(template.render("head", {})), HumanMessage(template.render("tail", values))]
    return Question(Consent, messages, name="consent")


@cache
def _load_template() -> PromptTemplate:
    return PromptTemplate(PROMPTS / "consent.md", PROMPTS)


def has_consented(consent: Any, answer: str) -> bool:
    """Return True if, by the model, the answer agrees and leaves nothing open, and the words it quotes are there."""
    quote = _normalize_quote(consent.agreeing_words or "")
    return consent.agrees and not consent.left_open and bool(quote) and quote in _normalize_quote(answer)


def _normalize_quote(text: str) -> str:
    return " ".join(normalize_text(text).casefold().split()).strip("\"'“”., !")
