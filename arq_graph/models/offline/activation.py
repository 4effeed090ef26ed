"""Judging guidelines and the steps of journeys by words.

A condition holds if most of its words were just said, or are in a tool's result; that of an observation, of a journey
or of a step holds from then on. A step that asks is answered by the message after the question that its action quotes.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from arq_graph.models.offline.prompt import (
    QUOTED,
    WAITING,
    Prompt,
    find_common,
    split_content_words,
    split_words,
)

_ABOUT_CUSTOMER = {"customer", "asks", "wants", "says", "tells", "needs"}
_LASTING = {"always", "never", "not"}


def is_opening(condition: str | None) -> bool:
    """Return True if a condition says that the conversation has just started."""
    return {"conversation", "started"} <= set(split_words(condition))


def is_constant(condition: str | None) -> bool:
    """Return True if a condition is always true."""
    return condition is None or condition.strip(" .").casefold() == "always"


def judge_guidelines(
    prompt: Prompt, holding: Container[str] | None = None, unsettled: Container[str] = ()
) -> dict[str, Any]:
    """Return the answers to the matcher's queries by guideline id.

    Words tell which conditions hold, unless the ids of those that do are in `holding`; then a tool's result could
    change those in `unsettled`.
    """
    answers = {}
    for guideline in prompt.get_entries("guidelines"):
        id = guideline["id"]
        if id in prompt.now.get("judge", []):
            may_change = not _is_about_customer(guideline.get("condition"))
            if holding is not None:
                may_change = id in unsettled
            reason = _find_reason(prompt, guideline, holding)
            answers[id] = _judge(prompt, guideline, reason, may_change)
    return answers


def judge_steps(prompt: Prompt) -> dict[str, Any]:
    """Return the answers to the question about journeys."""
    steps = prompt.now.get("judge", [])
    reasons = {step["id"]: _find_step_reason(prompt, step.get("condition")) for step in steps}
    holding = {step["id"] for step in steps if step.get("condition") and reasons[step["id"]]}
    judged: list[dict[str, Any]] = []
    for step in steps:
        action = str(step["action"])
        questions = QUOTED.findall(action)
        was_asked = bool(questions) and all(question in prompt.last_reply for question in questions)
        condition_holds = "yes" if reasons[step["id"]] else "not_known_yet"
        if condition_holds != "yes" and holding:
            condition_holds = "no"  # another step's condition does
        judgement = {
            "action": action,
            "condition_rationale": reasons[step["id"]] or "Nothing that was said or found has its words.",
            "condition_holds": condition_holds,
            "asks_for_something": "ask" in split_words(action),
            "answered_by": prompt.request_id if was_asked else None,
            "done_when_holds": bool(_find_step_reason(prompt, step.get("done_when", "-"))),
        }
        judged.append({"step": step["id"], "judgement": judgement})
    return {"steps": judged}


def _find_step_reason(prompt: Prompt, condition: str | None) -> str | None:
    if condition is None or condition.startswith("code checks it"):
        return "It holds."
    return _find_words(condition, _list_evidence(prompt, condition, is_lasting=True))


def _judge(
    prompt: Prompt, guideline: Mapping[str, Any], rationale: str | None, may_change: bool
) -> dict[str, Any]:
    condition = guideline.get("condition")
    judgement: dict[str, Any] = {
        "condition": condition,
        "condition_application_rationale": rationale or "Nothing that was just said or found has its words.",
        "could_a_tool_change_that": may_change,
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


def _find_reason(prompt: Prompt, guideline: Mapping[str, Any], holding: Container[str] | None) -> str | None:
    """Return why a guideline's condition holds; None if it doesn't."""
    condition = guideline.get("condition")
    if is_constant(condition):
        return "There is no condition: it always holds."
    if guideline["id"] in prompt.now.get("holds", []):
        return "Code has checked it."
    if holding is not None:
        return "It is said to hold." if guideline["id"] in holding else None
    if is_opening(condition):
        return None if prompt.earlier_replies else "The agent has not said anything yet."
    if guideline["id"] in prompt.now.get("unfinished", []):
        return "What the last reply asked for is still open."
    is_observation = guideline.get("action") is None
    return _find_words(str(condition), _list_evidence(prompt, str(condition), is_lasting=is_observation))


def _find_words(condition: str, evidence: Mapping[str, str]) -> str | None:
    """Return which text has most words of a condition, or of one of its alternatives; None if none has."""
    for alternative in condition.split(" or "):
        for id, text in evidence.items():
            common_words = find_common(alternative, text)
            if len(common_words) * 2 > len(split_content_words(alternative)):
                return f"{id} speaks of {', '.join(common_words)}."
    return None


def _is_about_customer(condition: str | None) -> bool:
    return not _ABOUT_CUSTOMER.isdisjoint(split_words(condition))


def _list_evidence(prompt: Prompt, condition: str, *, is_lasting: bool) -> dict[str, str]:
    """Return by id the texts that may make a condition true: the customer's last message, and this turn's results.

    A condition that lasts may have become true with an earlier message of the customer.
    """
    texts = {prompt.request_id: prompt.request}
    if is_lasting:
        texts |= {line.id: line.text for line in prompt.lines if line.speaker == "customer"}
    # A speaker that only says what it waits for has no open question in its records.
    is_waiting = WAITING in prompt.last_reply and not prompt.now.get("unfinished")
    if is_waiting and not prompt.says_no:
        texts[prompt.open_request_id] = prompt.open_request
    if answers := {"yes", "no"}.intersection(split_words(condition)):
        texts.clear()
        if answers.intersection(split_words(prompt.request)):  # a yes says what the agent asked
            texts[prompt.request_id] = f"{prompt.request} {prompt.last_reply}"
    if not _is_about_customer(condition):
        for line in prompt.results:
            if not line.failed:
                texts[line.id] = f"{line.tool} {line.arguments} {line.fields or line.text}"
    return texts
