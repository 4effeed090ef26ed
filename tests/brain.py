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

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The schema of the answer, with what it refers to in the places of its references."""
        schema: dict[str, Any] = inlined(self.call.schema or {})
        return schema

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
class Raw:
    """An argument's value exactly as the model writes it."""

    value: Any


@dataclass(frozen=True)
class Move:
    """What is done next: a call of `tool`, or where that is None, `text` said (None: the brain's reply).

    `kind` says what else is done with the text: it is thought, or an action in a world. An argument that is left out is
    not given, None is given as null; `bases` say what arguments rest on (`this_request` unless said). `steps` are the
    tools of a plan's steps behind it, and `fields` answers to put over those that are made.
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
        judge: By guideline id: a score, a dict of answers, an exception, None where it is left out, or a function of
            `Asked` that gives one.
        call: By tool, for the tool caller: arguments, a call, a list of these (each proposed once a turn), or a
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
        answer = filled(asked.schema)
        if "still_wanted" in answer and self.wants():
            answer["still_wanted"] = [each["id"] for each in asked.now.get("awaiting_confirmation", ())]
        of_module = {"matcher": self._judged, "message": self._replied, "tools": self._called}
        return of_module.get(asked.module, self._acted)(asked, answer)

    def _judged(self, asked: Asked, answer: dict[str, Any]) -> Any:
        for guideline in asked.section("guidelines"):
            id = guideline["id"]
            answer[id] = None
            if id not in asked.now["judge"]:
                continue
            said = _said(self.judge.get(id, 2), asked)
            if said is None:
                continue
            if isinstance(said, int):
                applies = "yes" if said >= 6 else "no"
                said = {"score": said, "condition_applies": applies, "should_apply": said >= 6}
            said = {"condition": guideline["condition"] or "", "action": guideline["action"] or "", **said}
            answer[id] = _judgement(_present(asked.schema["properties"][id]), said)
        return answer

    def _called(self, asked: Asked, answer: dict[str, Any]) -> Any:
        move = self._next_move(asked) if self.moves is not None else None
        for tool in asked.section("tools"):
            name, said = tool["name"], self.call.get(tool["name"], [])
            if self.moves is not None:
                said = [move] if move.tool == name else []
            else:
                said = _said(said, asked) if callable(said) or not asked.results(name) else []
            key = f"tool_{name}" if f"tool_{name}" in answer else name
            schema = properties_of(asked.schema, key)["tool_calls_for_candidate_tool"]["items"]
            answer[key]["tool_calls_for_candidate_tool"] = [
                _proposal(each if isinstance(each, Move) else act(name, each), tool, schema)
                for each in ([said] if isinstance(said, Mapping | Move) else said)
            ]
        return answer

    def _replied(self, asked: Asked, answer: dict[str, Any]) -> Any:
        said = self._next_reply(asked)
        said = said if isinstance(said, dict) else {"content": said}
        revision = filled(asked.schema["properties"]["revisions"]["items"])
        revision["followed"] = [guideline["id"] for guideline in asked.section("active_guidelines")]
        answer["revisions"] = [_over(revision, said)]
        return _over(answer, said)

    def _acted(self, asked: Asked, answer: dict[str, Any]) -> Any:
        """What a strategy answers that takes one action at a time."""
        move = self._next_move(asked)
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
        query = "action" if "action" in answer else "move"
        if move.tool:
            answer[query] = _call(asked, query, move)
        else:
            key = "final_answer" if query == "action" else move.kind
            said = filled(_option(asked, query, key))
            answer[query] = {key: _over(said, {**move.fields, TEXT_OF[key]: text})}
        return _over(answer, made)

    def _next_move(self, asked: Asked) -> Any:
        if callable(self.moves):
            return _said(self.moves, asked)
        return _said(_nth(self.moves or [say()], next(self.moved)), asked)

    def _next_reply(self, asked: Asked) -> Any:
        said = _said(_nth(self.reply, self.replies) if isinstance(self.reply, list) else self.reply, asked)
        self.replies += 1
        return f"This is answer {self.replies}." if said is None else said


def _nth(script: Sequence[Any], number: int) -> Any:
    return script[min(number, len(script) - 1)]


def _said(value: Any, asked: Asked) -> Any:
    said = value(asked) if callable(value) else value
    if isinstance(said, BaseException):
        raise said
    return said


def _over(answer: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """An answer with what is said in the place of its own, as far as it was asked."""
    return {name: said.get(name, value) for name, value in answer.items()}


def _judgement(schema: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a guideline, with the part about its action where the condition holds."""
    judgement = _over(filled(schema), {"could_a_tool_change_that": True, **said})
    is_open = "application" in judgement and "application" not in said
    if is_open and (judgement["application"] is not None or judgement["score"] >= 6):
        application = filled(_present(schema["properties"]["application"]))
        judgement["application"] = _over(application, {"guideline_previously_applied": "no", **said})
    return judgement


