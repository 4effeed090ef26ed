"""Scripted speakers: a model that answers the speaker's blueprint the way a test says it.

    model = speaker([think("It is late."), act("get_order", {"order_id": "A-1"}), say("It is late.")])

Each move is one answer of the model; the last one is given again and again. A function of `Asked` makes one instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arq_graph.models.scripted import ScriptedCall, ScriptedChatModel
from tests.brain import AS_JSON, Asked, _properties, _resolved, filled


@dataclass(frozen=True)
class Made:
    """One move.

    Args:
        kind: `think`, `speak`, `act` in a world, or the name of a tool.
        text: The thought, the utterance or the action.
        args: The arguments of a call.
        bases: What arguments rest on; `this_request` unless said.
        fields: Answers to put over those that are made.
    """

    kind: str
    text: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    bases: Mapping[str, str] = field(default_factory=dict)
    affirmed_in: str | None = None
    asks_for: Sequence[tuple[str, str | None]] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)


def think(text: str) -> Made:
    """A thought."""
    return Made("think", text)


def say(text: str, *, asks_for: Sequence[tuple[str, str | None]] = (), **fields: Any) -> Made:
    """An utterance."""
    return Made("speak", text, asks_for=asks_for, fields=fields)


def ask(text: str, *, asks_for: Sequence[tuple[str, str | None]] = (), **fields: Any) -> Made:
    """A question."""
    return say(text, asks_for=asks_for, **{"asks": True, **fields})


def act(tool: str, args: Mapping[str, Any] | None = None, **further: Any) -> Made:
    """A tool call."""
    return Made(tool, args=args or {}, **further)


def do(action: str) -> Made:
    """An action in a world."""
    return Made("act", action)


Script = Sequence[Any] | Callable[[Asked], Any]


def speaker(script: Script, **fields: Any) -> ScriptedChatModel:
    """Make a model."""
    answered = iter(range(10_000))

    def answer(call: ScriptedCall) -> Any:
        asked = Asked(call)
        said = script(asked) if callable(script) else script[min(next(answered), len(script) - 1)]
        return answer_of(said, asked) if isinstance(said, Made) else said

    return ScriptedChatModel(answer, **fields)


def answer_of(made: Made, asked: Asked) -> dict[str, Any]:
    """A move as an answer to what is asked."""
    schema = asked.schema
    answer: dict[str, Any] = filled(schema, schema)
    answer["move"] = _move(made, asked)
    return answer


def _move(made: Made, asked: Asked) -> dict[str, Any]:
    schema = asked.schema
    if made.kind == "think":
        return {"think": {"thought": made.text}}
    if made.kind == "act":
        return {"act": {"action": made.text}}
    options = [
        _resolved(option, schema) for option in _resolved(schema["properties"]["move"], schema)["anyOf"]
    ]
    if made.kind == "speak":
        option = next(option for option in options if "speak" in option["properties"])
        said = filled(option["properties"]["speak"], schema)
        if "asks_for" in said:
            said["asks_for"] = [{"tool": tool, "argument": argument} for tool, argument in made.asks_for]
        unknown = made.fields.keys() - said.keys()
        assert not unknown, f"not asked: {unknown}"
        return {"speak": {**said, "utterance": made.text, **made.fields}}
    tool = next(tool for tool in asked.section("tools") if tool["name"] == made.kind)
    key = tool.get("key", made.kind)
    option = next(option for option in options if key in option["properties"])
    call = filled(option["properties"][key], schema)
    call["affirmed_in"] = made.affirmed_in
    names = {argument["name"]: argument.get("key", argument["name"]) for argument in tool["arguments"]}
    asked_for = _properties({**option, "$defs": schema.get("$defs", {})}, key, "arguments") if names else {}
    for name, asked_as in names.items():
        decision = call["arguments"][asked_as]
        decision["basis"] = made.bases.get(name, "this_request" if name in made.args else "nobody")
        if name in made.args:
            described = _resolved(asked_for[asked_as], schema)["properties"]["value"].get("description", "")
            value = made.args[name]
            decision.update(given=True, value=json.dumps(value) if AS_JSON in described else value)
    return {key: call}
