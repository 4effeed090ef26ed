"""A scripted brain: a model that answers any of the shipped blueprints, in any mode, the way a test says it.

    model = brain(judge={"G1": 9}, call={"get_order": {"order_id": "A-1"}}, reply="It is on its way.")
    model = brain(moves=[act("get_order", {"order_id": "A-1"}), say("It is late.")])  # the same in every strategy

What a test does not mention is filled in with the least that fits the schema: guidelines do not apply, no tool is
called, and each reply differs from the ones before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any

from arq_graph import ScriptedChatModel

AS_JSON = "string that holds JSON"
TEXT_OF = {"final_answer": "answer", "speak": "utterance", "think": "thought", "act": "action"}
"""What a strategy can do besides calling tools, and the field that holds its text."""

DONE = {
    "score": 8,
    "guideline_previously_applied": "fully",
    "guideline_should_reapply": False,
    "should_apply": False,
}
"""The judgement of a guideline that applies, and was followed already."""


@dataclass(frozen=True)
class Asked:
    """One call of the model, as a test looks at it."""

    call: Any

    @property
    def schema(self) -> dict[str, Any]:
        return self.call.schema or {}

    @property
    def module(self) -> str:
        return self.call.module or ""

    @property
    def head(self) -> str:
        return str(self.call.messages[0].text)

    @property
    def tail(self) -> str:
        return str(self.call.messages[1].text)

    @property
    def prompt(self) -> str:
        return f"{self.head}\n{self.tail}"

    @property
    def complaint(self) -> str:
        """What the model is told to correct, when it is asked again."""
        return str(self.call.messages[-1].text) if len(self.call.messages) > 2 else ""

    def section(self, name: str) -> Any:
        found = re.findall(rf"^<{name}>(.*)</{name}>$", self.prompt, re.MULTILINE)
        return json.loads(found[-1]) if found else None

    @property
    def now(self) -> dict[str, Any]:
        return self.section("now") or {}

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        found = re.search(r"<conversation>\n(.*?)\n?</conversation>", self.tail, re.DOTALL)
        assert found, self.tail
        return [json.loads(line) for line in found[1].split("\n") if line]

    @property
    def turn(self) -> list[dict[str, Any]]:
        """The lines after the customer's last one."""
        last = max((i for i, line in enumerate(self.lines) if line.get("from") == "customer"), default=-1)
        return self.lines[last + 1 :]

    def results(self, tool: str) -> list[dict[str, Any]]:
        """This turn's results of a tool."""
        return [line for line in self.turn if line.get("tool") == tool]


@dataclass(frozen=True)
class Call:
    """A tool call that the tool caller proposes; an argument that is left out is not given, None is given as null."""

    args: Mapping[str, Any] = field(default_factory=dict)
    verdict: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """An argument's value exactly as the model writes it."""

    value: Any


@dataclass(frozen=True)
class Move:
    """What is done next: a call of `tool`, or where that is None, `text` said (None: the brain's reply).

    `kind` says what else is done with the text: it is thought, or an action in a world. `steps` are the tools of a
    plan's steps behind it, `bases` what arguments rest on (`this_request` unless said), and `fields` answers to put
    over those that are made.
    """

    tool: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None
    kind: str = "speak"
    steps: Sequence[str] = ()
    bases: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)


def act(
    tool: str, args: Mapping[str, Any] | None = None, *, steps: Any = (), bases: Any = None, **fields: Any
) -> Move:
    """A call."""
    return Move(tool, args or {}, steps=steps, bases=bases or {}, fields=fields)


def say(text: str | None = None, **fields: Any) -> Move:
    """Something said to the customer."""
    return Move(text=text, fields=fields)


def ask(text: str, **fields: Any) -> Move:
    """A question of a speaker's."""
    return say(text, asks=True, **fields)


def think(text: str) -> Move:
    """A thought of a speaker's."""
    return Move(text=text, kind="think")


def do(action: str) -> Move:
    """An action in a world."""
    return Move(text=action, kind="act")


def brain(judge: Any = None, call: Any = None, reply: Any = None, **fields: Any) -> ScriptedChatModel:
    """Make a model that answers as a `Brain` does; other fields are the model's."""
    own = {name: fields.pop(name) for name in ("moves", "wants") if name in fields}
    return ScriptedChatModel(Brain(judge, call, reply, **own), **fields)


def asked_by(model: ScriptedChatModel, module: str) -> list[Asked]:
    """The calls that a module made."""
    return [Asked(call) for call in model.calls if call.module == module]


