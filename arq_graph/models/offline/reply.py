"""Writing a reply: the quotes in actions, the results of tools, and one question for what is missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from arq_graph.models.offline.activation import is_opening
from arq_graph.models.offline.arguments import describe_argument
from arq_graph.models.offline.prompt import Line, Prompt
from arq_graph.models.offline.words import find_common, to_phrase

NOT_UNDERSTOOD = "(offline model) I did not understand this. A real model would."

_QUOTED = re.compile(r"[\"“]([^\"“”]+)[\"”]")
_ERROR_TYPE = re.compile(r"^(?:Error: )?\w*(?:Error|Exception): ")


def write_reply(prompt: Prompt, missing: Sequence[tuple[str, str]] = ()) -> str:
    """Write the reply; `missing` has the tools whose arguments are missing, and what the customer is asked for."""
    opening: list[str] = []
    body = [_describe_result(line) for line in prompt.results] or _define_term(prompt)
    tools = " ".join(tool for tool, _ in missing)
    for guideline in prompt.get_entries("active_guidelines"):
        action = str(guideline.get("action") or "")
        if is_opening(guideline.get("condition")):
            opening.extend(_QUOTED.findall(action))
        elif not find_common(tools, _QUOTED.sub("", action)):  # or else it is said after the call
            body.extend(_QUOTED.findall(action))
    if missing:
        descriptions = dict.fromkeys(description for _, description in missing)
        body.append(f"Could you please tell me {' and '.join(descriptions)}?")
    elif not body and _has_question_below(prompt):
        body.append("Let me make sure that I have this right.")
    elif not body and not opening:
        body.append(NOT_UNDERSTOOD)
    return "\n\n".join(opening + body)


def _has_question_below(prompt: Prompt) -> bool:
    """Return True if code's own question stands below the reply."""
    if any(insight.get("kind") == "confirm" for insight in prompt.get_entries("insights")):
        return True
    for tool in prompt.get_entries("tools"):
        if tool.get("needs_agreement") and any(f".{tool['name']}" in place for place in prompt.complaints):
            return True
    return bool(prompt.pending_calls) and not prompt.says_no


def _define_term(prompt: Prompt) -> list[str]:
    request = to_phrase(prompt.request)
    for term in prompt.get_entries("glossary"):
        name = str(term["name"])
        if any(to_phrase(word) in request for word in (name, *term.get("synonyms", ()))):
            return [f"{name[:1].upper()}{name[1:]}: {term.get('description')}."]
    return []


def _describe_result(line: Line) -> str:
    if line.failed:
        return f"I am sorry, that did not work: {_ERROR_TYPE.sub('', line.text).strip().rstrip('.')}."
    rows = [f"- {to_phrase(name)}: {value}" for name, value in line.fields.items()]
    return "\n".join(rows) or line.text.strip() or "That is done."


def answer_reviser(prompt: Prompt) -> dict[str, Any]:
    """Return the answers to the reviser's queries, with one revision: the draft, if there is one."""
    missing = []
    for insight in prompt.get_entries("insights"):
        if insight.get("kind") in ("missing", "invalid") and insight.get("argument"):
            description = describe_argument(insight["argument"], insight.get("description") or "")
            missing.append((str(insight.get("tool")), description))
    content = prompt.sections.get("draft")
    if not content or content in prompt.earlier_replies or prompt.complaints:
        content = write_reply(prompt, missing)
    revision = {
        "revision_number": 1,
        "content": content,
        "followed": [guideline["id"] for guideline in prompt.get_entries("active_guidelines")],
        "factual_information_provided": [
            {"fact": _describe_result(line), "source": line.id} for line in prompt.results
        ],
    }
    return {
        "last_message_of_customer": prompt.request,
        "context_evaluation": {"most_recent_customer_inquiries_or_needs": prompt.request},
        "revisions": [revision],
    }
