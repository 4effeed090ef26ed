"""Conditions that are functions of the designer's."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

from arq_graph.agent.guideline import Guideline
from arq_graph.errors import SpecError
from arq_graph.nodes.blueprint_node import DeferredCall


def evaluate_condition(guideline: Guideline, state: Any) -> Generator[DeferredCall, Any, bool]:
    """Call the function of a condition.

    Raises:
        SpecError: It raises an error, or returns a string: one such as "no" counts as true in Python.
    """
    condition: Any = guideline.condition
    cause: Exception | None = None
    try:
        result = yield partial(condition, state)
        if not isinstance(result, str):
            return bool(result)
        problem = f"returned {result!r:.60}"
    except Exception as error:
        cause = error
        problem = f"raised {type(error).__name__}: {error}"
    raise SpecError(
        f"the condition of guideline {guideline.id} {problem}; it is called with a dict of the messages, the "
        "variables and the channels that the matcher's reads= names, and must return True or False for every state"
    ) from cause
