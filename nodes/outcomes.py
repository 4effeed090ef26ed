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
    "Error", or an object with a filled `error`.

    Args:
        line: A tool result of the conversation.
    """
    text = line.message.text.strip()
    if isinstance(line.message, ToolMessage) and line.message.status == "error":
        return "failed"
    if _ERROR.match(text) or _reports_error(text):
        return "failed"
    return "empty" if text.lower() in _NOTHING else "told"


def _reports_error(text: str) -> bool:
    if not text.startswith("{"):
        return False
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(result, dict) and bool(result.get("error"))
