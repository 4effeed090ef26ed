"""A chat model that answers every step of an agent from scripts, one for each turn."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage

from arq_graph.agent.spec import Agent
from arq_graph.errors import InputError, suggestion
from arq_graph.models.offline.activation import describe_judgement, was_followed
from arq_graph.models.offline.answers import describe_action, describe_proposals, describe_revision
from arq_graph.models.offline.calls import Call
from arq_graph.models.offline.choice import describe_choice, rate_replies
from arq_graph.models.offline.prompt import Prompt
from arq_graph.models.offline.schema_filler import SchemaFiller
from arq_graph.models.scripted import ScriptedCall, ScriptedChatModel
from arq_graph.nodes.messages import make_tool_call
from arq_graph.testing.script import Script, ScriptReader

_REASON = "The script says so."


def scripted_model(agent: Agent, scripts: Sequence[Script]) -> ScriptedChatModel:
    """Make a model that answers all steps of an agent as the scripts say: the first one in the first turn, and so on.

    It works in every mode and with every strategy, sync, async and streaming. A turn is a message of the customer;
    those of a history that a test passes count, too. `model.calls` has what it was asked.

    Raises:
        InputError: A script names what the agent doesn't have. When run: a turn has no script, or its script lacks an
            answer.
    """
    return ScriptedChatModel(_ScriptedAnswers(agent, scripts))


class _ScriptedAnswers:
    """The answers to all calls of the model."""

    def __init__(self, agent: Agent, scripts: Sequence[Script]) -> None:
        self._reader = ScriptReader(agent)
        self._turns: list[_Turn] = []
        journeys: set[str] = set()
        for number, script in enumerate(scripts):
            turn = _Turn(self._reader, script, number)
            journeys = turn.add_journeys(journeys)
            self._turns.append(turn)
        self._last_turn = (0, "")

    def __call__(self, call: ScriptedCall) -> Any:
        prompt = Prompt(call.messages)
        turn = self._find_turn(call, prompt)
        if call.schema is None:
            return turn.answer_as_agent(call)
        try:
            suggestion = turn.suggest(prompt, call)
            return SchemaFiller(call.schema, prompt, must_fit=True).fill(call.schema, suggestion)
        except InputError as error:
            raise InputError(f"{turn.place}: {error}") from None

    def _find_turn(self, call: ScriptedCall, prompt: Prompt) -> _Turn:
        """Return the turn that a call belongs to, by the number of the customer's messages."""
        answer = prompt.sections.get("answer")
        if call.schema is None:
            number = sum(isinstance(message, HumanMessage) for message in call.messages)
        elif isinstance(answer, str):  # of the question about consent, which shows no conversation
            number, request = self._last_turn
            number += not answer.endswith(request)
        else:
            number = sum(line.speaker == "customer" for line in prompt.lines)
            self._last_turn = (number, prompt.request)
        if not 1 <= number <= len(self._turns):
            raise InputError(
                f"turn {number} has no script: the agent asks {call.module or call.blueprint!r} about "
                f"{prompt.request!r:.100}, and there are {len(self._turns)} scripts. Add Script(…) for it."
            )
        return self._turns[number - 1]


