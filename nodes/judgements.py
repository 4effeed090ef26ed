"""The matcher's blueprint: what is asked about one guideline (ARQ paper, 5.1.1 and Appendix A).

The query keys are the paper's, but for `new_or_subtly_different_context`, whose original is longer than the 64
characters that some providers allow for a property, and the two response keys.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import create_model

from arq_graph.agent.spec import Guideline
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond

_WORD = re.compile(r"[^\W_]+")

ACTIVE_FROM = 6
"""Lowest score that activates a guideline (ARQ paper, 5.1.1)."""


class AppliedSegment(ARQ):
    """One part of an action, and whether it was already done."""

    action_segment: str = reinstate("A part of the action, word for word.")
    explanation: str = respond(
        "Was this part already done? Use the part's own words, in CAPITALS, so that nothing similar is mistaken for it."
    )


class ConditionJudgement(ARQ):
    """Does the guideline call for its action now?"""

    condition: str = reinstate("The condition, word for word.")
    condition_application_rationale: str = query("Why does the condition hold now, or not?")
    condition_applies: bool = query("Does it hold now?")
    action: str = reinstate("The action, word for word.")
    score: int = respond(
        "How strongly the action is called for now, 1 to 10; 6 and more means it is.", ge=1, le=10
    )
    should_apply: bool = respond(
        "Should the action be taken now, continuity and earlier application considered?"
    )


class Continuity(ConditionJudgement):
    """Does the guideline call for its action now, and is the action continuous?"""

    guideline_is_continuous: bool = query("Is the action, or any part of it, continuous?")


class OneTimeJudgement(ConditionJudgement):
    """Does the guideline call for its action now, was it done before, and is it due again?"""

    guideline_previously_applied_rationale: list[AppliedSegment] = query(
        "Each part of the action: was it already done?", max_length=12
    )
    new_or_subtly_different_context: str | None = query(
        "If it was done before: does it now concern a new or subtly different context or information?"
    )
    guideline_previously_applied: Literal["no", "partially", "fully"] = query(
        "To what degree was it done before?"
    )
    is_missing_part_cosmetic_or_functional: Literal["cosmetic", "functional"] | None = query(
        "If partially: is the missing part cosmetic or functional?",
        when=lambda answer: answer.guideline_previously_applied == "partially",
    )
    guideline_should_reapply: bool | None = query(
        "If it was done before: should it be done again?",
        when=lambda answer: answer.guideline_previously_applied != "no",
    )


class GuidelineJudgement(OneTimeJudgement, Continuity):
    """Does the guideline call for its action now, is it continuous, was it done before, is it due again?"""


def judgement_of(guideline: Guideline) -> type[ConditionJudgement]:
    """The blueprint that asks no more about a guideline than is not already known."""
    if guideline.continuous is None:
        return GuidelineJudgement
    return ConditionJudgement if guideline.continuous else OneTimeJudgement


def batch_blueprint(guidelines: Sequence[Guideline]) -> type[ARQ]:
    """One blueprint for several guidelines: a property each, named by its id."""
    fields: dict[str, Any] = {
        guideline.id: (judgement_of(guideline), respond(str(judgement_of(guideline).__doc__)))
        for guideline in guidelines
    }
    return create_model("GuidelineBatch", __base__=ARQ, __doc__="Judge each guideline.", **fields)


def leads_to_application(judgement: ConditionJudgement, continuous: bool | None) -> bool | None:
    """What the leading answers say about taking the action now; None where they were not asked.

    A continuous action is taken; so is one that was not done before. One that was done is taken again where the
    answers say so; a missing functional part has to be, a missing cosmetic part counts as done (Appendix A).
    """
    if not hasattr(judgement, "condition_applies"):
        return None
    if continuous is None:
        continuous = getattr(judgement, "guideline_is_continuous", None)
    if continuous or not isinstance(judgement, OneTimeJudgement):
        return True
    if judgement.guideline_previously_applied == "no":
        return True
    if judgement.is_missing_part_cosmetic_or_functional == "functional":
        return True
    return bool(judgement.guideline_should_reapply)


def contradictions(guideline: Guideline, judgement: ConditionJudgement, *, holds: bool) -> list[Complaint]:
    """Where a judgement contradicts itself, if the condition holds: by its score, or known by code."""
    leading = leads_to_application(judgement, guideline.continuous)
    if leading is None or not (holds or judgement.score >= ACTIVE_FROM):
        return []
    found: list[tuple[str, str]] = []
    if judgement.should_apply != leading:
        said = "should be taken now" if leading else "was done already and is not due again"
        found.append(("should_apply", f"your own answers say that the action {said}; this says the opposite"))
    if isinstance(judgement, OneTimeJudgement) and judgement.guideline_should_reapply is False:
        partially = judgement.guideline_previously_applied == "partially"
        if partially and judgement.is_missing_part_cosmetic_or_functional == "functional":
            found.append(
                ("guideline_should_reapply", "what is missing is functional: the action is due again")
            )
    name = type(judgement).__name__
    return [Complaint(name, f"{guideline.id}.{field}", message) for field, message in found]


def misquoted(guideline: Guideline, judgement: ConditionJudgement, condition: str | None) -> list[str]:
    """What a judgement reinstates in other words than the guideline's own."""
    if not hasattr(judgement, "condition_applies"):
        return []
    wrong = []
    if condition is not None and _words(judgement.condition) != _words(condition):
        wrong.append("condition")
    if _words(judgement.action) != _words(guideline.action):
        wrong.append("action")
    return wrong


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold()))
