"""Judgements of guidelines: the queries about each one, and the match that code makes of the answer.

The blueprints are those of the ARQ paper, 5.1.1 and Appendix A.

The query keys are the paper's, except the two response keys and `new_or_subtly_different_context`, whose original is
longer than the 64 characters that some providers allow for a property. Two things aren't in the paper: the third answer
to a condition, "not known yet", and the query whether a tool's result could change the answer. The queries are short,
since the schema goes out with each call and the prompt explains them at length.
"""

from __future__ import annotations

import warnings
from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal

from pydantic import create_model

from arq_graph.agent.guideline import Guideline
from arq_graph.agent.relations import Relations
from arq_graph.agent.state import GuidelineMatch
from arq_graph.errors import BlueprintError, ReasoningError
from arq_graph.reasoning.answer import Answer, Complaint
from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond
from arq_graph.reasoning.sections import split_words

ACTIVATION_SCORE = 6
"""The lowest score that activates a guideline (ARQ paper, 5.1.1)."""

_ENTAILED = "active because"
_REMOVED = "not active:"


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


def _is_due(guideline: Guideline, judgement: Judgement) -> bool:
    """Return True if a guideline whose condition holds is to be acted on, by the leading answers if there are any."""
    application: OneTimeApplication | None = getattr(judgement, "application", None)
    if application is not None:
        return application.is_due
    # Of an observation, and of an action that is known to be continuous, only the condition is asked.
    asks_condition_only = hasattr(judgement, "condition_applies") and not hasattr(judgement, "application")
    return guideline.action is None or asks_condition_only or judgement.should_apply


def find_contradictions(
    guideline: Guideline, judgement: Judgement | None, *, is_condition_met: bool
) -> Iterator[Complaint]:
    """Find that a judgement is missing or, if the condition holds by its score or by code, contradicts itself."""
    if judgement is None:
        yield Complaint("GuidelineBatch", guideline.id, "it stands in `judge`: judge it")
        return
    if not is_condition_met and judgement.score < ACTIVATION_SCORE:
        return
    blueprint = type(judgement).__name__
    application: OneTimeApplication | None = getattr(judgement, "application", None)
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


def _find_remarks(
    guideline: Guideline, judgement: Judgement, complaints: Sequence[Complaint]
) -> Iterator[str]:
    """Find what is odd about a judgement: contradictions, other words than the guideline's, or another score."""
    for complaint in complaints:
        if complaint.query.split(".")[0] == guideline.id:
            yield f"still contradictory when asked again: {complaint}"
    changed: list[str] = []
    if _has_other_words(getattr(judgement, "condition", None), guideline.condition_text):
        changed.append("condition")
    application: OneTimeApplication | None = getattr(judgement, "application", None)
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


def make_match(
    guideline: Guideline, answer: Answer[Any] | ReasoningError, turn: str, *, is_condition_met: bool
) -> GuidelineMatch:
    """Make a match from the answer about a batch of guidelines; `is_condition_met` if code knows that it is.

    Raises:
        ReasoningError: There is no judgement, and the guideline doesn't say what to do then (`on_failure`).
    """
    if isinstance(answer, ReasoningError):
        return _match_after_failure(guideline, answer, turn)
    judgement: Judgement | None = getattr(answer.value, guideline.id)
    if judgement is None:
        message = f"matcher: no judgement of guideline {guideline.id} came"
        return _match_after_failure(guideline, BlueprintError(message, answer.attempts), turn)
    has_condition = is_condition_met or judgement.score >= ACTIVATION_SCORE
    is_matched = has_condition and _is_due(guideline, judgement)
    application: OneTimeApplication | None = getattr(judgement, "application", None)
    continuous = guideline.continuous
    if continuous is None and application is not None:
        continuous = application.is_continuous
    rationale: str = getattr(judgement, "condition_application_rationale", answer.reasoning)
    missing_information = ""
    is_undecided = getattr(judgement, "condition_applies", None) == "not_known_yet"
    if is_undecided and judgement.score < ACTIVATION_SCORE:
        missing_information = rationale.strip() or "not known yet"
    could_tool_change = getattr(judgement, "could_a_tool_change_that", True)
    return GuidelineMatch(
        guideline=guideline.id,
        turn=turn,
        active=is_matched,
        matched=is_matched,
        score=judgement.score,
        rationale=rationale,
        continuous=continuous,
        previously_applied=application and application.guideline_previously_applied,
        missing_information=missing_information,
        independent_of_tools=not is_matched and not could_tool_change,
        remarks=tuple(_find_remarks(guideline, judgement, answer.complaints)),
    )


