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
from contextlib import suppress
from typing import Any

from arq_graph.errors import InputError

_KEY = re.compile(r"\s*(?:Step\s*[\d.]+_(?P<who>[HA])|Int_Step\s*[\d.]+)\s*", re.IGNORECASE)
_TOOL = re.compile(r"\s*Tool\s*:\s*(?P<tool>.*?)\s*,\s*Tool_Inputs?\s*:\s*(?P<rest>.*)", re.DOTALL)
_OBSERVATION = re.compile(r",?\s*Observation\s*:\s?")
_SPEAKER = re.compile(r"\s*(?:Human|AI)\s*:\s*")


def fits(record: Any) -> bool:
    """Whether a record is an object of steps, or has one under `Conversation`."""
    if not isinstance(record, Mapping) or not record:
        return False
    return "Conversation" in record or all(_KEY.fullmatch(str(key)) for key in record)


def read(record: Any) -> dict[str, Any]:
    """The steps of a record as messages, in their order."""
    held = dict(record) if "Conversation" in record else {"Conversation": record}
    steps = held.pop("Conversation")
    if not isinstance(steps, Mapping):
        raise InputError("`Conversation` is no object of steps")
    return {**held, "messages": _messages(steps)}


def _messages(steps: Mapping[Any, Any]) -> Iterator[dict[str, Any]]:
    for key, text in steps.items():
        found, name = _KEY.fullmatch(str(key)), str(key).strip()
        if found is None:
            raise InputError(f"the step {key!r} is none of `Step 1_H`, `Int_Step 1.1`, `Step 1_A`")
        if not isinstance(text, str):
            raise InputError(f"{name} is no text")
        if found["who"]:
            type = "human" if found["who"].upper() == "H" else "ai"
            yield {"type": type, "content": _SPEAKER.sub("", text, count=1), "step": name}
        else:
            yield from _call(name, text)


def _call(name: str, text: str) -> Iterator[dict[str, Any]]:
    found = _TOOL.fullmatch(text)
    if found is None:
        raise InputError(f"{name} is not of the form `Tool: NAME, Tool_Inputs: {{…}}, Observation: …`")
    rest = found["rest"]
    # An input may hold the very word "Observation:", so the first split whose left side can be read counts.
    splits = [(rest[: mark.start()], rest[mark.end() :]) for mark in _OBSERVATION.finditer(rest)]
    for written, observation in [*splits, (rest, None)]:
        if (inputs := _literal(written)) is not None:
            call = {"name": found["tool"], "args": inputs, "id": name}
            yield {"type": "ai", "content": "", "tool_calls": [call], "step": name}
            if observation is not None:
                yield {"type": "tool", "tool_call_id": name, "content": observation, "step": name}
            return
    raise InputError(f"{name}: the tool's inputs are no Python literal of a dict: {rest[:80]!r}")


def _literal(text: str) -> Mapping[str, Any] | None:
    text = text.strip().rstrip(",")
    if not text or text == "None":
        return {}
    for read in (ast.literal_eval, json.loads):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            if isinstance(value := read(text), Mapping):
                return value
    return None
