"""What code sees of a tool's result without understanding it: that it failed, or that it holds nothing."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

from langchain_core.messages import ToolMessage

from arq_graph.reasoning.conversation import Line

Outcome = Literal["told", "failed", "empty"]

_ERROR = re.compile(r"\W*error\b", re.IGNORECASE)
_NOTHING: tuple[Any, ...] = ("", "null", "none", "[]", "{}", '""')


def outcome_of(line: Line) -> Outcome:
    """How a tool's result ended.

    A tool that raised has status `error`. Many report a failure as an ordinary result: a text that begins with
    "Error", or an object with a filled `error`. Nothing is an empty text, list or object, or an object of empty lists.

    Args:
        line: A tool result of the conversation.
    """
    text = line.message.text.strip()
    if isinstance(line.message, ToolMessage) and line.message.status == "error":
        return "failed"
    if _ERROR.match(text) or _reports_error(text):
        return "failed"
    return "empty" if text.lower() in _NOTHING or _holds_nothing(text) else "told"


def _reports_error(text: str) -> bool:
    return bool(_object(text).get("error"))


def _holds_nothing(text: str) -> bool:
    """Whether an object lists nothing, and tells nothing else: `{"results": [], "total": 0}`."""
    values = _object(text).values()
    lists = [value for value in values if isinstance(value, list)]
    return bool(lists) and all(value is True or not value for value in values)


def _object(text: str) -> dict[str, Any]:
    if not text.startswith("{"):
        return {}
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return result if isinstance(result, dict) else {}
