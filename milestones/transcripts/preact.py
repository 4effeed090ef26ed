"""Transcripts from the step format of the Pre-Act authors.

{"Conversation": {"Step 1_H": "Human: …",
                  "Int_Step 1.1": "Tool: NAME, Tool_Inputs: {…}, Observation: …",
                  "Step 1_A": "AI: …"}}
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.transcripts.messages import Recorded

MOST_SPLITS = 50

_KEY = re.compile(r"(?P<inner>Int_)?Step\s*\d+(?:\.\d+)*(?:_(?P<who>[HA]))?", re.IGNORECASE)
_TOOL = re.compile(r"\s*Tool\s*:\s*(?P<tool>.*?)\s*,\s*Tool_Inputs?\s*:\s*(?P<rest>.*)", re.DOTALL)
_OBSERVATION = re.compile(r",?\s*Observation\s*:\s?")
_SPOKEN = {"H": ("human", re.compile(r"\s*Human\s*:\s*")), "A": ("ai", re.compile(r"\s*AI\s*:\s*"))}


def fits(record: Any) -> bool:
    """Whether a record is an object of steps, or has one under `Conversation`."""
    if not isinstance(record, Mapping) or not record:
        return False
    return "Conversation" in record or all(_KEY.fullmatch(str(key).strip()) for key in record)


def read(record: Any) -> Recorded:
    """The steps of a record as messages, in their order."""
    steps = record.get("Conversation", record) if isinstance(record, Mapping) else record
    if not isinstance(steps, Mapping):
        raise InputError("`Conversation` is no object of steps")
    return Recorded(_messages(steps), record if steps is not record else {}, ("Conversation",))


def _messages(steps: Mapping[Any, Any]) -> Iterator[dict[str, Any]]:
    for key, text in steps.items():
        name = str(key).strip()
        found = _KEY.fullmatch(name)
        if found is None or not (found["inner"] or found["who"]):
            raise InputError(f"the step {key!r} is none of `Step 1_H`, `Int_Step 1.1`, `Step 1_A`")
        if not isinstance(text, str):
            raise InputError(f"{name} is no text")
        if found["inner"]:
            yield from _call(name, text)
        else:
            type, prefix = _SPOKEN[found["who"].upper()]
            yield {"type": type, "content": prefix.sub("", text, count=1), "step": name}


def _call(name: str, text: str) -> Iterator[dict[str, Any]]:
    found = _TOOL.fullmatch(text)
    if found is None:
        raise InputError(f"{name} is not of the form `Tool: NAME, Tool_Inputs: {{…}}, Observation: …`")
    inputs, observation = _inputs(name, found["rest"])
    call = {"name": found["tool"], "args": inputs, "id": name}
    yield {"type": "ai", "content": "", "tool_calls": [call], "step": name}
    if observation is not None:
        yield {"type": "tool", "tool_call_id": name, "content": observation, "step": name}


def _inputs(name: str, rest: str) -> tuple[Mapping[str, Any], str | None]:
    # An input may hold the very word "Observation:", so the first split whose left side can be read counts.
    for mark in islice(_OBSERVATION.finditer(rest), MOST_SPLITS):
        inputs = _literal(rest[: mark.start()])
        if inputs is not None:
            return inputs, rest[mark.end() :]
    inputs = _literal(rest)
    if inputs is None:
        raise InputError(f"{name}: the tool's inputs are no Python literal of a dict: {rest[:80]!r}")
    return inputs, None


def _literal(text: str) -> Mapping[str, Any] | None:
    text = text.strip().rstrip(",")
    if not text or text == "None":
        return {}
    for read in (ast.literal_eval, json.loads):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        if isinstance(value, Mapping):
            return value
    return None
