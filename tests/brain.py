"""A scripted brain: a model that answers any of the shipped blueprints the way a test says it.

    model = brain(judge={"G1": 9}, call={"get_order": {"order_id": "A-1"}}, reply="It is on its way.")

What a test does not mention is filled in with the least that fits the schema: guidelines do not apply, no tool is
called, and each reply differs from the ones before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from arq_graph.models.scripted import ScriptedCall, ScriptedChatModel

AS_JSON = "string that holds JSON"


@dataclass(frozen=True)
class Asked:
    """One call of the model, as a test looks at it."""

    call: ScriptedCall

    @property
    def schema(self) -> dict[str, Any]:
        return self.call.schema or {}

    @property
    def module(self) -> str | None:
        return self.call.module

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
    """A tool call that the brain proposes; what is None is given as null, what is left out is not given."""

    args: Mapping[str, Any] = field(default_factory=dict)
    verdict: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """An argument's value exactly as the model writes it."""

    value: Any


DONE = {
    "score": 8,
    "guideline_previously_applied": "fully",
    "guideline_should_reapply": False,
    "should_apply": False,
}
"""The judgement of a guideline that applies, and was followed already."""


def brain(
    judge: Mapping[str, Any] | None = None,
    call: Mapping[str, Any] | None = None,
    reply: Any = None,
    **fields: Any,
) -> ScriptedChatModel:
    """Make a model.

    Args:
        judge: By guideline id: a score, a dict of answers, an exception, or a function of `Asked` that gives one.
        call: By tool: arguments, a `Call`, a list of these (each proposed once a turn), or a function of `Asked`.
        reply: A text, a dict of answers, a list of these (one per answer), or a function of `Asked`.
        **fields: Of the model.
    """
    return ScriptedChatModel(_Brain(judge or {}, call or {}, reply), **fields)


def asked_by(model: ScriptedChatModel, module: str) -> list[Asked]:
    """The calls that a module made."""
    return [Asked(call) for call in model.calls if call.module == module]


class _Brain:
    def __init__(self, judge: Mapping[str, Any], call: Mapping[str, Any], reply: Any) -> None:
        self.judge, self.call, self.reply = judge, call, reply
        self.replies = 0

    def __call__(self, call: ScriptedCall) -> Any:
        asked = Asked(call)
        answer = filled(asked.schema, asked.schema)
        answers = {"matcher": self._judged, "tools": self._called, "message": self._replied}
        return answers[asked.module or ""](asked, answer)

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
                said = {
                    "score": said,
                    "condition_applies": "yes" if said >= 6 else "no",
                    "should_apply": said >= 6,
                }
            said = {"condition": guideline["condition"] or "", "action": guideline["action"] or "", **said}
            answer[id] = _judgement(_present(_properties(asked.schema)[id], asked.schema), said, asked.schema)
        return answer

    def _called(self, asked: Asked, answer: dict[str, Any]) -> Any:
        for tool in asked.section("tools"):
            asked_as = f"tool_{tool['name']}" if f"tool_{tool['name']}" in answer else tool["name"]
            said = self.call.get(tool["name"], [])
            if callable(said):
                said = said(asked)
            elif asked.results(tool["name"]):
                said = []
            if isinstance(said, BaseException):
                return said
            proposed = [said] if isinstance(said, Mapping | Call) else said
            schema = _properties(asked.schema, asked_as)["tool_calls_for_candidate_tool"]["items"]
            answer[asked_as]["tool_calls_for_candidate_tool"] = [
                _proposal(call if isinstance(call, Call) else Call(call), tool, schema, asked.schema)
                for call in proposed
            ]
        return answer

    def _replied(self, asked: Asked, answer: dict[str, Any]) -> Any:
        said = self.reply
        if isinstance(said, list):
            said = said[min(self.replies, len(said) - 1)]
        said = _said(said, asked)
        if isinstance(said, BaseException):
            return said
        self.replies += 1
        if not isinstance(said, dict):
            said = {"content": f"This is answer {self.replies}." if said is None else said}
        revision = filled(_properties(asked.schema, "revisions", "[]"), asked.schema, is_properties=True)
        revision["followed"] = [guideline["id"] for guideline in asked.section("active_guidelines")]
        revision.update({key: value for key, value in said.items() if key in revision})
        answer["revisions"] = [revision]
        answer.update({key: value for key, value in said.items() if key in answer})
        return answer


def _said(value: Any, asked: Asked) -> Any:
    said: Callable[[Asked], Any] | Any = value
    return said(asked) if callable(said) else said


def _judgement(schema: dict[str, Any], said: Mapping[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """What is said of a guideline, with the part about its action where the condition holds."""
    judgement: dict[str, Any] = filled(schema, root)
    judgement.update({name: True for name in ("could_a_tool_change_that",) if name in judgement})
    judgement.update({name: value for name, value in said.items() if name in judgement})
    if "application" in judgement and "application" not in said:
        properties = _properties({**schema, "$defs": root.get("$defs", {})})
        application = filled(_present(properties["application"], root), root)
        application["guideline_previously_applied"] = "no"
        own = {name: value for name, value in said.items() if name in application}
        if judgement["application"] is not None or judgement["score"] >= 6:
            judgement["application"] = {**application, **own}
    return judgement


def _present(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """A schema without its null."""
    schema = _resolved(schema, root)
    options = [_resolved(option, root) for option in schema.get("anyOf", [schema])]
    return next(option for option in options if option != {"type": "null"})


def _proposal(
    call: Call, tool: Mapping[str, Any], schema: dict[str, Any], root: dict[str, Any]
) -> dict[str, Any]:
    proposal = filled(schema, root)
    proposal.update(score=9, should_run=True)
    if tool["arguments"]:
        asked_for = _properties({**_resolved(schema, root), "$defs": root.get("$defs", {})}, "arguments")
        known = {argument["name"]: argument.get("key", argument["name"]) for argument in tool["arguments"]}
        for name, value in call.args.items():
            decision = _resolved(asked_for[known[name]], root)["properties"]
            as_json = AS_JSON in decision["value"].get("description", "")
            if isinstance(value, Raw):
                value = value.value
            elif as_json and value is not None:
                value = json.dumps(value)
            proposal["arguments"][known[name]].update(given=True, value=value)
    unknown = set(call.verdict) - set(proposal)
    assert not unknown, f"not asked: {unknown}"
    return {**proposal, **call.verdict}


def filled(schema: dict[str, Any], root: dict[str, Any], *, is_properties: bool = False) -> Any:
    """The least that fits a strict schema."""
    if is_properties:
        return {name: filled(value, root) for name, value in schema.items()}
    schema = _resolved(schema, root)
    if "anyOf" in schema:
        options = [_resolved(option, root) for option in schema["anyOf"]]
        return None if {"type": "null"} in options else filled(options[0], root)
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return filled(schema["properties"], root, is_properties=True)
        case "array":
            return []
        case kind:
            return {"string": "-", "integer": 1, "number": 1.0, "boolean": False}.get(kind)


def _resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema or len(schema.get("anyOf", ())) == 1:
        name = schema.get("$ref", "").removeprefix("#/$defs/")
        schema = root["$defs"][name] if name else schema["anyOf"][0]
    return schema


def _properties(schema: dict[str, Any], *path: str) -> dict[str, Any]:
    """The properties of what stands at a path of names; `[]` steps into a list."""
    at = schema
    for step in path:
        at = _resolved(at, schema)
        at = at["items"] if step == "[]" else at["properties"][step]
    properties: dict[str, Any] = _resolved(at, schema)["properties"]
    return properties
