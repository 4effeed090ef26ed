"""Records in the step format of the Pre-Act authors.

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

_KEY = re.compile(r"\s*(?:Step\s*[\d.]+_(?P<speaker>[HA])|Int_Step\s*[\d.]+)\s*", re.IGNORECASE)
_TOOL = re.compile(r"\s*Tool\s*:\s*(?P<tool>.*?)\s*,\s*Tool_Inputs?\s*:\s*(?P<rest>.*)", re.DOTALL)
_OBSERVATION = re.compile(r",?\s*Observation\s*:\s?")
_SPEAKER = re.compile(r"\s*(?:Human|AI)\s*:\s*")


def can_read(record: Any) -> bool:
    """Return whether a record is an object of steps, or has one under `Conversation`."""
    if not isinstance(record, Mapping) or not record:
        return False
    return "Conversation" in record or all(_KEY.fullmatch(str(key)) for key in record)


def read(record: Any) -> dict[str, Any]:
    """Return the steps of a record as messages, in their order, and the record's other keys."""
    if "Conversation" not in record:
        record = {"Conversation": record}
    fields = dict(record)
    steps = fields.pop("Conversation")
    if not isinstance(steps, Mapping):
        raise InputError("`Conversation` is not an object of steps")
    fields["messages"] = _parse_steps(steps)
    return fields


def _parse_steps(steps: Mapping[Any, Any]) -> Iterator[dict[str, Any]]:
    for key, text in steps.items():
        name = str(key).strip()
        match = _KEY.fullmatch(str(key))
        if match is None:
            raise InputError(f"the step {key!r} isn't known; write `Step 1_H`, `Int_Step 1.1` or `Step 1_A`")
        if not isinstance(text, str):
            raise InputError(f"{name} is not text")
        if match["speaker"]:
            message_type = "human" if match["speaker"].upper() == "H" else "ai"
            yield {"type": message_type, "content": _SPEAKER.sub("", text, count=1), "step": name}
        else:
            yield from _parse_tool_step(name, text)


def _parse_tool_step(name: str, text: str) -> Iterator[dict[str, Any]]:
    match = _TOOL.fullmatch(text)
    if match is None:
        raise InputError(f"{name} is not of the form `Tool: NAME, Tool_Inputs: {{…}}, Observation: …`")
    inputs, observation = _split_inputs(name, match["rest"])
    call = {"name": match["tool"], "args": inputs, "id": name}
    yield {"type": "ai", "content": "", "tool_calls": [call], "step": name}
    if observation is not None:
        yield {"type": "tool", "tool_call_id": name, "content": observation, "step": name}


def _split_inputs(name: str, rest: str) -> tuple[Mapping[str, Any], str | None]:
    """Return the inputs of a tool step and its observation, if it has one."""
    # An input may hold the very word "Observation:", so the first split whose left side can be parsed counts.
    for mark in _OBSERVATION.finditer(rest):
        inputs = _parse_inputs(rest[: mark.start()])
        if inputs is not None:
            return inputs, rest[mark.end() :]
    inputs = _parse_inputs(rest)
    if inputs is None:
        raise InputError(f"{name}: the tool's inputs are not a Python dict: {rest[:80]!r}")
    return inputs, None


def _parse_inputs(text: str) -> Mapping[str, Any] | None:
    text = text.strip().rstrip(",")
    if not text or text == "None":
        return {}
    for parse in (ast.literal_eval, json.loads):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            inputs = parse(text)
            if isinstance(inputs, Mapping):
                return inputs
    return None
