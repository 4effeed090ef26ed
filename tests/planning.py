"""Scripted planners: a model that answers the planners' blueprints the way a test says it, and the others like `brain`.

    model = planner([act("get_order", {"order_id": "A-1"}), say("It is late.")])

Each answer is one call of the planner; the last one is given again and again. A function of `Asked` makes one instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arq_graph.models.scripted import ScriptedCall, ScriptedChatModel
from tests.brain import Asked, brain, filled
from tests.tool_calls import call_of

WHEN_DONE = "answer the customer"


@dataclass(frozen=True)
class Answered:
    """One answer of a planner.

    Args:
        tool: The tool that it calls; None for the final answer.
        args: The arguments of the call.
        text: The final answer.
        steps: The tools of the steps behind the action, the final answer not counted.
        bases: What arguments rest on; `this_request` unless said.
        fields: Answers to put over those that are made.
    """

    tool: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    steps: Sequence[str] = ()
    bases: Mapping[str, str] = field(default_factory=dict)
    asks_for: Sequence[tuple[str, str | None]] = ()
    affirmed_in: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


def act(tool: str, args: Mapping[str, Any] | None = None, **further: Any) -> Answered:
    """A call."""
    return Answered(tool, args or {}, **_fields(further))


def say(text: str, **further: Any) -> Answered:
    """The final answer."""
    return Answered(text=text, **_fields(further))


def _fields(further: dict[str, Any]) -> dict[str, Any]:
    known = {name: further.pop(name) for name in list(further) if name in Answered.__dataclass_fields__}
    return {**known, "fields": further}


Script = Sequence[Answered] | Callable[[Asked], Any]


def planner(script: Script, *, judge: Any = None, reply: Any = None, **fields: Any) -> ScriptedChatModel:
    """Make a model; `judge` and `reply` are those of `brain`."""
    others = brain(judge=judge, reply=reply)._answer
    answered = iter(range(10_000))

    def answer(call: ScriptedCall) -> Any:
        if call.module != "planner":
            return others(call)
        asked = Asked(call)
        said = script(asked) if callable(script) else script[min(next(answered), len(script) - 1)]
        return _filled(said, asked) if isinstance(said, Answered) else said

    return ScriptedChatModel(answer, **fields)


def _filled(said: Answered, asked: Asked) -> dict[str, Any]:
    schema = asked.schema
    answer: dict[str, Any] = filled(schema, schema)
    results = asked.now.get("results")
    made = {
        "previous_steps": f"so far: {', '.join(results)}" if results else None,
        "observation": "as_expected" if results else None,
        "change": None,
        "next_steps": _steps(said),
        "thought": "This is next.",
        "answer_rests_on_this_prompt": True,
        **said.fields,
    }
    answer.update({name: value for name, value in made.items() if name in answer})
    answer["action"] = said.fields.get("action") or _action(said, asked)
    return answer


def _steps(said: Answered) -> list[dict[str, Any]]:
    tools = [*([said.tool] if said.tool else []), *said.steps]
    calls = [{"step": f"call {tool}", "reason": "It is needed.", "tool": tool} for tool in tools]
    last = said.text or WHEN_DONE
    return [*calls, {"step": last, "reason": "Then all is known.", "tool": None}]


def _action(said: Answered, asked: Asked) -> dict[str, Any]:
    if said.tool is None:
        asks = [{"tool": tool, "argument": argument} for tool, argument in said.asks_for]
        return {"final_answer": {"asks_for": asks, "answer": said.text}}
    return call_of(asked, "action", said.tool, said.args, bases=said.bases, affirmed_in=said.affirmed_in)