def _match_after_failure(guideline: Guideline, error: ReasoningError, turn: str) -> GuidelineMatch:
    if guideline.on_failure == "raise":
        raise error
    is_active = guideline.on_failure == "activate"
    outcome = "activated" if is_active else "skipped"
    warnings.warn(f"guideline {guideline.id} is {outcome}: judging it failed: {error}", stacklevel=2)
    return GuidelineMatch(
        guideline=guideline.id,
        turn=turn,
        active=is_active,
        matched=is_active,
        rationale=f"{outcome}, because judging it failed: {type(error).__name__}",
        origin="failure",
    )


def make_match_by_code(guideline: Guideline, turn: str, *, is_condition_met: bool) -> GuidelineMatch:
    """Make the match of a guideline whose condition is a function, or always true, without a model."""
    if guideline.condition is None:
        rationale = "it has no condition, and nothing in it is ever done with: always active"
    else:
        rationale = f"the condition's function returned {is_condition_met}"
    return GuidelineMatch(
        guideline=guideline.id,
        turn=turn,
        active=is_condition_met,
        matched=is_condition_met,
        score=10 if is_condition_met else 1,
        rationale=rationale,
        origin="code",
        continuous=guideline.continuous,
    )


def apply_relations(relations: Relations, matches: Mapping[str, GuidelineMatch]) -> list[GuidelineMatch]:
    """Activate the guidelines that matched ones entail, deactivate overridden ones, and remark on the reasons."""
    scores = {id: match.score or ACTIVATION_SCORE for id, match in matches.items() if match.matched}
    resolution = relations.resolve(scores)
    related: list[GuidelineMatch] = []
    for id in relations.by_id:
        if id not in matches:
            continue
        match = matches[id]
        is_active = id in resolution.active
        update: dict[str, Any] = {"active": is_active}
        remarks = [remark for remark in match.remarks if not remark.startswith((_ENTAILED, _REMOVED))]
        if is_active and id in resolution.entailed:
            update |= {"score": resolution.active[id], "origin": "relation"}
            remarks.append(f"{_ENTAILED} {resolution.entailed[id]} entails it")
        elif match.origin == "relation":
            # Its own judgement, if it had one, made it inactive; the score was that of the entailing guideline.
            update |= {"score": None, "origin": "code"}
        if id in resolution.removed:
            remarks.append(f"{_REMOVED} {resolution.removed[id]}")
        update["remarks"] = tuple(remarks)
        related.append(match.model_copy(update=update))
    return related


def is_relevant_later(match: GuidelineMatch) -> bool:
    """Return True if a later step or turn reads more of a match than that it was made."""
    is_high_score = (match.score or 0) >= ACTIVATION_SCORE
    has_condition_met = match.matched or match.active or is_high_score
    return has_condition_met or bool(match.missing_information) or match.origin == "failure"


def compact_matches(matches: Sequence[GuidelineMatch]) -> list[GuidelineMatch]:
    """Keep the matches that later steps read; merge the others into one record for each outcome."""
    compacted: list[GuidelineMatch] = []
    ids_by_outcome: dict[tuple[bool, Any], list[str]] = {}
    for match in matches:
        if is_relevant_later(match):
            compacted.append(match)
        else:
            ids_by_outcome.setdefault((match.independent_of_tools, match.origin), []).append(match.guideline)
    for (independent_of_tools, origin), ids in ids_by_outcome.items():
        merged = GuidelineMatch(
            guideline=ids[0],
            turn=matches[0].turn,
            active=False,
            matched=False,
            independent_of_tools=independent_of_tools,
            origin=origin,
            other_guidelines=tuple(ids[1:]),
        )
        compacted.append(merged)
    return compacted
