"""The matcher's blueprint: what is asked about one guideline (ARQ paper, 5.1.1 and Appendix A).

The query keys are the paper's, but for `new_or_subtly_different_context`, whose original is longer than the 64
characters that some providers allow for a property, and the two response keys. Ours are the third answer to a
condition, "not known yet", and whether a tool's result could still change the answer. The questions are short, as the
schema goes out with each call and the prompt says the same at length.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Literal

from pydantic import create_model

from arq_graph.agent.spec import Guideline
from arq_graph.nodes.violations import split_words
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond

ACTIVATION_SCORE = 6
"""Lowest score that activates a guideline (ARQ paper, 5.1.1)."""


class Continuity(ARQ, ABC, defer_build=True):
    """Whether an action is continuous; asked before anything else about it."""

    action: str = reinstate("Verbatim.")
    guideline_is_continuous: bool = query("Is any part of it?")


class OneTimeApplication(ARQ, defer_build=True):
    """Its action."""

    action: str = reinstate("Verbatim.")
    guideline_previously_applied_rationale: list[str] = query(
        "Each part IN CAPITALS: was it done? Empty if continuous.", max_length=12
    )
    new_or_subtly_different_context: str | None = query("If done: what is new since then?")
    guideline_previously_applied: Literal["no", "partially", "fully"] | None = query(
        "If not continuous: was it done?", when=lambda answer: not answer.is_continuous
    )
    is_missing_part_cosmetic_or_functional: Literal["cosmetic", "functional"] | None = query(
        "If partially.", when=lambda answer: answer.guideline_previously_applied == "partially"
    )
    guideline_should_reapply: bool | None = respond(
        "If done, fully or partially: is it due again?",
        when=lambda answer: answer.guideline_previously_applied in ("partially", "fully"),
    )

    @property
    def is_continuous(self) -> bool:
        """Whether any part of it goes on; not asked where the designer has said that it does not."""
        return getattr(self, "guideline_is_continuous", False)

    @property
    def is_owed(self) -> bool:
        """Whether it was done in part, and the customer would miss what is missing."""
        is_functional = self.is_missing_part_cosmetic_or_functional == "functional"
        return self.guideline_previously_applied == "partially" and is_functional

    @property
    def is_due(self) -> bool:
        """Whether to take it now: it goes on, was not done, lacks a functional part, or is due again (Appendix A)."""
        is_new = self.guideline_previously_applied == "no"
        return self.is_continuous or is_new or self.is_owed or bool(self.guideline_should_reapply)


class Application(OneTimeApplication, Continuity):
    """Its action."""


class Judgement(ARQ, defer_build=True):
    """A guideline.

    Subclass it to ask more about every guideline, or `ConditionJudgement` for those whose condition the model judges.
    """

    score: int = respond("1 to 10.", ge=1, le=10)
    should_apply: bool = respond("Is the action due?")


class ConditionJudgement(Judgement):
    """A guideline."""

    condition: str = reinstate("Verbatim.")
    condition_application_rationale: str = query("Why it holds, or not, or what would decide it.")
    condition_applies: Literal["no", "yes", "not_known_yet"] = query("Does it hold?")
    could_a_tool_change_that: bool = query("Could a tool's result in this turn make it true (anew)?")


class OneTimeJudgement(ConditionJudgement):
    """A guideline."""

    application: OneTimeApplication | None = query("If it holds.")


class GuidelineJudgement(ConditionJudgement):
    """A guideline."""

    application: Application | None = query("If it holds.")


class OneTimeActionJudgement(Judgement):
    """A guideline whose condition holds."""

    application: OneTimeApplication = query("The action.")


class ActionJudgement(Judgement):
    """A guideline whose condition holds."""

    application: Application = query("The action.")


def choose_judgement(guideline: Guideline, own: type[Judgement] = Judgement) -> type[Judgement]:
    """The blueprint that asks no more about a guideline than is not already known, and the queries of one's own.

    Code knows of a condition that is a function, or that is always true; the designer may say whether the action is
    continuous. Of an observation, which has no action, only the condition is judged.
    """
    if not isinstance(guideline.condition, str):
        return _asking(own, ActionJudgement if guideline.continuous is None else OneTimeActionJudgement)
    if guideline.action is None or guideline.continuous:
        return _asking(own, ConditionJudgement)
    return _asking(own, GuidelineJudgement if guideline.continuous is None else OneTimeJudgement)


@cache
def _asking(own: type[Judgement], shipped: type[Judgement]) -> type[Judgement]:
    """A shipped judgement with one's own queries, if it is of the kind that these were added to."""
    added_to = next(each for each in own.__mro__ if each.__module__ == __name__)
    if own is added_to or not issubclass(shipped, added_to):
        return shipped
    return create_model(shipped.__name__, __base__=(own, shipped), __doc__=shipped.__doc__)