class Brain:
    """Answers calls of a scripted model.

    Args:
        judge: By guideline id: a score, a dict of answers, an exception, or a function of `Asked` that gives one.
        call: By tool, for the tool caller: arguments, a `Call`, a list of these (each proposed once a turn), or a
            function of `Asked`.
        reply: A text, a dict of answers, a list of these (one per answer), or a function of `Asked`.
        moves: What is done at each decision, whatever the strategy; the last one again and again.
        wants: Whether the customer still wants the calls that wait for a yes.
    """

    def __init__(
        self,
        judge: Mapping[str, Any] | None = None,
        call: Mapping[str, Any] | None = None,
        reply: Any = None,
        moves: Sequence[Any] | Callable[[Asked], Any] | None = None,
        wants: Callable[[], bool] = lambda: False,
    ) -> None:
        self.judge = {} if judge is None else judge  # which a test may change as it goes
        self.call, self.reply = call or {}, reply
        self.moves, self.wants = moves, wants
        self.replies, self.moved = 0, count()

    def __call__(self, call: Any) -> Any:
        asked = Asked(call)
        answer = filled(asked.schema, asked.schema)
        if "still_wanted" in answer and self.wants():
            answer["still_wanted"] = [each["id"] for each in asked.now.get("awaiting_confirmation", ())]
        match asked.module:
            case "matcher":
                return self._judged(asked, answer)
            case "message":
                return self._replied(asked, answer)
            case "tools":
                return self._called(asked, answer)
        return self._acted(asked, answer)

    def _judged(self, asked: Asked, answer: dict[str, Any]) -> Any:
        for guideline in asked.section("guidelines"):
            id = guideline["id"]
            answer[id] = None
            if id not in asked.now["judge"]:
                continue
            said = _said(self.judge.get(id, 2), asked)
            if isinstance(said, BaseException):
                return said
            if isinstance(said, int):
                applies = "yes" if said >= 6 else "no"
                said = {"score": said, "condition_applies": applies, "should_apply": said >= 6}
            said = {"condition": guideline["condition"] or "", "action": guideline["action"] or "", **said}
            answer[id] = _judgement(
                _present(properties_of(asked.schema)[id], asked.schema), said, asked.schema
            )
        return answer

    def _called(self, asked: Asked, answer: dict[str, Any]) -> Any:
        move = self._next_move(asked) if self.moves is not None else None
        if isinstance(move, BaseException):
            return move
        for tool in asked.section("tools"):
            if move is not None:
                said: Any = [Call(move.args, move.fields)] if move.tool == tool["name"] else []
            else:
                said = self.call.get(tool["name"], [])
                said = said(asked) if callable(said) else [] if asked.results(tool["name"]) else said
            if isinstance(said, BaseException):
                return said
            asked_as = f"tool_{tool['name']}" if f"tool_{tool['name']}" in answer else tool["name"]
            schema = properties_of(asked.schema, asked_as)["tool_calls_for_candidate_tool"]["items"]
            answer[asked_as]["tool_calls_for_candidate_tool"] = [
                _proposal(call if isinstance(call, Call) else Call(call), tool, schema, asked.schema)
                for call in ([said] if isinstance(said, Mapping | Call) else said)
            ]
        return answer

    def _replied(self, asked: Asked, answer: dict[str, Any]) -> Any:
        said = self._next_reply(asked)
        if isinstance(said, BaseException):
            return said
        said = said if isinstance(said, dict) else {"content": said}
        revision = filled(asked.schema["properties"]["revisions"]["items"], asked.schema)
        revision["followed"] = [guideline["id"] for guideline in asked.section("active_guidelines")]
        revision.update({key: value for key, value in said.items() if key in revision})
        answer["revisions"] = [revision]
        answer.update({key: value for key, value in said.items() if key in answer})
        return answer

    def _acted(self, asked: Asked, answer: dict[str, Any]) -> Any:
        """What a strategy answers that takes one action at a time."""
        move = self._next_move(asked)
        if not isinstance(move, Move):
            return move
        text = move.text if move.text is not None or move.tool else str(self._next_reply(asked))
        results = asked.now.get("results")
        calls = [*([move.tool] if move.tool else []), *move.steps]
        made = {
            "previous_steps": f"so far: {', '.join(results)}" if results else None,
            "observation": "as_expected" if results else None,
            "change": None,
            "next_steps": [
                *({"step": f"call {tool}", "reason": "It is needed.", "tool": tool} for tool in calls),
                {"step": text or "answer the customer", "reason": "Then all is known.", "tool": None},
            ],
            "answer_rests_on_this_prompt": True,
            **move.fields,
        }
        answer.update({name: value for name, value in made.items() if name in answer})
        query = "action" if "action" in answer else "move"
        if move.tool:
            answer[query] = call_of(asked, query, move.tool, move.args, bases=move.bases)
        else:
            key = "final_answer" if query == "action" else move.kind
            said = filled(option_of(asked, query, key)["properties"][key], asked.schema)
            said.update({name: value for name, value in move.fields.items() if name in said})
            answer[query] = {key: {**said, TEXT_OF[key]: text}}
        return answer

    def _next_move(self, asked: Asked) -> Any:
        return self.moves(asked) if callable(self.moves) else _nth(self.moves, next(self.moved))

    def _next_reply(self, asked: Asked) -> Any:
        said = _said(_nth(self.reply, self.replies) if isinstance(self.reply, list) else self.reply, asked)
        if not isinstance(said, BaseException):
            self.replies += 1
        return f"This is answer {self.replies}." if said is None else said


