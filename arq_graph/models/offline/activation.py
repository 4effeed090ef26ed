"""Judging guidelines: a condition holds if most of its words were just said, or are in a tool's result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from arq_graph.models.offline.prompt import Prompt, find_common, split_content_words, split_words

_ABOUT_CUSTOMER = {"customer", "asks", "wants", "says", "tells", "needs"}
_LASTING = {"always", "never", "not"}


def is_opening(condition: str | None) -> bool:
    """Return True if a condition says that the conversation has just started."""
    return {"conversation", "started"} <= set(split_words(condition))


def is_constant(condition: str | None) -> bool:
    """Return True if a condition is always true."""
    return condition is None or condition.strip(" .").casefold() == "always"


def judge_guidelines(prompt: Prompt) -> dict[str, Any]:
    """Return the answers to the matcher's queries by guideline id."""
    answers = {}
    for guideline in prompt.get_entries("guidelines"):
        if guideline["id"] in prompt.now.get("judge", []):
            answers[guideline["id"]] = _judge(prompt, guideline)
    return answers


def _judge(prompt: Prompt, guideline: Mapping[str, Any]) -> dict[str, Any]:
    condition = guideline.get("condition")
    rationale = _find_reason(prompt, guideline)
    judgement: dict[str, Any] = {
        "condition": condition,
        "condition_application_rationale": rationale or "Nothing that was just said or found has its words.",
        "could_a_tool_change_that": not _is_about_customer(condition),
    }
    if not rationale:
        return judgement | {"condition_applies": "no", "score": 2, "should_apply": False}
    is_continuous = not _LASTING.isdisjoint(split_words(guideline.get("action")))
    was_applied = any(record["guideline"] == guideline["id"] for record in prompt.now.get("applied", []))
    # New words make the condition true anew; without a condition, nothing does.
    is_due_again = was_applied and not is_constant(condition)
    application = {
        "action": guideline.get("action"),
        "guideline_is_continuous": is_continuous,
        "guideline_previously_applied": "fully" if was_applied else "no",
        "guideline_should_reapply": is_due_again,
    }
    return judgement | {
        "condition_applies": "yes",
        "application": application,
        "score": 9,
        "should_apply": is_continuous or is_due_again or not was_applied,
    }


def _find_reason(prompt: Prompt, guideline: Mapping[str, Any]) -> str | None:
    """Return why a guideline's condition holds; None if it doesn't."""
    condition = guideline.get("condition")
    if is_constant(condition):
        return "There is no condition: it always holds."
    if guideline["id"] in prompt.now.get("holds", []):
        return "Code has checked it."
    if is_opening(condition):
        return None if prompt.earlier_replies else "The agent has not said anything yet."
    if guideline["id"] in prompt.now.get("unfinished", []):
        return "What the last reply asked for is still open."
    for alternative in str(condition).split(" or "):
        for id, text in _list_evidence(prompt, alternative, _is_about_customer(condition)).items():
            common_words = find_common(alternative, text)
            if len(common_words) * 2 > len(split_content_words(alternative)):
                return f"{id} speaks of {', '.join(common_words)}."
    return None


def _is_about_customer(condition: str | None) -> bool:
    return not _ABOUT_CUSTOMER.isdisjoint(split_words(condition))


def _list_evidence(prompt: Prompt, condition: str, is_about_customer: bool) -> dict[str, str]:
    """Return by id the texts that may make a condition true: the customer's last message, and this turn's results."""
    texts = {prompt.request_id: prompt.request}
    if answers := {"yes", "no"}.intersection(split_words(condition)):
        texts.clear()
        if answers.intersection(split_words(prompt.request)):  # a yes says what the agent asked
            texts[prompt.request_id] = f"{prompt.request} {prompt.last_reply}"
    if not is_about_customer:
        for line in prompt.results:
            if not line.failed:
                texts[line.id] = f"{line.tool} {line.arguments} {line.fields or line.text}"
    return texts
