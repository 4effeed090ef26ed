"""Judgements of guidelines: how an answer is checked, and the matches that code makes from it (ARQ paper, 5.1.1)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from arq_graph.agent.guideline import Guideline
from arq_graph.agent.relations import Relations, Resolution
from arq_graph.agent.state import GuidelineMatch
from arq_graph.errors import BlueprintError, ReasoningError
from arq_graph.nodes.judgement_schema import VERBATIM_WORDS, ActionApplication, Judgement
from arq_graph.reasoning.answer import Answer, Complaint
from arq_graph.reasoning.sections import split_words

ACTIVATION_SCORE = 6
"""The lowest score that activates a guideline (ARQ paper, 5.1.1)."""

MIN_SCORE, MAX_SCORE = 1, 10
"""The lowest and the highest score of a judgement."""

_ENTAILED = "active because"
_REMOVED = "not active:"
_RELATION_REMARKS = (_ENTAILED, _REMOVED)
"""How the remarks of `apply_relations` begin, which each pass writes anew."""


@dataclass(frozen=True)
class _JudgementFacts:
    """The answers to queries in a judgement.

    An answer is None if the judgement doesn't have it: its blueprint doesn't ask the query (`choose_judgement`), or the
    mode asks no queries. `application` may also be answered with null; then `is_application_asked` is True.
    """

    reinstated_condition: str | None
    rationale: str | None
    condition_applies: Literal["no", "yes", "not_known_yet"] | None
    could_a_tool_change_that: bool | None
    application: ActionApplication | None
    is_application_asked: bool
    should_apply: bool | None


def _read_facts(judgement: Judgement) -> _JudgementFacts:
    return _JudgementFacts(
        reinstated_condition=getattr(judgement, "condition", None),
        rationale=getattr(judgement, "condition_application_rationale", None),
        condition_applies=getattr(judgement, "condition_applies", None),
        could_a_tool_change_that=getattr(judgement, "could_a_tool_change_that", None),
        application=getattr(judgement, "application", None),
        is_application_asked=hasattr(judgement, "application"),
        should_apply=getattr(judgement, "should_apply", None),
    )


def _is_due(guideline: Guideline, facts: _JudgementFacts) -> bool:
    """Return True if a guideline whose condition holds is to be acted on.

    The answers about the action decide; if they weren't asked, `should_apply` does.
    """
    if facts.application is not None:
        return facts.application.is_due
    # About an observation, and an action that is known to be continuous, only the condition is asked.
    asks_condition_only = facts.condition_applies is not None and not facts.is_application_asked
    return guideline.action is None or asks_condition_only or bool(facts.should_apply)


def find_contradictions(
    guideline: Guideline, judgement: Judgement | None, *, holds_by_code: bool
) -> Iterator[Complaint]:
    """Yield a complaint if a judgement is missing, or contradicts itself about an action whose condition holds.

    It holds if the judgement's score says so, or if code knows that it does (`holds_by_code`).
    """
    if judgement is None:
        yield Complaint("GuidelineBatch", guideline.id, "it is listed in `judge`, so judge it")
        return
    if not holds_by_code and judgement.score < ACTIVATION_SCORE:
        return
    blueprint = type(judgement).__name__
    facts = _read_facts(judgement)
    application = facts.application
    if application is None:
        if facts.is_application_asked and facts.condition_applies == "yes":
            reason = "the condition holds: say whether the action was taken before"
            yield Complaint(blueprint, f"{guideline.id}.application", reason)
        return
    if facts.should_apply != application.is_due:
        status = "is due" if application.is_due else "was done already and is not due again"
        reason = f"your own answers say that the action {status}; this says the opposite"
        yield Complaint(blueprint, f"{guideline.id}.should_apply", reason)
    if application.guideline_should_reapply is False and application.is_owed:
        path = f"{guideline.id}.application.guideline_should_reapply"
        yield Complaint(blueprint, path, "a functional part is missing: the action is due again")


def _find_remarks(
    guideline: Guideline, judgement: Judgement, facts: _JudgementFacts, complaints: Sequence[Complaint]
) -> Iterator[str]:
    """Yield remarks on contradictions, on changed words of the guideline, and on a score that contradicts an answer."""
    for complaint in complaints:
        if complaint.query.split(".")[0] == guideline.id:
            yield f"still contradictory when asked again: {complaint}"
    changed: list[str] = []
    if _has_other_words(facts.reinstated_condition, guideline.condition_text):
        changed.append("condition")
    if facts.application and _has_other_words(facts.application.action, guideline.action):
        changed.append("action")
    if changed:
        yield f"the model reinstated another {' and '.join(changed)} than the guideline's"
    answer = facts.condition_applies
    if answer is not None and (answer == "yes") != (judgement.score >= ACTIVATION_SCORE):
        yield f"condition_applies is {answer}, the score {judgement.score} decides"


def _has_other_words(reinstated: str | None, original: str | None) -> bool:
    """Return True if a text that is short enough to be repeated word for word was changed."""
    if reinstated in (None, original) or not original:
        return False
    words = split_words(original)
    return len(words) <= VERBATIM_WORDS and split_words(reinstated) != words


def make_match(
    guideline: Guideline, answer: Answer[Any] | ReasoningError, turn_id: str, *, holds_by_code: bool
) -> GuidelineMatch:
    """Make a match from the answer about a batch of guidelines.

    `holds_by_code` is True if code knows that the condition holds; otherwise the model's score decides.

    Raises:
        ReasoningError: There is no judgement, and the guideline doesn't say what to do then (`on_failure`).
    """
    if isinstance(answer, ReasoningError):
        return _match_after_failure(guideline, answer, turn_id)
    judgement: Judgement | None = getattr(answer.value, guideline.id)
    if judgement is None:
        message = f"matcher: no judgement of guideline {guideline.id} came"
        return _match_after_failure(guideline, BlueprintError(message, answer.attempts), turn_id)
    facts = _read_facts(judgement)
    is_condition_met = holds_by_code or judgement.score >= ACTIVATION_SCORE
    is_matched = is_condition_met and _is_due(guideline, facts)
    continuous, previously_applied = guideline.continuous, None
    if facts.application is not None:
        previously_applied = facts.application.guideline_previously_applied
        if continuous is None:
            continuous = facts.application.is_continuous
    rationale = answer.reasoning if facts.rationale is None else facts.rationale
    missing_information = ""
    if facts.condition_applies == "not_known_yet" and judgement.score < ACTIVATION_SCORE:
        missing_information = rationale.strip() or "not known yet"
    return make_plain_match(
        guideline.id,
        turn_id,
        is_matched,
        score=judgement.score,
        rationale=rationale,
        continuous=continuous,
        previously_applied=previously_applied,
        missing_information=missing_information,
        independent_of_tools=not is_matched and facts.could_a_tool_change_that is False,
        remarks=tuple(_find_remarks(guideline, judgement, facts, answer.complaints)),
    )


def make_plain_match(guideline_id: str, turn_id: str, is_matched: bool, **fields: Any) -> GuidelineMatch:
    """Make a match before relations are applied, so that the guideline is active if it matched."""
    return GuidelineMatch(
        guideline=guideline_id, turn=turn_id, active=is_matched, matched=is_matched, **fields
    )


def _match_after_failure(guideline: Guideline, error: ReasoningError, turn_id: str) -> GuidelineMatch:
    if guideline.on_failure == "raise":
        raise error
    is_active = guideline.on_failure == "activate"
    outcome = "activated" if is_active else "skipped"
    warnings.warn(f"guideline {guideline.id} is {outcome}: judging it failed: {error}", stacklevel=2)
    rationale = f"{outcome}, because judging it failed: {type(error).__name__}"
    return make_plain_match(guideline.id, turn_id, is_active, rationale=rationale, origin="failure")


def make_match_by_code(guideline: Guideline, turn_id: str, *, is_condition_met: bool) -> GuidelineMatch:
    """Make the match of a guideline whose condition is a function, or always true, without a model."""
    rationale = f"the condition's function returned {is_condition_met}"
    if guideline.condition is None:
        rationale = "always active: it has no condition, and no action that ends"
    return make_plain_match(
        guideline.id,
        turn_id,
        is_condition_met,
        score=MAX_SCORE if is_condition_met else MIN_SCORE,
        rationale=rationale,
        origin="code",
        continuous=guideline.continuous,
    )


def apply_relations(relations: Relations, matches: Mapping[str, GuidelineMatch]) -> list[GuidelineMatch]:
    """Activate the guidelines that matched ones entail, deactivate overridden ones, and remark on the reasons."""
    scores = {id: match.score or ACTIVATION_SCORE for id, match in matches.items() if match.matched}
    resolution = relations.resolve(scores)
    resolved: list[GuidelineMatch] = []
    for id in relations.by_id:
        if id in matches:
            has_condition_in_code = not isinstance(relations.by_id[id].condition, str)
            judged_by: Literal["code", "model"] = "code" if has_condition_in_code else "model"
            resolved.append(_apply_resolution(matches[id], resolution, judged_by))
    return resolved


def _apply_resolution(
    match: GuidelineMatch, resolution: Resolution, judged_by: Literal["code", "model"]
) -> GuidelineMatch:
    id = match.guideline
    is_active = id in resolution.active
    update: dict[str, Any] = {}
    if match.active != is_active:
        update["active"] = is_active
    remarks = tuple(remark for remark in match.remarks if not remark.startswith(_RELATION_REMARKS))
    if is_active and id in resolution.entailed:
        update |= {"score": resolution.active[id], "origin": "relation"}
        remarks += (f"{_ENTAILED} {resolution.entailed[id]} entails it",)
    elif match.origin == "relation":
        # An earlier pass entailed it, and nothing does now. That pass overwrote the score of its own judgement, which
        # was too low to match; without a score it counts as not matched.
        update |= {"score": None, "origin": judged_by}
    if id in resolution.removed:
        remarks += (f"{_REMOVED} {resolution.removed[id]}",)
    if match.remarks != remarks:
        update["remarks"] = remarks
    return match.model_copy(update=update) if update else match  # most don't change, and a copy takes long


def is_relevant_later(match: GuidelineMatch) -> bool:
    """Return True if a later step or turn needs a match's details, and not only that the guideline was judged."""
    is_high_score = (match.score or 0) >= ACTIVATION_SCORE
    is_condition_met = match.matched or match.active or is_high_score
    return is_condition_met or bool(match.missing_information) or match.origin == "failure"


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
        merged = make_plain_match(
            ids[0],
            matches[0].turn,
            False,
            independent_of_tools=independent_of_tools,
            origin=origin,
            other_guidelines=tuple(ids[1:]),
        )
        compacted.append(merged)
    return compacted
