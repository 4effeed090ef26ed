"""Writing a reply: the quotes in actions, the results of tools, and one question for what is missing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from arq_graph.models.offline.activation import is_opening
from arq_graph.models.offline.prompt import Line, Prompt
from arq_graph.models.offline.words import find_common, to_phrase

NOT_UNDERSTOOD = "(offline model) I did not understand this. A real model would."

QUOTED = re.compile(r"[\"“]([^\"“”]+)[\"”]")


def write_reply(prompt: Prompt, missing: Sequence[Mapping[str, Any]] = ()) -> str:
    """Write the reply; `missing` are the arguments to ask for, each with its tool and description."""
    opening: list[str] = []
    body = [describe_result(line) for line in prompt.results] or _define_term(prompt)
    tools = " ".join(entry["tool"] for entry in missing)
    for guideline in prompt.get_entries("active_guidelines"):
        action = str(guideline.get("action") or "")
        if is_opening(guideline.get("condition")):
            opening.extend(QUOTED.findall(action))
        elif not find_common(tools, QUOTED.sub("", action)):  # or else it is said after the call
            body.extend(QUOTED.findall(action))
    if missing:
        phrases = [describe_argument(entry["argument"], entry.get("description")) for entry in missing]
        body.append(f"Could you please tell me {' and '.join(dict.fromkeys(phrases))}?")
    elif not body and _has_question_below(prompt):
        body.append("Let me make sure that I have this right.")
    elif not body and not opening:
        body.append(NOT_UNDERSTOOD)
    return "\n\n".join(opening + body)


def describe_argument(name: str, description: str | None) -> str:
    """Return what the customer is asked for: an argument's name in words, with its description."""
    text = (description or "").strip().rstrip(".")
    if text.casefold() in ("", to_phrase(name)):
        return f"the {to_phrase(name)}"
    return f"the {to_phrase(name)} ({text[:1].lower()}{text[1:]})"


def describe_result(line: Line) -> str:
    """Return what a tool's result says."""
    if line.failed:
        return f"I am sorry, that did not work: {line.text.removeprefix('Error: ').strip().rstrip('.')}."
    rows = [f"- {to_phrase(name)}: {value}" for name, value in line.fields.items()]
    return "\n".join(rows) or line.text.strip() or "That is done."


def _has_question_below(prompt: Prompt) -> bool:
    """Return True if code's own question stands below the reply."""
    is_question_new = any(insight.get("kind") == "confirm" for insight in prompt.get_entries("insights"))
    return is_question_new or (bool(prompt.pending_calls) and not prompt.says_no)


def _define_term(prompt: Prompt) -> list[str]:
    request = to_phrase(prompt.request)
    for term in prompt.get_entries("glossary"):
        name = str(term["name"])
        if any(to_phrase(word) in request for word in (name, *term.get("synonyms", ()))):
            return [f"{name[:1].upper()}{name[1:]}: {term.get('description')}."]
    return []
