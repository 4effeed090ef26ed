"""Answering the blueprints of the nodes with suggestions by property, and writing replies.

A reply has the results of tools, or else the meaning of a term or the first passage of knowledge, the quotes in the
guidelines' actions, and one question for what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arq_graph.models.offline.activation import is_opening, judge_guidelines, judge_steps
from arq_graph.models.offline.calls import Call, describe_argument, find_calls
from arq_graph.models.offline.choice import choose_reply
from arq_graph.models.offline.prompt import (
    ASKING,
    QUOTED,
    WAITING,
    Line,
    Prompt,
    find_common,
    to_phrase,
)

NOT_UNDERSTOOD = "(offline model) I did not understand this. A real model would."


def suggest_answers(prompt: Prompt, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return suggested answers to a blueprint with these properties; a schema takes what fits it."""
    if "move" in properties or "action" in properties:
        return _answer_strategy(prompt)
    if "revisions" in properties:
        return _answer_reviser(prompt)
    if "replies" in properties:
        return choose_reply(prompt, has_question_below=_has_question_below(prompt))
    if "begun_anew" in properties:
        return judge_steps(prompt)
    if "guidelines" in prompt.sections:
        return judge_guidelines(prompt)
    if "tools" in prompt.sections:
        return describe_proposals(find_calls(prompt))
    return {}


def describe_proposals(calls: Sequence[Call]) -> dict[str, Any]:
    """Suggest the answer of the tool caller that proposes these calls."""
    answers: dict[str, Any] = {}
    for call in calls:
        answer = {"score": 9, "arguments": call.answers, "should_run": True}
        candidate = answers.setdefault(call.key, {"tool_calls_for_candidate_tool": []})
        candidate["tool_calls_for_candidate_tool"].append(answer)
    return answers


def _answer_strategy(prompt: Prompt) -> dict[str, Any]:
    ready: list[Call] = []
    missing: list[dict[str, Any]] = []
    for call in find_calls(prompt):
        missing.extend(call.missing)
        if not call.missing and prompt.now.get("steps_left", 1):
            ready.append(call)
    return describe_action(prompt, ready, write_reply(prompt, missing), missing)


def describe_action(
    prompt: Prompt, ready: Sequence[Call], reply: str, missing: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Suggest the next action of a planner, and the next move of a speaker: the first call, or without one the reply.

    The reply asks for the arguments that are `missing`.
    """
    steps: list[dict[str, Any]] = [{"step": f"call {call.name}", "tool": call.name} for call in ready]
    steps.append({"step": "tell what was found", "tool": None})
    answers: dict[str, Any] = {"next_steps": steps, "answer_rests_on_this_prompt": True}
    if ready:
        call_now = {ready[0].key: {"arguments": ready[0].answers, "go_ahead": True}}
        answers |= {"action": call_now, "move": call_now}
    else:
        asks = "?" in reply
        answers["action"] = {"final_answer": {"asks_for": missing, "answer": reply}}
        ends_task = not asks and not missing
        speech = {"asks_for": missing, "utterance": reply, "asks": asks, "ends_task": ends_task}
        answers["move"] = {"speak": speech}
    if prompt.results:
        newest = prompt.results[-1].id
        answers["previous_steps"] = ", ".join(f"{line.tool} ({line.id})" for line in prompt.results)
        if newest in prompt.now.get("failed", []) + prompt.now.get("empty", []):
            answers["change"] = {"what": "tell what was found", "why": f"{newest} isn't what was expected"}
    return answers


def _answer_reviser(prompt: Prompt) -> dict[str, Any]:
    """Suggest one revision: the draft, unless there is a better reply, since it was said before or refused."""
    draft = str(prompt.sections.get("draft") or "")
    content = draft
    if not draft or draft in prompt.earlier_replies or prompt.complaints:
        insights = prompt.get_entries("insights")
        content = write_reply(prompt, [insight for insight in insights if insight.get("argument")])
        if draft and content == NOT_UNDERSTOOD:
            content = draft
    return describe_revision(prompt, content)


def describe_revision(prompt: Prompt, content: str) -> dict[str, Any]:
    """Suggest one revision with this text, which follows all active guidelines."""
    followed = [guideline["id"] for guideline in prompt.get_entries("active_guidelines")]
    facts: list[dict[str, Any]] = []
    for passage in prompt.get_entries("knowledge"):
        if passage["text"] in content:
            facts.append({"fact": passage["text"], "source": passage["id"]})
    return {"revisions": [{"content": content, "followed": followed, "factual_information_provided": facts}]}


def write_reply(prompt: Prompt, missing: Sequence[Mapping[str, Any]] = ()) -> str:
    """Write the reply; `missing` are the arguments to ask for, each with its tool and description."""
    opening: list[str] = []
    body = [_describe_result(line) for line in prompt.results]
    body = body or _define_term(prompt) or _quote_passage(prompt)
    tools = " ".join(entry["tool"] for entry in missing)
    for guideline in prompt.get_entries("active_guidelines"):
        action = str(guideline.get("action") or "")
        if is_opening(guideline.get("condition")):
            opening.extend(QUOTED.findall(action))
        elif not find_common(tools, QUOTED.sub("", action)):  # or else it is said after the call
            body.extend(QUOTED.findall(action))
    if missing:
        phrases = [describe_argument(entry["argument"], entry.get("description")) for entry in missing]
        wanted = " and ".join(dict.fromkeys(phrases))
        if ASKING in prompt.last_reply:  # no reply should repeat the one before it
            body.append(f"{WAITING} {wanted}.")
        else:
            body.append(f"{ASKING} {wanted}?")
    elif not body and _has_question_below(prompt):
        body.append("Let me make sure that I have this right.")
    elif not body and not opening:
        body.append(NOT_UNDERSTOOD)
    return "\n\n".join(opening + body)


def _describe_result(line: Line) -> str:
    if line.failed:
        return f"I am sorry, that did not work: {line.text.removeprefix('Error: ').strip().rstrip('.')}."
    rows = [f"- {to_phrase(name)}: {value}" for name, value in line.fields.items()]
    return "\n".join(rows) or line.text.strip() or "That is done."


def _has_question_below(prompt: Prompt) -> bool:
    """Return True if code's own question stands below the reply."""
    is_question_new = any(insight.get("kind") == "confirm" for insight in prompt.get_entries("insights"))
    return is_question_new or (bool(prompt.pending_calls) and not prompt.says_no)


def _quote_passage(prompt: Prompt) -> list[str]:
    passages = prompt.get_entries("knowledge")
    return [passages[0]["text"]] if passages else []


def _define_term(prompt: Prompt) -> list[str]:
    request = to_phrase(prompt.request)
    for term in prompt.get_entries("glossary"):
        name = str(term["name"])
        if any(to_phrase(word) in request for word in [name, *term.get("synonyms", [])]):
            return [f"{name[:1].upper()}{name[1:]}: {term.get('description')}."]
    return []
