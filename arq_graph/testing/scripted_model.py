"""A chat model that answers every step of an agent from scripts, one for each turn."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from arq_graph.agent.spec import Agent
from arq_graph.errors import InputError, suggestion
from arq_graph.models.offline.activation import judge_guidelines
from arq_graph.models.offline.answers import describe_action, describe_proposals, describe_revision
from arq_graph.models.offline.calls import Call
from arq_graph.models.offline.choice import choose_reply
from arq_graph.models.offline.model import SchemaFiller
from arq_graph.models.offline.prompt import Prompt
from arq_graph.models.scripted import ScriptedCall, ScriptedChatModel
from arq_graph.testing.script import Script, ScriptReader

_ACTING_MODULES = ("tools", "planner", "speaker", "message")


def scripted_model(agent: Agent, scripts: Sequence[Script]) -> ScriptedChatModel:
    """Make a model that answers all steps of an agent as the scripts say: the first one in the first turn, and so on.

    It works in every mode and with every strategy, sync, async and streaming. A turn is a message of the customer;
    those of a history that a test passes count, too. `model.calls` has what it was asked.

    Raises:
        InputError: A script names what the agent doesn't have. When run: a turn has no script, or its script lacks an
            answer.
    """
    reader = ScriptReader(agent)
    turns: list[_Turn] = []
    journeys: set[str] = set()
    for number, script in enumerate(scripts):
        try:
            turns.append(_Turn(reader, script, journeys))
        except InputError as error:
            raise InputError(f"scripts[{number}]: {error}") from None
    last_turn = (0, False)

    def answer(call: ScriptedCall) -> Any:
        nonlocal last_turn
        number, has_acted = last_turn
        prompt = Prompt(call.messages)
        if isinstance(prompt.sections.get("answer"), str):
            # The question about consent shows no conversation. In its turn, it comes before all that the agent does.
            number += has_acted
            last_turn = (number, False)
        else:
            speakers = [line.speaker for line in prompt.lines]
            number = speakers.count("customer")
            is_same_turn = number == last_turn[0]
            last_turn = (number, call.module in _ACTING_MODULES or (is_same_turn and has_acted))
            if speakers and prompt.lines[0].id != "M1":
                raise InputError(
                    "a prompt no longer shows the whole conversation: set a higher history_tokens"
                )
        if not 1 <= number <= len(turns):
            raise InputError(
                f"turn {number} has no script: the agent asks {call.module or call.blueprint!r} about "
                f"{prompt.request!r:.100}. Add Script(…) for it."
            )
        schema = call.schema or {"properties": {}}
        try:
            suggested = turns[number - 1].suggest(prompt, call, schema["properties"])
            return SchemaFiller(schema, prompt, must_fit=True).fill(schema, suggested)
        except InputError as error:
            raise InputError(f"scripts[{number - 1}]: {error}") from None

    return ScriptedChatModel(answer)


class _Turn:
    """The answers of one script, for each step that asks; `journeys` are those that have begun, and is added to."""

    def __init__(self, reader: ScriptReader, script: Script, journeys: set[str]) -> None:
        self._script = script
        self._reader = reader
        self._calls = [reader.read_call(call) for call in script.calls]
        self._after_tools = reader.find_ids(script.active_after_tools)
        self._answered = reader.find_ids(script.answered)
        self._changed = reader.find_ids(script.changed)
        self._given_up = reader.find_ids(script.given_up)
        active = reader.find_ids(script.active)
        for journey in reader.agent.journeys:
            if not (active | self._answered).isdisjoint(journey.rule_ids):
                journeys.add(journey.id)
        self._active = active | journeys

    def suggest(self, prompt: Prompt, call: ScriptedCall, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what the script says to a blueprint; the rest of the answer is as plain as it can be."""
        own_answers = self._script.answers.get(call.blueprint or "")
        if own_answers is not None:
            return dict(own_answers)
        if "agreeing_words" in properties:
            agrees = self._script.agrees
            return {"agreeing_words": prompt.sections["answer"] if agrees else None, "agrees": agrees}
        active = set(self._active)
        if prompt.results:
            active |= self._after_tools
        if "begun_anew" in properties:
            return self._judge_steps(prompt, active)
        if call.module == "matcher":
            return judge_guidelines(prompt, active, self._after_tools)
        if "replies" in properties:
            return self._choose_reply(prompt)
        if "revisions" in properties:
            return describe_revision(prompt, self._get_reply(prompt))
        if "action" in properties or "move" in properties or call.module == "tools":
            return self._act(prompt, call.module)
        if call.module == "summary":
            return {}
        raise InputError(f"nothing answers {call.blueprint!r}: add answers={{{call.blueprint!r}: {{…}}}}")

    def _judge_steps(self, prompt: Prompt, active: Container[str]) -> dict[str, Any]:
        """Return the answers about journeys; a step that no script names stays open."""
        answers: dict[str, list[Any]] = {"steps": [], "changed": [], "given_up": []}
        active_steps: list[str] = []
        other_branches = "not_known_yet"
        for step in prompt.now.get("judge", []):
            if step["id"] in active or step["id"] in self._answered:
                active_steps.append(step["id"])
                if step.get("condition"):
                    other_branches = "no"
        for step in prompt.now.get("judge", []):
            id = step["id"]
            judgement: dict[str, Any] = {
                "action": step["action"],
                "condition_holds": "yes"
                if id in active_steps or not step.get("condition")
                else other_branches,
                "asks_for_something": id not in active,
                "done_when_holds": id in active_steps,
            }
            if id in self._answered:
                judgement["answered_by"] = prompt.request_id
            answers["steps"].append({"step": id, "judgement": judgement})
        for step in prompt.now.get("done", []):
            if step["id"] in self._changed:
                answers["changed"].append({"step": step["id"], "answered_by": prompt.request_id})
        for journey in prompt.now.get("give_up", []):
            if journey["id"] in self._given_up:
                answers["given_up"].append(journey["id"])
        return answers

    def _act(self, prompt: Prompt, module: str | None) -> dict[str, Any]:
        """Return the calls that can be made now; a planner's and a speaker's answer is the reply if there are none."""
        keys = {tool["name"]: tool.get("key", tool["name"]) for tool in prompt.get_entries("tools")}
        calls: list[Call] = []
        wanted_calls: list[str] = []
        for call in self._calls:
            pending_ids = [entry["id"] for entry in prompt.pending_calls if self._is_same(call, entry)]
            wanted_calls += pending_ids
            key = keys.get(call.name, call.name)
            is_refused = f".{key}" in " ".join(prompt.complaints)
            is_made = any(self._is_same(call, vars(line)) for line in prompt.results)
            if call.name in prompt.now["candidates"] and not (pending_ids or is_refused or is_made):
                calls.append(replace(call, key=key))
        if not prompt.now.get("steps_left", 1):
            calls.clear()
        if module == "tools":
            answers = describe_proposals(calls)
        elif calls:
            answers = describe_action(prompt, calls, "")
        else:
            answers = describe_action(prompt, (), self._get_reply(prompt))
        return answers | {"still_wanted": wanted_calls}

    def _is_same(self, call: Call, other: Mapping[str, Any]) -> bool:
        if other["tool"] != call.name:
            return False
        return self._reader.tools[call.name].is_repetition(call.values, other["arguments"])

    def _get_reply(self, prompt: Prompt) -> str:
        if self._script.reply is not None:
            return self._script.reply
        confirmed_tools = self._reader.agent.get_confirmed_tools("customer")
        asks = not confirmed_tools.isdisjoint(call.name for call in self._calls)
        if asks or prompt.sections.get("draft"):
            return ""
        raise InputError(f"it has no reply to {prompt.request!r:.100}: add reply=…")

    def _choose_reply(self, prompt: Prompt) -> dict[str, Any]:
        id = self._get_reply(prompt)
        replies = prompt.get_entries("replies")
        prompt.sections["replies"] = [reply for reply in replies if reply["id"] == id]
        if id and not prompt.sections["replies"]:
            hint = suggestion(id, [reply["id"] for reply in replies])
            raise InputError(f"there is no prepared reply {id!r}{hint}")
        return choose_reply(prompt, has_question_below=not id)
