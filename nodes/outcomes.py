"""What code sees of a tool's result without understanding it: that it failed, or that it holds nothing."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

from langchain_core.messages import ToolMessage

from arq_graph.reasoning.conversation import Line

Outcome = Literal["told", "failed", "empty"]

_ERROR = re.compile(r"""\W*error["']?\s*:(?!\s*(?:none|null|false)\b)""", re.IGNORECASE)
_NOTHING: tuple[Any, ...] = ("", "null", "none", "[]", "{}", '""')


def outcome_of(line: Line) -> Outcome:
    """How a tool's result ended.

    A tool that raised has status `error`. Many report a failure as an ordinary result: a text that begins with
    "Error:", an object with a filled `error`, or a list of such objects alone. Nothing is an empty text, list or
    object, or an object of empty lists.
    """
    text = line.message.text.strip()
    if isinstance(line.message, ToolMessage) and line.message.status == "error":
        return "failed"
    result = _read(text)
    if _ERROR.match(text) is not None if result is None else _reports_error(result):
        return "failed"
    return "empty" if text.lower() in _NOTHING or _holds_nothing(result) else "told"


def _reports_error(result: Any) -> bool:
    reports = result if isinstance(result, list) else [result]
    return bool(reports) and all(isinstance(each, dict) and each.get("error") for each in reports)


def _holds_nothing(result: Any) -> bool:
    """Whether an object lists nothing, and tells nothing else: `{"results": [], "total": 0}`."""
    values = result.values() if isinstance(result, dict) else ()
    lists = [value for value in values if isinstance(value, list)]
    return bool(lists) and all(value is True or not value for value in values)


def _read(text: str) -> Any:
    """The object or list that a result is; None for anything else."""
    if not text.startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
