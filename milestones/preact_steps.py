"""Transcripts from the step format of the Pre-Act authors.

{"Conversation": {"Step 1_H": "Human: …",
                  "Int_Step 1.1": "Tool: NAME, Tool_Inputs: {…}, Observation: …",
                  "Step 1_A": "AI: …"}}
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.recording import Recording

MOST_SPLITS = 50

_KEY = re.compile(r"(?P<inner>Int_)?Step\s*\d+(?:\.\d+)*(?:_(?P<who>[HA]))?", re.IGNORECASE)
_TOOL = re.compile(r"\s*Tool\s*:\s*(?P<tool>.*?)\s*,\s*Tool_Inputs?\s*:\s*(?P<rest>.*)", re.DOTALL)
_OBSERVATION = re.compile(r",?\s*Observation\s*:\s?")
_SPOKEN = {"H": ("user", re.compile(r"\s*Human\s*:\s*")), "A": ("agent", re.compile(r"\s*AI\s*:\s*"))}


def is_steps(value: Any) -> bool:
    """Whether this looks like an object of steps."""
    return (
        isinstance(value, Mapping) and bool(value) and all(_KEY.fullmatch(str(key).strip()) for key in value)
    )


def record_steps(steps: Any) -> Recording:
    """What happened in an object of steps, in its order.

    Raises:
        InputError: A step has another name or another form; it is named.
    """
    if not isinstance(steps, Mapping):
        raise InputError("`Conversation` is no object of steps")
    recording = Recording()
    for key, text in steps.items():
        name = str(key).strip()
        found = _KEY.fullmatch(name)
        if found is None or not (found["inner"] or found["who"]):
            raise InputError(f"the step {key!r} is none of `Step 1_H`, `Int_Step 1.1`, `Step 1_A`")
        if not isinstance(text, str):
            raise InputError(f"{name} is no text")
        if found["inner"]:
            _call(recording, name, text)
        else:
            speaker, prefix = _SPOKEN[found["who"].upper()]
            recording.say(speaker, prefix.sub("", text, count=1), name)  # type: ignore[arg-type]
    return recording


def _call(recording: Recording, name: str, text: str) -> None:
    found = _TOOL.fullmatch(text)
    if found is None:
        raise InputError(f"{name} is not of the form `Tool: NAME, Tool_Inputs: {{…}}, Observation: …`")
    inputs, observation = _inputs(name, found["rest"])
    call = recording.call(found["tool"], inputs, None, name)
    if observation is not None:
        recording.answer_call(call, observation, name)


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