class _Turn:
    """The answers of one script, for each step that asks."""

    def __init__(self, reader: ScriptReader, script: Script, number: int) -> None:
        self.place = f"scripts[{number}]"
        self._script = script
        self._reader = reader
        self._ids: dict[str, set[str]] = {}
        for name in ("active", "active_after_tools", "answered", "changed", "left", "given_up", "begun_anew"):
            self._ids[name] = reader.find_ids(getattr(script, name), f"{self.place}.{name}")
        self._calls: list[Call] = []
        for tool, arguments in script.calls:
            self._calls.append(reader.read_call(tool, arguments, f"{self.place}.calls"))

    def add_journeys(self, earlier: Set[str]) -> set[str]:
        """Have the journeys go on that earlier scripts began, and return those that have begun by now."""
        for id in self._ids["active"] | self._ids["answered"]:
            if id in self._reader.journeys:
                earlier |= {self._reader.journeys[id]}
        self._ids["active"] |= earlier - self._ids["left"]
        return set(earlier)

    def suggest(self, prompt: Prompt, call: ScriptedCall) -> Mapping[str, Any]:
        """Return what the script says to a blueprint; the rest of the answer is as plain as it can be."""
        properties = (call.schema or {})["properties"]
        own_answers = self._script.answers.get(call.blueprint or "")
        if own_answers is not None:
            return dict(own_answers)
        if "agreeing_words" in properties:
            words = prompt.sections["answer"] if self._script.agrees else None
            return {"agreeing_words": words, "agrees": self._script.agrees}
        if "begun_anew" in properties:
            return self._judge_steps(prompt)
        if call.module == "matcher":
            return self._judge_guidelines(prompt)
        if "action" in properties or "move" in properties:
            calls = self._list_calls(prompt)
            reply = "" if calls else self._get_reply(prompt)
            return self._add_wanted(prompt, describe_action(prompt, calls, reply))
        if call.module == "tools":
            return self._add_wanted(prompt, describe_proposals(self._list_calls(prompt)))
        if "replies" in properties:
            return self._choose_reply(prompt)
        if "revisions" in properties:
            return describe_revision(prompt, self._get_reply(prompt))
        if call.module == "summary":
            return {}
        raise InputError(f"nothing answers {call.blueprint!r}: add answers={{{call.blueprint!r}: {{…}}}}")

    def answer_as_agent(self, call: ScriptedCall) -> AIMessage:
        """Answer as the model of an agent of LangChain, whose tools are bound to it."""
        bound_tools = [tool["function"]["name"] for tool in call.kwargs.get("tools") or ()]
        made: list[tuple[str, Any]] = []
        for message in call.messages:
            if isinstance(message, HumanMessage):
                made.clear()
            for tool_call in getattr(message, "tool_calls", ()):
                made.append((tool_call["name"], tool_call["args"]))
        calls = [call for call in self._calls if call.name in bound_tools and not self._is_among(made, call)]
        tool_calls = [make_tool_call(call.name, call.values) for call in calls]
        return AIMessage("" if calls else self._script.reply or "", tool_calls=tool_calls)

    def _judge_guidelines(self, prompt: Prompt) -> dict[str, Any]:
        active = self._list_active(prompt)
        judgements: dict[str, Any] = {}
        for guideline in prompt.get_entries("guidelines"):
            id = guideline["id"]
            if id not in prompt.now["judge"]:
                continue
            is_known = guideline["condition"] is None or id in prompt.now.get("holds", ())
            reason = _REASON if is_known or id in active else None
            judgements[id] = describe_judgement(
                guideline,
                reason,
                may_change=id in self._ids["active_after_tools"],
                was_applied=id not in active and was_followed(prompt, id),
            )
        return judgements

    def _list_active(self, prompt: Prompt) -> set[str]:
        return self._ids["active"] | (self._ids["active_after_tools"] if prompt.results else set())

    def _judge_steps(self, prompt: Prompt) -> dict[str, Any]:
        """Return the answers about journeys; a step that no script names stays open."""
        taken, answered = self._list_active(prompt), self._ids["answered"]
        judged = prompt.now.get("judge", [])
        is_branch_chosen = any(step.get("condition") and step["id"] in taken | answered for step in judged)
        steps: list[dict[str, Any]] = []
        for step in judged:
            id = step["id"]
            condition_holds = "no" if is_branch_chosen else "not_known_yet"
            if id in taken | answered or not step.get("condition"):
                condition_holds = "yes"
            judgement = {
                "action": step["action"],
                "condition_holds": condition_holds,
                "asks_for_something": id not in taken,
                "answered_by": prompt.request_id if id in answered else None,
                "done_when_holds": id in taken | answered,
            }
            steps.append({"step": id, "judgement": judgement})
        changed: list[dict[str, Any]] = []
        for step in prompt.now.get("done", []):
            if step["id"] in self._ids["changed"]:
                changed.append({"step": step["id"], "answered_by": prompt.request_id})
        given_up = _select_ids(prompt, "give_up", self._ids["given_up"])
        begun_anew = _select_ids(prompt, "ended", self._ids["begun_anew"])
        return {"steps": steps, "changed": changed, "given_up": given_up, "begun_anew": begun_anew}

    def _list_calls(self, prompt: Prompt) -> list[Call]:
        """Return the calls that can be made now: unlocked, not made in this turn, not pending, and not refused."""
        made = [(line.tool, line.arguments) for line in prompt.results]
        made += [(call["tool"], call["arguments"]) for call in prompt.pending_calls]
        keys = {tool["name"]: tool.get("key") or tool["name"] for tool in prompt.get_entries("tools")}
        candidates = prompt.now.get("candidates", ()) if prompt.now.get("steps_left", 1) else ()
        calls: list[Call] = []
        for call in self._calls:
            if call.name in candidates and not self._is_among(made, call):
                key = keys.get(call.name, call.name)
                if not any(f".{key}" in place for place in prompt.complaints):
                    calls.append(replace(call, key=key))
        return calls

    def _is_among(self, made: Sequence[tuple[str, Any]], call: Call) -> bool:
        schema = self._reader.tools[call.name]
        return any(
            tool == call.name and schema.is_repetition(call.values, arguments) for tool, arguments in made
        )

    def _add_wanted(self, prompt: Prompt, answers: dict[str, Any]) -> dict[str, Any]:
        """Add the pending calls that the script lists again."""
        wanted: list[str] = []
        for pending in prompt.pending_calls:
            made = [(pending["tool"], pending["arguments"])]
            if any(self._is_among(made, call) for call in self._calls):
                wanted.append(pending["id"])
        return answers | {"still_wanted": wanted}

    def _get_reply(self, prompt: Prompt) -> str:
        if self._script.reply is not None:
            return self._script.reply
        confirmed_tools = self._reader.agent.get_confirmed_tools("customer")
        asks = any(call.name in confirmed_tools for call in self._calls)
        if asks or prompt.sections.get("draft"):
            return ""
        raise InputError(f"it has no reply to {prompt.request!r:.100}: add reply=…")

    def _choose_reply(self, prompt: Prompt) -> dict[str, Any]:
        id = self._get_reply(prompt)
        choices = {choice["reply"]: choice for _, choice in rate_replies(prompt)}
        if id and id not in choices:
            raise InputError(f"there is no prepared reply {id!r}{suggestion(id, choices)}")
        return describe_choice(prompt, [choices[id]] if id else [])


def _select_ids(prompt: Prompt, section: str, ids: Container[str]) -> list[str]:
    return [entry["id"] for entry in prompt.now.get(section, []) if entry["id"] in ids]
