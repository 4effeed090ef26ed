"""A model that decides the same way under every strategy, for tests that run through all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from arq_graph import ScriptedChatModel
from arq_graph.models.scripted import ScriptedCall
from tests.brain import filled

STRATEGIES = ("tools", "pre-act", "react", "respact")
FIRST_PROPERTIES = {"final_answer": "answer", "speak": "utterance"}


class Deciding:
    """Answers every blueprint in `direct` mode.

    Args:
        propose: What it wants to call, given how many times it was asked: `(tool, arguments)`, or None to speak.
        says: What it says otherwise.
        wants: Whether the customer still wants what waits.
        judge: By guideline: whether it applies; a guideline that is not named does.
    """

    def __init__(
        self,
        propose: Callable[[int], tuple[str, Mapping[str, Any]] | None] = lambda _: None,
        says: str | Callable[[int], str] = "Certainly.",
        wants: bool = True,
        judge: Mapping[str, bool] | None = None,
    ) -> None:
        self.propose, self.says, self.wants, self.judge = propose, says, wants, judge or {}
        self.asked = 0
        self.decisions = 0

    @property
    def model(self) -> ScriptedChatModel:
        return ScriptedChatModel(self)

    def __call__(self, call: ScriptedCall) -> Any:
        schema: dict[str, Any] = call.schema or {}
        answer = filled(schema, schema)
        self.asked += 1
        if call.module == "matcher":
            for id, field in schema["properties"].items():
                applies = self.judge.get(id, True)
                judged = filled(_present(field, schema), schema)
                answer[id] = {**judged, "score": 9 if applies else 1, "should_apply": applies}
            return answer
        if call.module == "message":
            said = self._said()
            if "revisions" in answer:
                item = schema["properties"]["revisions"]["items"]
                answer["revisions"] = [{**filled(item, schema), "content": said}]
            return answer
        self.decisions += 1
        if "still_wanted" in answer:
            answer["still_wanted"] = ["C1", "C2", "C3"] if self.wants else []
        wanted = self.propose(self.decisions)
        choice = next((name for name in ("action", "move") if name in answer), None)
        if choice is None:
            return self._called(answer, schema, wanted)
        if "next_steps" in answer:
            steps = [*([wanted[0]] if wanted else []), None]
            answer["next_steps"] = [{"step": "-", "reason": "-", "tool": tool} for tool in steps]
        speaks = "final_answer" if choice == "action" else "speak"
        name = wanted[0] if wanted else speaks
        option = filled(_option(schema, schema["properties"][choice], name), schema)
        if wanted:
            if "arguments" in option[name]:
                _give(option[name]["arguments"], wanted[1])
        else:
            option[name][FIRST_PROPERTIES[name]] = self._said()
        answer[choice] = option
        return answer

    def _said(self) -> str:
        return self.says if isinstance(self.says, str) else self.says(self.asked)

    def _called(self, answer: Any, schema: Any, wanted: tuple[str, Mapping[str, Any]] | None) -> Any:
        if wanted and wanted[0] in answer:
            candidate = _resolved(schema["properties"][wanted[0]], schema)
            item = candidate["properties"]["tool_calls_for_candidate_tool"]["items"]
            proposed = {**filled(item, schema), "score": 9, "should_run": True}
            if "arguments" in proposed:
                _give(proposed["arguments"], wanted[1])
            answer[wanted[0]]["tool_calls_for_candidate_tool"] = [proposed]
        return answer


def _give(decisions: dict[str, Any], given: Mapping[str, Any]) -> None:
    for name, decision in decisions.items():
        decision.update(given=name in given, value=given.get(name))
        if "basis" in decision:
            decision["basis"] = "this_request"


def _option(schema: Any, field: Any, name: str) -> Any:
    options = _resolved(field, schema).get("anyOf") or [field]
    return next(
        each for each in (_resolved(option, schema) for option in options) if name in each["properties"]
    )


def _present(field: Any, schema: Any) -> Any:
    """A field's schema where it is not null."""
    options = [_resolved(each, schema) for each in field.get("anyOf", [field])]
    return next(each for each in options if each.get("type") != "null")


def _resolved(schema: Any, root: Any) -> Any:
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    return schema