def _nth(script: Sequence[Any], number: int) -> Any:
    return script[min(number, len(script) - 1)]


def _said(value: Any, asked: Asked) -> Any:
    return value(asked) if callable(value) else value


def _judgement(schema: dict[str, Any], said: Mapping[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """What is said of a guideline, with the part about its action where the condition holds."""
    judgement: dict[str, Any] = filled(schema, root)
    judgement.update({name: True for name in ("could_a_tool_change_that",) if name in judgement})
    judgement.update({name: value for name, value in said.items() if name in judgement})
    if "application" in judgement and "application" not in said:
        properties = properties_of({**schema, "$defs": root.get("$defs", {})})
        application = filled(_present(properties["application"], root), root)
        application["guideline_previously_applied"] = "no"
        own = {name: value for name, value in said.items() if name in application}
        if judgement["application"] is not None or judgement["score"] >= 6:
            judgement["application"] = {**application, **own}
    return judgement


def _proposal(call: Call, tool: Any, schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    proposal = {**filled(schema, root), "score": 9, "should_run": True}
    if tool["arguments"]:
        asked_for = properties_of({**resolved(schema, root), "$defs": root.get("$defs", {})}, "arguments")
        _give(proposal["arguments"], call.args, tool, asked_for, root)
    unknown = set(call.verdict) - set(proposal)
    assert not unknown, f"not asked: {unknown}"
    return {**proposal, **call.verdict}


def _give(decisions: Any, args: Mapping[str, Any], tool: Any, asked_for: Any, root: dict[str, Any]) -> None:
    """Give arguments as a schema asks for them: each by its key, what is no strict value as a string of JSON."""
    keys = {argument["name"]: argument.get("key", argument["name"]) for argument in tool["arguments"]}
    for name, value in args.items():
        described = resolved(asked_for[keys[name]], root)["properties"]["value"].get("description", "")
        if isinstance(value, Raw):
            value = value.value
        elif AS_JSON in described and value is not None:
            value = json.dumps(value)
        decisions[keys[name]].update(given=True, value=value)


def option_of(asked: Asked, query: str, key: str) -> dict[str, Any]:
    """Of the ways to answer a query that has several, the one with a key."""
    field = resolved(asked.schema["properties"][query], asked.schema)
    options = [resolved(each, asked.schema) for each in field.get("anyOf", [field])]
    return next(option for option in options if key in option["properties"])


def call_of(
    asked: Asked, query: str, name: str, args: Mapping[str, Any], *, bases: Mapping[str, str]
) -> dict[str, Any]:
    """The answer to a query that calls a tool; `bases` says what arguments rest on, `this_request` unless said."""
    schema = asked.schema
    tool = next(tool for tool in asked.section("tools") if tool["name"] == name)
    key = tool.get("key", name)
    option = option_of(asked, query, key)
    call = filled(option["properties"][key], schema)
    if tool["arguments"]:
        asked_for = properties_of({**option, "$defs": schema.get("$defs", {})}, key, "arguments")
        _give(call["arguments"], args, tool, asked_for, schema)
        for argument in tool["arguments"]:
            basis = bases.get(argument["name"], "this_request" if argument["name"] in args else "nobody")
            call["arguments"][argument.get("key", argument["name"])]["basis"] = basis
    return {key: call}


def filled(schema: dict[str, Any], root: dict[str, Any]) -> Any:
    """The least that fits a strict schema."""
    schema = resolved(schema, root)
    if "anyOf" in schema:
        options = [resolved(option, root) for option in schema["anyOf"]]
        return None if {"type": "null"} in options else filled(options[0], root)
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return {name: filled(value, root) for name, value in schema["properties"].items()}
        case "array":
            return []
        case kind:
            return {"string": "-", "integer": 1, "number": 1.0, "boolean": False}.get(kind)


def resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """A schema behind its references."""
    while "$ref" in schema or len(schema.get("anyOf", ())) == 1:
        name = schema.get("$ref", "").removeprefix("#/$defs/")
        schema = root["$defs"][name] if name else schema["anyOf"][0]
    return schema


def _present(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """A schema without its null."""
    schema = resolved(schema, root)
    options = [resolved(option, root) for option in schema.get("anyOf", [schema])]
    return next(option for option in options if option != {"type": "null"})


def properties_of(schema: dict[str, Any], *path: str) -> dict[str, Any]:
    """The properties of what stands at a path of names."""
    at = schema
    for step in path:
        at = resolved(at, schema)["properties"][step]
    properties: dict[str, Any] = resolved(at, schema)["properties"]
    return properties
