"""Choosing a prepared reply: the one that shares most words with what was asked, and whose values are here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from arq_graph.models.offline.prompt import Prompt, find_common

_VALUE = re.compile(r"[\w@-]*\d[\w@-]*")


def choose_reply(prompt: Prompt, *, has_question_below: bool) -> dict[str, Any]:
    """Suggest a reply with the values of its fields; the one with `otherwise` if no other has a word of the request.

    Above a question of code's there is none.
    """
    followed = [guideline["id"] for guideline in prompt.get_entries("active_guidelines")]
    topics = [str(guideline.get("action")) for guideline in prompt.get_entries("active_guidelines")]
    topics.append(prompt.request)
    choices: list[tuple[int, dict[str, Any]]] = []
    for reply in prompt.get_entries("replies"):
        text = reply["text"]
        if isinstance(text, dict):  # by language
            text = " ".join(text.values())
        score = len(find_common(f"{reply.get('when')} {text}", " ".join(topics)))
        values: list[dict[str, Any]] = []
        for name, field in reply.get("fields", {}).items():
            value, source = _find_value(prompt, field)
            values.append({"field": name, "value": str(value), "source": source})
        if reply.get("otherwise"):
            score = 0
        elif score == 0 or not all(value["source"] for value in values):
            score = -1
        else:
            score += 2 * len(values)
        choices.append((score, {"reply": reply["id"], "values": values}))
    replies: list[dict[str, Any]] = []
    if not has_question_below:
        _, chosen = max(choices, key=lambda choice: choice[0])
        replies = [chosen]
    return {"replies": replies, "followed": followed, "language": "en", "is_every_reply_right": True}


def _find_value(prompt: Prompt, field: Mapping[str, Any]) -> tuple[Any, str]:
    """Return a value that a field may have, and the id of its source; "" if there is none."""
    tool, *keys = field.get("result", "").split(".")
    for line in prompt.results:
        value = _follow(line.fields, keys) if keys else line.text
        if line.tool == tool and value is not None:
            return value, line.id
    for variable in prompt.get_entries("variables"):
        if variable["name"] == field.get("variable"):
            return variable["value"], variable["id"]
    if field.get("knowledge") and (passages := prompt.get_entries("knowledge")):
        return "", passages[0]["id"]
    if field.get("customer") and (word := _VALUE.search(prompt.request)):
        return word[0], prompt.request_id
    return "", ""


def _follow(value: Any, keys: Sequence[str]) -> Any:
    """Return the text or number at a path, in the first item of each list."""
    for key in keys:
        if isinstance(value, list):
            value = next(iter(value), None)
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str | int | float) else None