def _proposal(call: Move, tool: Any, schema: dict[str, Any]) -> dict[str, Any]:
    proposal = {**filled(schema), "score": 9, "should_run": True}
    if tool["arguments"]:
        _give(proposal["arguments"], call.args, tool, properties_of(schema, "arguments"))
    unknown = set(call.fields) - set(proposal)
    assert not unknown, f"not asked: {unknown}"
    return {**proposal, **call.fields}


def _give(decisions: Any, args: Mapping[str, Any], tool: Any, asked_for: Any) -> None:
    """Give arguments as a schema asks for them: each by its key, what is no strict value as a string of JSON."""
    keys = {argument["name"]: argument.get("key", argument["name"]) for argument in tool["arguments"]}
    for name, value in args.items():
        described = asked_for[keys[name]]["properties"]["value"].get("description", "")
        if isinstance(value, Raw):
            value = value.value
        elif AS_JSON in described and value is not None:
            value = json.dumps(value)
        decisions[keys[name]].update(given=True, value=value)


def _option(asked: Asked, query: str, key: str) -> dict[str, Any]:
    """Of the ways to answer a query that has several, what stands below the one property of one."""
    asked_for = asked.schema["properties"][query]
    options: list[dict[str, Any]] = [each["properties"] for each in asked_for.get("anyOf", [asked_for])]
    return next(option[key] for option in options if key in option)


def _call(asked: Asked, query: str, move: Move) -> dict[str, Any]:
    """The answer to a query that calls a tool."""
    tool = next(tool for tool in asked.section("tools") if tool["name"] == move.tool)
    key = tool.get("key", move.tool)
    option = _option(asked, query, key)
    call = filled(option)
    if tool["arguments"]:
        _give(call["arguments"], move.args, tool, properties_of(option, "arguments"))
        for argument in tool["arguments"]:
            basis = move.bases.get(
                argument["name"], "this_request" if argument["name"] in move.args else "nobody"
            )
            call["arguments"][argument.get("key", argument["name"])]["basis"] = basis
    return {key: call}


def filled(schema: dict[str, Any]) -> Any:
    """The least that fits a strict schema without references."""
    if "anyOf" in schema:
        return None if {"type": "null"} in schema["anyOf"] else filled(schema["anyOf"][0])
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return {name: filled(value) for name, value in schema["properties"].items()}
        case "array":
            return []
        case kind:
            return {"string": "-", "integer": 1, "number": 1.0, "boolean": False}.get(kind)


def inlined(schema: Any, root: Any = None) -> Any:
    """A schema with what it refers to in the places of its references."""
    root = schema if root is None else root
    if isinstance(schema, list):
        return [inlined(each, root) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return inlined(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    if len(schema.get("anyOf", ())) == 1:
        return inlined(schema["anyOf"][0], root)
    return {name: inlined(value, root) for name, value in schema.items()}


def _present(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without its null."""
    options: list[dict[str, Any]] = schema.get("anyOf", [schema])
    return next(option for option in options if option != {"type": "null"})


def properties_of(schema: dict[str, Any], *path: str) -> dict[str, Any]:
    """The properties of what stands at a path of names."""
    for step in path:
        schema = schema["properties"][step]
    properties: dict[str, Any] = schema["properties"]
    return properties
