"""A scripted tool call, as the planners' and the speaker's blueprints ask for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.brain import AS_JSON, Asked, _properties, _resolved, filled


def option_of(asked: Asked, query: str, key: str) -> dict[str, Any]:
    """Of the ways to answer a query that has several, the one with a key."""
    schema = asked.schema
    options = [_resolved(each, schema) for each in _resolved(schema["properties"][query], schema)["anyOf"]]
    return next(option for option in options if key in option["properties"])


def call_of(
    asked: Asked,
    query: str,
    name: str,
    args: Mapping[str, Any],
    *,
    bases: Mapping[str, str],
    affirmed_in: str | None,
) -> dict[str, Any]:
    """The answer to a query that calls a tool.

    Args:
        asked: What is asked.
        query: The query.
        name: The tool.
        args: The arguments of the call.
        bases: What arguments rest on; `this_request` unless said.
        affirmed_in: Where the customer has agreed.
    """
    schema = asked.schema
    tool = next(tool for tool in asked.section("tools") if tool["name"] == name)
    key = tool.get("key", name)
    option = option_of(asked, query, key)
    call = filled(option["properties"][key], schema)
    if "affirmed_in" in call:
        call["affirmed_in"] = affirmed_in
    names = {argument["name"]: argument.get("key", argument["name"]) for argument in tool["arguments"]}
    asked_for = _properties({**option, "$defs": schema.get("$defs", {})}, key, "arguments") if names else {}
    for argument, asked_as in names.items():
        decision = call["arguments"][asked_as]
        decision["basis"] = bases.get(argument, "this_request" if argument in args else "nobody")
        if argument in args:
            described = _resolved(asked_for[asked_as], schema)["properties"]["value"].get("description", "")
            value = args[argument]
            decision.update(given=True, value=json.dumps(value) if AS_JSON in described else value)
    return {key: call}
