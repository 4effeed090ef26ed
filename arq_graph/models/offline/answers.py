"""Answering the blueprints of the nodes: suggestions for their queries, by property."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from arq_graph.models.offline.activation import judge_guidelines
from arq_graph.models.offline.calls import Call, find_calls
from arq_graph.models.offline.prompt import Prompt
from arq_graph.models.offline.reply import describe_result, write_reply
from arq_graph.models.offline.words import find_common


def suggest_answers(prompt: Prompt, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return suggested answers to a blueprint with these properties; a schema takes what fits it."""
    if "move" in properties:
        return _answer_speaker(prompt)
    if "action" in properties and properties.keys() & {"next_steps", "thought"}:
        return _answer_planner(prompt)
    if "revisions" in properties:
        return _answer_reviser(prompt)
    if "guidelines" in prompt.sections:
        return judge_guidelines(prompt)
    if "tools" in prompt.sections:
        return _answer_tool_caller(prompt)
    return {}


def _answer_tool_caller(prompt: Prompt) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for call in find_calls(prompt):
        answer = {"score": 9, "arguments": call.answers, "should_run": True}
        answer["applicability_rationale"] = "An active guideline calls for it."
        answers[call.key] = {"tool_calls_for_candidate_tool": [answer]}
    return answers


def _plan_calls(prompt: Prompt) -> tuple[list[Call], list[dict[str, Any]]]:
    """Return the calls that are ready to be made, and the arguments that are missing in others."""
    ready, missing = [], []
    for call in find_calls(prompt):
        missing.extend(call.missing)
        if not call.missing and prompt.now.get("steps_left", 1):
            ready.append(call)
    return ready, missing


def _choose_call(calls: list[Call]) -> dict[str, Any]:
    if not calls:
        return {}
    return {calls[0].key: {"arguments": calls[0].answers, "expected": "A result.", "go_ahead": True}}


def _answer_planner(prompt: Prompt) -> dict[str, Any]:
    ready, missing = _plan_calls(prompt)
    steps: list[dict[str, Any]] = []
    for call in ready:
        steps.append({"step": f"call {call.name}", "reason": "It is called for.", "tool": call.name})
    steps.append({"step": "tell what was found", "reason": "Then all is done.", "tool": None})
    final_answer = {"asks_for": missing, "answer": write_reply(prompt, missing)}
    answers = {
        "thought": f"Next: {steps[0]['step']}.",
        "last_customer_message": prompt.request,
        "request": prompt.request,
        "next_steps": steps,
        "action": _choose_call(ready) or {"final_answer": final_answer},
        "answer_rests_on_this_prompt": True,
    }
    if prompt.results:
        newest = prompt.results[-1]
        answers["newest_result"] = f"{newest.id}: {newest.text[:200]}"
        answers["previous_steps"] = ", ".join(f"{line.tool} ({line.id})" for line in prompt.results)
        answers["observation"] = "as_expected"
        for outcome in ("failed", "empty"):
            if newest.id in prompt.now.get(outcome, []):
                answers["observation"] = outcome
                answers["change"] = {"what": "tell what was found", "why": f"{newest.id} {outcome}"}
    return answers


def _answer_speaker(prompt: Prompt) -> dict[str, Any]:
    ready, missing = _plan_calls(prompt)
    reply = write_reply(prompt, missing)
    utterance = {
        "asks_for": missing,
        "utterance": reply,
        "asks": "?" in reply,
        "mentions_failure": any(line.failed for line in prompt.results),
        "ends_task": "?" not in reply,
    }
    move = _choose_call(ready) or _choose_action(prompt) or {"speak": utterance}
    return {"last_customer_message": prompt.request, "goal": prompt.request, "move": move}


def _choose_action(prompt: Prompt) -> dict[str, Any]:
    """Return the first action in a world that shares a word with the goal and wasn't taken."""
    earlier_actions = [line.arguments.get("action") for line in prompt.results]
    world = prompt.sections.get("world") or {}
    for action in world.get("actions") or ():
        is_new = action not in earlier_actions
        if is_new and find_common(action, prompt.request) and prompt.now.get("steps_left", 1):
            return {"act": {"action": action}}
    return {}


def _answer_reviser(prompt: Prompt) -> dict[str, Any]:
    """Suggest one revision: the draft, unless there is none or it was said before or refused."""
    missing = [insight for insight in prompt.get_entries("insights") if insight.get("argument")]
    content = prompt.sections.get("draft")
    if not content or content in prompt.earlier_replies or prompt.complaints:
        content = write_reply(prompt, missing)
    facts = [{"fact": describe_result(line), "source": line.id} for line in prompt.results]
    revision = {
        "revision_number": 1,
        "content": content,
        "followed": [guideline["id"] for guideline in prompt.get_entries("active_guidelines")],
        "factual_information_provided": facts,
    }
    return {
        "last_message_of_customer": prompt.request,
        "context_evaluation": {"most_recent_customer_inquiries_or_needs": prompt.request},
        "revisions": [revision],
    }