def make_batch_blueprint(guidelines: Sequence[Guideline], own: type[Judgement] = Judgement) -> type[ARQ]:
    """One blueprint for several guidelines: a property each, named by its id, null where it is not judged."""
    fields: dict[str, Any] = {
        guideline.id: (choose_judgement(guideline, own) | None, respond("If judged."))
        for guideline in guidelines
    }
    return create_model("GuidelineBatch", __base__=ARQ, __doc__="Judge each guideline.", **fields)


def get_application(judgement: Judgement) -> OneTimeApplication | None:
    """The answers about the action; None where they were not asked, or not given."""
    return getattr(judgement, "application", None)


def is_due(guideline: Guideline, judgement: Judgement) -> bool:
    """Whether to act on a guideline whose condition holds: by the leading answers, where they were asked and given."""
    if application := get_application(judgement):
        return application.is_due
    # Of an observation, and of an action that is known to be continuous, only the condition is asked.
    only_condition = hasattr(judgement, "condition_applies") and not hasattr(judgement, "application")
    return guideline.action is None or only_condition or judgement.should_apply


def describe_missing_information(judgement: Judgement) -> str:
    """What would decide a condition that is not known yet; empty where it is known."""
    if (
        getattr(judgement, "condition_applies", None) != "not_known_yet"
        or judgement.score >= ACTIVATION_SCORE
    ):
        return ""
    rationale: str = getattr(judgement, "condition_application_rationale", "")
    return rationale.strip() or "not known yet"


def find_contradictions(
    guideline: Guideline, judgement: Judgement | None, *, holds: bool
) -> Iterator[Complaint]:
    """Where a judgement is missing, or contradicts itself while the condition holds: by its score, or known by code."""
    if judgement is None:
        yield Complaint("GuidelineBatch", guideline.id, "it stands in `judge`: judge it")
        return
    if not (holds or judgement.score >= ACTIVATION_SCORE):
        return
    name, application = type(judgement).__name__, get_application(judgement)
    if application is None:
        if hasattr(judgement, "application") and getattr(judgement, "condition_applies", None) == "yes":
            why = "the condition holds: say whether the action was taken before"
            yield Complaint(name, f"{guideline.id}.application", why)
        return
    if judgement.should_apply != application.is_due:
        said = "is due" if application.is_due else "was done already and is not due again"
        why = f"your own answers say that the action {said}; this says the opposite"
        yield Complaint(name, f"{guideline.id}.should_apply", why)
    if application.guideline_should_reapply is False and application.is_owed:
        query = f"{guideline.id}.application.guideline_should_reapply"
        yield Complaint(name, query, "a functional part is missing: the action is due again")


def find_remarks(guideline: Guideline, judgement: Judgement, condition: str | None) -> Iterator[str]:
    """What is odd about a judgement: it reinstates other words than the guideline's, or disagrees with its score."""
    application = get_application(judgement)
    reinstated = [
        ("condition", getattr(judgement, "condition", None), condition),
        ("action", application.action if application else None, guideline.action),
    ]
    if wrong := [
        what
        for what, said, own in reinstated
        if said is not None and own and split_words(said) != split_words(own)
    ]:
        yield f"the model reinstated another {' and '.join(wrong)} than the guideline's"
    said = getattr(judgement, "condition_applies", None)
    if said is not None and (said == "yes") != (judgement.score >= ACTIVATION_SCORE):
        yield f"condition_applies is {said}, the score {judgement.score} decides"
