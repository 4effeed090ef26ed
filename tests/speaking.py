"""Scripted speakers: a model that answers the speaker's blueprint the way a test says it.

    model = speaker([think("It is late."), act("get_order", {"order_id": "A-1"}), say("It is late.")])

Each move is one answer of the model; the last one is given again and again. A function of `Asked` makes one instead.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arq_graph import ReSpAct, create_respact_agent
from arq_graph.models.scripted import ScriptedCall, ScriptedChatModel
from tests.brain import Asked, call_of, filled, option_of


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


def speaker(
    script: Script, *, otherwise: ScriptedChatModel | None = None, **fields: Any
) -> ScriptedChatModel:
    """Make a model; what other modules ask is answered by `otherwise`."""
    answered = iter(range(10_000))

    def answer(call: ScriptedCall) -> Any:
        if otherwise is not None and call.module != "speaker":
            return otherwise._answer(call)
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
    if made.kind == "think":
        return {"think": {"thought": made.text}}
    if made.kind == "act":
        return {"act": {"action": made.text}}
    if made.kind == "speak":
        said = filled(option_of(asked, "move", "speak")["properties"]["speak"], asked.schema)
        if "asks_for" in said:
            said["asks_for"] = [{"tool": tool, "argument": argument} for tool, argument in made.asks_for]
        unknown = made.fields.keys() - said.keys()
        assert not unknown, f"not asked: {unknown}"
        return {"speak": {**said, "utterance": made.text, **made.fields}}
    return call_of(asked, "move", made.kind, made.args, bases=made.bases)


def respact(model: Any, agent: Any = (), **options: Any) -> Any:
    """An agent that speaks, with settings of its strategy and of the app beside each other."""
    names = {each.name for each in dataclasses.fields(ReSpAct)}
    settings = {name: value for name, value in options.items() if name in names}
    others = {name: value for name, value in options.items() if name not in names}
    return create_respact_agent(model, agent, strategy=ReSpAct(**settings), **others)
