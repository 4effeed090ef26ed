"""Judging guidelines: a condition holds where enough of its stems stand in what was just said or found."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from arq_graph.models.offline.instance import Instances
from arq_graph.models.offline.prompt import Prompt
from arq_graph.models.offline.stems import share, stems, words

ENOUGH = 0.6  # the share of its stems from which on a condition holds

_STARTS = {"start", "begin", "begun"}
_ANSWERS = {"yes", "no"}
# The "member" of "the member asks".
_SPEAKER = re.compile(r"\b\w+ (?=(?:asks|wants|says|tells|needs)\b)", re.IGNORECASE)
_LASTING = {"always", "never", "not", "don't", "don’t", "every", "only", "avoid", "keep"}  # of an action


def is_opening(condition: str | None) -> bool:
    """Whether a condition says that the conversation has just started."""
    said = stems(condition or "")
    return "convers" in said and bool(said & _STARTS)


def is_constant(condition: str | None) -> bool:
    """Whether a condition is always true."""
    return condition is None or condition.strip(" .").casefold() == "always"


def _is_about_customer(condition: str | None) -> bool:
    """Whether a condition speaks of what the customer says, asks or wants, which no result can tell."""
    return "customer" in words(condition or "") or bool(_SPEAKER.search(condition or ""))


def _reason(prompt: Prompt, entry: Mapping[str, Any]) -> tuple[bool, str]:
    condition = entry.get("condition")
    if is_constant(condition):
        return True, "There is no condition: it always holds."
    if entry.get("id") in prompt.listed("holds"):
        return True, "Code has checked it."
    if is_opening(condition):
        return (
            not prompt.said,
            f"The agent has {'spoken before' if prompt.said else 'not said anything yet'}.",
        )
    if entry.get("id") in prompt.listed("unfinished"):
        return True, "What the last reply asked for is still open."
    best, found = 0.0, "Nothing that was just said or found has its words."
    # Each alternative of "asks for a human or is angry" is enough, and who it is that asks says nothing.
    for wanted in (stems(_SPEAKER.sub("", each)) for each in f"{condition} ".split(" or ")):
        for place, said in _said(prompt, wanted, by_customer=_is_about_customer(condition)):
            if (part := share(wanted, said)) > best:
                best, found = part, f"{place} speaks of {', '.join(sorted(wanted & said))}."
    return best >= ENOUGH, found if best >= ENOUGH or not best else f"{found} That is not enough."


def _said(
    prompt: Prompt, wanted: frozenset[str], *, by_customer: bool
) -> Iterator[tuple[str, frozenset[str]]]:
    """What the customer's last message and this turn's results say, as stems, with the id of each."""
    customer = prompt.customer
    if customer and (by_customer or "?" not in customer.text):  # who asks whether it is so does not say so
        said = stems(customer.text)
        if answer := wanted & _ANSWERS:
            # A condition about a yes is about what was asked: the agent's words say it for the customer.
            said = said | stems(prompt.answered) if answer & said else frozenset()
        yield customer.id, said
    for line in () if by_customer else prompt.results:
        if not line.failed:
            yield line.id, stems(line.words)


def judge_guidelines(prompt: Prompt, asked: Mapping[str, Any], kinds: Instances) -> dict[str, Any]:
    """The answers to the matcher's queries, by guideline id; null for those that are not to be judged."""
    entries = {str(entry.get("id")): entry for entry in prompt.entries("guidelines")}
    applied = {record.get("guideline") for record in prompt.listed("applied")}
    answers: dict[str, Any] = dict.fromkeys(entries)
    for id in entries.keys() & set(prompt.listed("judge")):
        application = kinds.asked(kinds.asked(asked.get(id)).get("application"))
        # Where more is asked about the action but not this, the designer has said that it is done once.
        may_last = not application or "guideline_is_continuous" in application
        reason = _reason(prompt, entries[id])
        answers[id] = _judgement(entries[id], *reason, may_last=may_last, was_applied=id in applied)
    return answers


def _judgement(
    entry: Mapping[str, Any], holds: bool, why: str, *, may_last: bool, was_applied: bool
) -> dict[str, Any]:
    condition, action = entry.get("condition"), str(entry.get("action") or "")
    is_lasting = condition is not None and is_constant(condition)
    continuous = may_last and (is_lasting or bool(_LASTING & set(words(action))))
    # Only fresh words make a condition hold; what always holds is never new.
    again = was_applied and not is_constant(condition)
    applied = {
        "action": action,
        "guideline_is_continuous": continuous,
        "guideline_previously_applied_rationale": [action.upper()] if was_applied else [],
        "new_or_subtly_different_context": why if again else None,
        "guideline_previously_applied": None if continuous else "fully" if was_applied else "no",
        "guideline_should_reapply": again if was_applied and not continuous else None,
    }
    return {
        "condition": condition,
        "condition_application_rationale": why,
        "condition_applies": "yes" if holds else "no",
        "could_a_tool_change_that": not _is_about_customer(condition),
        "application": applied if holds else None,
        "score": 9 if holds else 2,
        "should_apply": holds and (continuous or not was_applied or again),
    }
