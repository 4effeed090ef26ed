"""Judging guidelines: a condition holds where enough of its stems stand in what was just said or found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from arq_graph.models.offline.instance import Instances
from arq_graph.models.offline.prompt import Prompt
from arq_graph.models.offline.stems import share, stems, weights, words

ENOUGH = 0.6
"""From this share of its stems' weight on, a condition holds."""

_STARTS = ({"convers", "start"}, {"convers", "begun"}, {"convers", "begin"})
_ANSWERS = {"yes", "no"}
_LASTING = {"always", "never", "not", "don't", "don’t", "every", "only", "avoid", "keep"}
"""Words of an action that is never done with."""


def is_opening(condition: str | None) -> bool:
    """Whether a condition says that the conversation has just started."""
    return any(each <= stems(condition or "") for each in _STARTS)


def is_constant(condition: str | None) -> bool:
    """Whether a condition is always true."""
    return condition is None or condition.strip(" .").casefold() == "always"


def _is_about_customer(condition: str | None) -> bool:
    """Whether a condition speaks of what the customer says, asks or wants, which no result can tell."""
    return "customer" in words(condition or "")


class Reason(NamedTuple):
    """Whether a condition holds, and why, in a sentence."""

    holds: bool
    rationale: str


@dataclass(frozen=True)
class Conditions:
    """The conditions of a prompt's guidelines, held against the conversation."""

    prompt: Prompt

    @cached_property
    def _weights(self) -> Mapping[str, float]:
        entries = self.prompt.entries("guidelines")
        return weights(stems(str(entry.get("condition") or "")) for entry in entries)

    def reason(self, entry: Mapping[str, Any]) -> Reason:
        """Whether a guideline's condition holds now, and why."""
        condition = entry.get("condition")
        if is_constant(condition):
            return Reason(True, "There is no condition: it always holds.")
        if entry.get("id") in self.prompt.listed("holds"):
            return Reason(True, "Code has checked it.")
        if is_opening(condition):
            spoken = bool(self.prompt.said)
            return Reason(
                not spoken, f"The agent has {'spoken before' if spoken else 'not said anything yet'}."
            )
        if entry.get("id") in self.prompt.listed("unfinished"):
            return Reason(True, "What the last reply asked for is still open.")
        return self._by_words(str(condition))

    def _by_words(self, condition: str) -> Reason:
        best, found = 0.0, "Nothing that was just said or found has its words."
        # Each alternative of "asks for a human or is angry" is enough.
        for wanted in map(stems, f"{condition} ".split(" or ")):
            for place, said in self._said(wanted, by_customer=_is_about_customer(condition)):
                if (part := share(wanted, said, self._weights)) > best:
                    best, found = part, f"{place} speaks of {', '.join(sorted(wanted & said))}."
        return Reason(best >= ENOUGH, found if best >= ENOUGH or not best else f"{found} That is not enough.")

    def _said(self, wanted: frozenset[str], *, by_customer: bool) -> Iterator[tuple[str, frozenset[str]]]:
        """What the customer's last message and this turn's results say, as stems, with the id of each."""
        customer = self.prompt.customer
        if customer and (
            by_customer or "?" not in customer.text
        ):  # who asks whether it is so does not say so
            said = stems(customer.text)
            if answer := wanted & _ANSWERS:
                # A condition about a yes is about what was asked: the agent's words say it for the customer.
                said = said | stems(self.prompt.answered) if answer & said else frozenset()
            yield customer.id, said
        for line in () if by_customer else self.prompt.results:
            if not line.failed:
                yield line.id, stems(line.words)


def judge_guidelines(prompt: Prompt, asked: Mapping[str, Any], kinds: Instances) -> dict[str, Any]:
    """The answers to the matcher's queries, by guideline id; null for those that are not to be judged.

    Args:
        prompt: The prompt.
        asked: What is asked about each guideline, by its id.
        kinds: Fills the schema that it belongs to.
    """
    conditions = Conditions(prompt)
    entries = {str(entry.get("id")): entry for entry in prompt.entries("guidelines")}
    applied = {record.get("guideline") for record in prompt.listed("applied") if isinstance(record, dict)}
    answers: dict[str, Any] = dict.fromkeys(entries)
    for id in entries.keys() & set(prompt.listed("judge")):
        application = kinds.asked(kinds.asked(asked.get(id)).get("application"))
        reason = conditions.reason(entries[id])
        answers[id] = _judgement(entries[id], reason, application, was_applied=id in applied)
    return answers


def _judgement(
    entry: Mapping[str, Any], reason: Reason, application: Mapping[str, Any], *, was_applied: bool
) -> dict[str, Any]:
    condition, action = entry.get("condition"), str(entry.get("action") or "")
    # Where more is asked about the action but not this, the designer has said that it is done once.
    asked_twice = not application or "guideline_is_continuous" in application
    continuous = asked_twice and _is_continuous(condition, action)
    # Only fresh words make a condition hold; what always holds is never new.
    again = was_applied and not is_constant(condition)
    applied = {
        "action": action,
        "guideline_is_continuous": continuous,
        "guideline_previously_applied_rationale": [
            f"{action.upper()}: {'done' if was_applied else 'not done'}."
        ],
        "new_or_subtly_different_context": reason.rationale if again else None,
        "guideline_previously_applied": "fully" if was_applied else "no",
        "guideline_should_reapply": again if was_applied else None,
    }
    return {
        "condition": condition,
        "condition_application_rationale": reason.rationale,
        "condition_applies": "yes" if reason.holds else "no",
        "only_words_can_change_that": _is_about_customer(condition),
        "application": applied if reason.holds else None,
        "score": 9 if reason.holds else 2,
        "should_apply": reason.holds and (continuous or not was_applied or again),
    }


def _is_continuous(condition: str | None, action: str) -> bool:
    return bool(_LASTING & set(words(action))) or (condition is not None and is_constant(condition))


def settle_guidelines(prompt: Prompt) -> dict[str, Any]:
    """What never changes about each guideline: whether it is continuous, and whether a result could activate it."""
    settled = {}
    for entry in prompt.entries("guidelines"):
        condition = entry.get("condition")
        by_words = is_constant(condition) or is_opening(condition) or _is_about_customer(condition)
        settled[str(entry.get("id"))] = {
            "continuous": _is_continuous(condition, str(entry.get("action") or "")),
            "continuous_rationale": "By the words always, never and the like in the action.",
            "sensitive_to_tools": not by_words,
            "sensitive_to_tools_rationale": "By whether the condition speaks of the customer.",
        }
    return settled
