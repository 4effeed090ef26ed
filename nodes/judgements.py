"""The matcher's blueprints: the queries about one guideline (ARQ paper, 5.1.1 and Appendix A).

The query keys are the paper's, except the two response keys and `new_or_subtly_different_context`, whose original is
longer than the 64 characters that some providers allow for a property. Two things aren't in the paper: the third answer
to a condition, "not known yet", and the query whether a tool's result could change the answer. The queries are short,
since the schema goes out with each call and the prompt explains them at length.
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
"""The lowest score that activates a guideline (ARQ paper, 5.1.1)."""


class Continuity(ARQ, ABC, defer_build=True):
    """The query about the continuity of an action, asked before anything else about it."""

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
        """True if any part of the action is continuous; False if it wasn't asked, as the designer says that none is."""
        return getattr(self, "guideline_is_continuous", False)

    @property
    def is_owed(self) -> bool:
        """True if the action was done in part, and the missing part is functional."""
        is_functional = self.is_missing_part_cosmetic_or_functional == "functional"
        return self.guideline_previously_applied == "partially" and is_functional

    @property
    def is_due(self) -> bool:
        """True if the action is continuous, wasn't done, lacks a functional part, or is due again (Appendix A)."""
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
    """Return the blueprint that asks only what isn't known about a guideline, and the queries of your own.

    Code knows a condition that is a function or always true, and the designer may say whether the action is
    continuous. Of an observation, which has no action, only the condition is judged.
    """
    is_continuity_known = guideline.continuous is not None
    shipped: type[Judgement]
    if not isinstance(guideline.condition, str):
        shipped = OneTimeActionJudgement if is_continuity_known else ActionJudgement
    elif guideline.action is None or guideline.continuous:
        shipped = ConditionJudgement
    else:
        shipped = OneTimeJudgement if is_continuity_known else GuidelineJudgement
    return _add_queries(own, shipped)


@cache
def _add_queries(own: type[Judgement], shipped: type[Judgement]) -> type[Judgement]:
    """Add your own queries to a shipped judgement, if it's a subclass of the one that they extend."""
    extended = next(base for base in own.__mro__ if base.__module__ == __name__)
    if own is extended or not issubclass(shipped, extended):
        return shipped
    return create_model(shipped.__name__, __base__=(own, shipped), __doc__=shipped.__doc__)


def make_batch_blueprint(guidelines: Sequence[Guideline], own: type[Judgement] = Judgement) -> type[ARQ]:
    """Return one blueprint for several guidelines: a property for each id, null if that guideline isn't judged."""
    fields: dict[str, Any] = {}
    for guideline in guidelines:
        fields[guideline.id] = (choose_judgement(guideline, own) | None, respond("If judged."))
    return create_model("GuidelineBatch", __base__=ARQ, __doc__="Judge each guideline.", **fields)


def get_application(judgement: Judgement) -> OneTimeApplication | None:
    """Return the answers about the action, or None if they weren't asked or given."""
    return getattr(judgement, "application", None)


def is_due(guideline: Guideline, judgement: Judgement) -> bool:
    """Return True if a guideline whose condition holds is to be acted on, by the leading answers if there are any."""
    if application := get_application(judgement):
        return application.is_due
    # Of an observation, and of an action that is known to be continuous, only the condition is asked.
    asks_condition_only = hasattr(judgement, "condition_applies") and not hasattr(judgement, "application")
    return guideline.action is None or asks_condition_only or judgement.should_apply


def describe_missing_information(judgement: Judgement) -> str:
    """Return what would decide a condition that isn't known yet; "" if it is known."""
    if (
        getattr(judgement, "condition_applies", None) != "not_known_yet"
        or judgement.score >= ACTIVATION_SCORE
    ):
        return ""
    rationale: str = getattr(judgement, "condition_application_rationale", "")
    return rationale.strip() or "not known yet"


def find_contradictions(
    guideline: Guideline, judgement: Judgement | None, *, is_condition_met: bool
) -> Iterator[Complaint]:
    """Find out that a judgement is missing, or contradicts itself while the condition holds.

    The condition holds by the judgement's score, or if code knows that it is met.
    """
    if judgement is None:
        yield Complaint("GuidelineBatch", guideline.id, "it stands in `judge`: judge it")
        return
    if not is_condition_met and judgement.score < ACTIVATION_SCORE:
        return
    blueprint = type(judgement).__name__
    application = get_application(judgement)
    if application is None:
        if hasattr(judgement, "application") and getattr(judgement, "condition_applies", None) == "yes":
            reason = "the condition holds: say whether the action was taken before"
            yield Complaint(blueprint, f"{guideline.id}.application", reason)
        return
    if judgement.should_apply != application.is_due:
        verdict = "is due" if application.is_due else "was done already and is not due again"
        reason = f"your own answers say that the action {verdict}; this says the opposite"
        yield Complaint(blueprint, f"{guideline.id}.should_apply", reason)
    if application.guideline_should_reapply is False and application.is_owed:
        query = f"{guideline.id}.application.guideline_should_reapply"
        yield Complaint(blueprint, query, "a functional part is missing: the action is due again")


def find_remarks(guideline: Guideline, judgement: Judgement) -> Iterator[str]:
    """Find what is odd about a judgement: other words than the guideline's, or disagreement with its own score."""
    changed: list[str] = []
    condition = getattr(judgement, "condition", None)
    if _has_other_words(condition, guideline.condition_text):
        changed.append("condition")
    application = get_application(judgement)
    if application and _has_other_words(application.action, guideline.action):
        changed.append("action")
    if changed:
        yield f"the model reinstated another {' and '.join(changed)} than the guideline's"
    verdict = getattr(judgement, "condition_applies", None)
    if verdict is not None and (verdict == "yes") != (judgement.score >= ACTIVATION_SCORE):
        yield f"condition_applies is {verdict}, the score {judgement.score} decides"


def _has_other_words(reinstated: str | None, original: str | None) -> bool:
    if reinstated is None or not original:
        return False
    return split_words(reinstated) != split_words(original)
