"""Guideline matches: made from judgements, by code or after a failure; related to each other; compacted."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from arq_graph.agent.guideline import Guideline
from arq_graph.agent.relations import Relations
from arq_graph.agent.state import GuidelineMatch
from arq_graph.errors import BlueprintError, ReasoningError
from arq_graph.nodes.judgements import (
    ACTIVATION_SCORE,
    Judgement,
    describe_missing_information,
    find_remarks,
    get_application,
    is_due,
)
from arq_graph.reasoning.answer import Answer

_ENTAILED = "active because"
_REMOVED = "not active:"


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
    is_matched = has_condition and is_due(guideline, judgement)
    application = get_application(judgement)
    continuous = guideline.continuous
    if continuous is None and application is not None:
        continuous = application.is_continuous
    could_tool_change = getattr(judgement, "could_a_tool_change_that", True)
    return GuidelineMatch(
        guideline=guideline.id,
        turn=turn,
        active=is_matched,
        matched=is_matched,
        score=judgement.score,
        rationale=getattr(judgement, "condition_application_rationale", answer.reasoning),
        continuous=continuous,
        previously_applied=application and application.guideline_previously_applied,
        missing_information=describe_missing_information(judgement),
        independent_of_tools=not is_matched and not could_tool_change,
        remarks=tuple(_list_remarks(guideline, judgement, answer)),
    )


def _list_remarks(guideline: Guideline, judgement: Judgement, answer: Answer[Any]) -> list[str]:
    remarks: list[str] = []
    for complaint in answer.complaints:
        if complaint.query.split(".")[0] == guideline.id:
            remarks.append(f"still contradictory when asked again: {complaint}")
    remarks.extend(find_remarks(guideline, judgement))
    return remarks


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
