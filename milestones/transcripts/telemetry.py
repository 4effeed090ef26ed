"""Spans and events of OpenTelemetry's GenAI conventions: the messages that a model was sent, and its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.transcripts.parts import as_fields

_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"


def can_read(record: Any) -> bool:
    """Return whether a record is a span or an event, or its attributes, with messages in them."""
    attributes = _get_attributes(record)
    return _INPUT in attributes or _OUTPUT in attributes


def read(record: Any) -> dict[str, Any]:
    """Return the messages of a span, with its instructions, tools and conversation id."""
    attributes = _get_attributes(record)
    output = _parse(attributes, _OUTPUT)
    if len(output) > 1:
        raise InputError(f"`{_OUTPUT}` holds {len(output)} choices: a conversation has one answer")
    fields = dict(record) | {
        "messages": [*_parse(attributes, _INPUT), *output],
        "instructions": _parse(attributes, "gen_ai.system_instructions"),
        "tools": _parse(attributes, "gen_ai.tool.definitions"),
    }
    if attributes.get("gen_ai.conversation.id"):
        fields["id"] = attributes["gen_ai.conversation.id"]
    return fields


def _get_attributes(record: Any) -> Mapping[str, Any]:
    if not isinstance(record, Mapping):
        return {}
    return as_fields(record.get("attributes", record))


def _parse(attributes: Mapping[str, Any], name: str) -> list[Any]:
    """Return a list in an attribute, which spans may hold as text."""
    value = attributes.get(name)
    try:
        value = json.loads(value) if isinstance(value, str) else value or []
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, list):
        raise InputError(f"`{name}` is not a list, nor the JSON of one")
    return value
