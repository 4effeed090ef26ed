"""What code sees of a tool's result without understanding it: that it failed, or that it holds nothing."""

from __future__ import annotations

import json
from typing import Any, Literal

from langchain_core.messages import ToolMessage

from arq_graph.reasoning.conversation import Line

Outcome = Literal["told", "failed", "empty"]


def outcome_of(line: Line) -> Outcome:
    """How a tool's result ended, by its structure alone.

    A tool that raised has status `error`; others report a failure as an object with a filled `error`, or as a list of
    such objects alone. Nothing is an empty text, list or object, null, or an object of empty lists.
    """
    if isinstance(line.message, ToolMessage) and line.message.status == "error":
        return "failed"
    text = line.message.text.strip()
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return "told" if text else "empty"
    if _reports_error(result):
        return "failed"
    return "empty" if result in (None, "", [], {}) or _holds_nothing(result) else "told"


def _reports_error(result: Any) -> bool:
    reports = result if isinstance(result, list) else [result]
    return bool(reports) and all(isinstance(each, dict) and each.get("error") for each in reports)


def _holds_nothing(result: Any) -> bool:
    """Whether an object lists nothing, and tells nothing else: `{"results": [], "total": 0}`."""
    values = result.values() if isinstance(result, dict) else ()
    return any(value == [] for value in values) and all(value is True or not value for value in values)
