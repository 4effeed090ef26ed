"""The gate: one check that every proposed call passes, whichever strategy proposes it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Agreement, ToolInsight, WaitingCall
from arq_graph.nodes.channels import Reader
from arq_graph.nodes.outcomes import outcome_of
from arq_graph.nodes.tool_arguments import Problem, ToolArguments
from arq_graph.nodes.turns import matches_of_turn
from arq_graph.reasoning.conversation import Conversation, Line

NOT_AGREED = "it runs only once the customer says yes to it"


@dataclass(frozen=True)
class Verdict:
    """What the gate says about a call; the reply, the trace and the tool call itself are made from it."""

    kind: Literal["run", "missing", "invalid", "confirm", "declined"]
    tool: ToolArguments
    arguments: Mapping[str, Any]
    reason: str = ""
    problems: tuple[Problem, ...] = ()
    granted_by: tuple[str, ...] = ()

    def insights(self, turn: str, *, score: int | None = None, rationale: str = "") -> list[ToolInsight]:
        """The records of it: one, or one for each argument that is missing or invalid."""
        insight = ToolInsight(
            turn=turn,
            tool=self.tool.name,
            kind=self.kind,
            description=self.tool.tool.description,
            problem=self.reason,
            arguments=dict(self.arguments),
            score=score,
            rationale=rationale,
            granted_by=self.granted_by,
        )
        return [insight.model_copy(update=_told(problem)) for problem in self.problems] or [insight]


def _told(problem: Problem) -> dict[str, Any]:
    told: dict[str, Any] = {
        "kind": "missing" if problem.kind == "missing" else "invalid",
        "problem": problem.message,
    }
    argument = problem.argument
    return {**told, "argument": argument.name, "description": argument.description} if argument else told


@dataclass(frozen=True)
class Gate:
    """What calls are held against at one point of a turn."""

    agent: Agent
    state: Reader
    conversation: Conversation

    @cached_property
    def granted(self) -> Mapping[str, tuple[str, ...]]:
        """The tools that may be called now, each with the active guidelines that grant it."""
        return granted_tools(self.agent, self.state, self.conversation.turn)

    @cached_property
    def made(self) -> tuple[ToolInsight, ...]:
        """The calls of this turn so far, as they were proposed; an operator may have changed one since."""
        insights = self.state.records("tool_insights", ToolInsight)
        return tuple(each for each in insights if each.kind == "run" and each.turn == self.conversation.turn)

    @cached_property
    def failed(self) -> tuple[Line, ...]:
        """The results of this turn that tell of a failure."""
        return tuple(line for line in self.conversation.results if outcome_of(line) == "failed")

    def check(
        self,
        tool: ToolArguments,
        arguments: Mapping[str, Any],
        problems: Sequence[Problem] = (),
        *,
        repeat_is_justified: bool | None = None,
        objection: str = "",
        doubt: str = "",
    ) -> Verdict:
        """Check a proposed call; the first thing that is wrong with it decides."""
        by = self.granted.get(tool.name)
        if by is None:
            now = ", ".join(sorted(self.granted)) or "none"
            reason = (
                f"{tool.name} cannot be called now: no active guideline grants it; the tools that can: {now}"
            )
            return Verdict("declined", tool, arguments, reason)
        if problems:
            return Verdict("missing", tool, arguments, problems=tuple(problems), granted_by=by)
        if why := self._repetition(tool, arguments, repeat_is_justified) or objection:
            return Verdict("declined", tool, arguments, why, granted_by=by)
        if tool.name in self.agent.confirmed_by("customer") or doubt:
            return Verdict("confirm", tool, arguments, doubt or NOT_AGREED, granted_by=by)
        return Verdict("run", tool, arguments, granted_by=by)

    def check_agreed(self, tool: ToolArguments, call: WaitingCall, *, objection: str = "") -> Verdict:
        """Check a call once more that the customer has agreed to.

        What a model judged when it was put stands. Conditions that are functions, overrides, policies and the tool's
        own schema may have changed since.
        """
        by = standing_grants(self.agent, self.state, self.conversation.turn, call.granted_by)
        if tool.name not in self.agent.always_available and not by:
            return Verdict("declined", tool, call.arguments, "no guideline grants it any more")
        if problems := tool.validate(call.arguments):
            return Verdict("invalid", tool, call.arguments, problems=tuple(problems), granted_by=by)
        kind: Literal["declined", "run"] = "declined" if objection else "run"
        return Verdict(kind, tool, call.arguments, objection, granted_by=by)

    def _repetition(self, tool: ToolArguments, arguments: Mapping[str, Any], justified: bool | None) -> str:
        """Why a call only repeats one of this turn; empty if it does not, or if there is a reason to."""
        key = tool.key(arguments)
        ran = [line for line in self.conversation.results if line.call]
        same = [
            line
            for line in ran
            if line.call and line.call["name"] == tool.name and tool.key(line.call["args"]) == key
        ]
        proposed = any(each.tool == tool.name and tool.key(each.arguments) == key for each in self.made)
        if justified or not (same or proposed):
            return ""
        if not same:
            return "the same call was proposed already in this turn, and another one was made in its place"
        if same[-1] in self.failed:
            return f"the same call has failed already in this turn ({same[-1].id})"
        if justified is None and same[-1] is not ran[-1]:
            return ""
        return f"the same call was already made in this turn ({same[-1].id})"


def active_guidelines(agent: Agent, state: Reader, turn: str) -> dict[str, int]:
    """Ids of the guidelines active in this turn, with their scores.

    Where guidelines were not matched in this turn, only those that are always true count, with a warning.
    """
    matches = matches_of_turn(state, turn)
    if matches is None:
        if any(guideline.condition is not None for guideline in agent.guidelines):
            warnings.warn(
                "guidelines were not matched in this turn: only those without a condition apply. "
                "Put a GuidelineMatcher before this node",
                stacklevel=3,
            )
        return {guideline.id: 10 for guideline in agent.guidelines if guideline.condition is None}
    known = {guideline.id for guideline in agent.guidelines}
    return {
        match.guideline: match.score or 10 for match in matches if match.active and match.guideline in known
    }


def standing_grants(agent: Agent, state: Reader, turn: str, granted_by: Sequence[str]) -> tuple[str, ...]:
    """Which of the guidelines that granted a call when it was put still do, whatever is judged of the yes itself."""
    matches = {match.guideline: match for match in matches_of_turn(state, turn) or ()}

    def stands(id: str) -> bool:
        match = matches.get(id)
        return not (match is not None and match.origin == "code" and not match.matched)

    known = [guideline.id for guideline in agent.guidelines]
    given = {id for id in granted_by if id in known}
    while more := {needed for id in given for needed in agent.guideline(id).depends_on} - given:
        given |= more  # what it rests on was active, too
    scores = {id: 10 for id in given if stands(id)}
    scores |= {match.guideline: match.score or 10 for match in matches.values() if match.matched}
    active = agent.relations.resolve(scores).active
    return tuple(id for id in granted_by if id in active and id in given)


def refusal(agent: Agent, state: Reader, call: Mapping[str, Any]) -> str | None:
    """Why a call must not run, whoever wrote it into the messages; None if it may."""
    name, turn = call["name"], Conversation(state.messages()).turn
    agreements = state.records("agreements", Agreement)
    spent = next(
        (each for record in agreements for each in record.calls if each.call and each.call == call["id"]),
        None,
    )
    if spent is not None and (spent.tool, spent.arguments) != (name, call["args"]):
        return "this is not the call that was agreed to"
    if spent is not None and any(
        getattr(each, "tool_call_id", None) == spent.call for each in state.messages()
    ):
        return "this call has run already: one yes is for one call"
    if spent is None and name in agent.confirm:
        return "this call needs an agreement that nobody has given to it"
    if name in granted_tools(agent, state, turn):
        return None
    if spent is not None and standing_grants(agent, state, turn, spent.granted_by):
        return None
    return "this tool cannot be called now: no active guideline grants it"


def granted_tools(agent: Agent, state: Reader, turn: str) -> dict[str, tuple[str, ...]]:
    """The tools that may be called in this turn, each with the active guidelines that grant it."""
    active = active_guidelines(agent, state, turn)
    granting = {name: tuple(id for id in agent.grants[name] if id in active) for name in agent.toolbox}
    return {name: ids for name, ids in granting.items() if ids or name in agent.always_available}
