"""The gate: one check that every proposed call passes, whichever strategy proposes it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from langchain_core.messages import ToolMessage

from arq_graph.agent.guideline import Guideline
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Agreement, PendingCall, ToolVerdict
from arq_graph.nodes.channels import StateView
from arq_graph.nodes.messages import classify_result
from arq_graph.nodes.speaking.policies import Policy
from arq_graph.nodes.tool_arguments import Argument, Problem, ToolSchema
from arq_graph.reasoning.conversation import Conversation, Line

NOT_AGREED = "it runs only once the customer says yes to it"
MAX_SCORE = 10


@dataclass(frozen=True)
class ToolRules:
    """The tools that policies forbid now, and those that they require before anything else, each with its policy.

    A tool that can't be called now, or was called already in this turn or task, isn't required.
    """

    forbidden: Mapping[str, Policy] = field(default_factory=dict)
    required: Mapping[str, Policy] = field(default_factory=dict)

    def find_objection(self, tool: str) -> str:
        """Return why a tool may not be called now, with the rule; empty if it may."""
        if policy := self.forbidden.get(tool):
            return f"the policy {policy.name} forbids {tool} now ({policy.rule})"
        return "" if tool in self.required else self.describe_required()

    def describe_required(self) -> str:
        """Return what has to be called before anything else, with the rules; empty if nothing has."""
        return "; ".join(
            f"the policy {policy.name} requires {tool} first ({policy.rule})"
            for tool, policy in self.required.items()
        )


@dataclass
class Gate:
    """The check of calls at one point of a turn.

    Its verdict is a list of tool insights: one about the call, or one about each missing or invalid argument. `rules`
    are those of the policies that apply at this point.
    """

    agent: Agent
    state: StateView
    conversation: Conversation
    tools: Mapping[str, ToolSchema]
    rules: ToolRules = field(default_factory=ToolRules)

    @cached_property
    def granted(self) -> Mapping[str, tuple[str, ...]]:
        """The tools that may be called now, each with the active guidelines that grant it."""
        return get_granted_tools(self.agent, self.state)

    @cached_property
    def previous_calls(self) -> tuple[ToolVerdict, ...]:
        """The calls of this turn so far, as they were proposed; an operator may have changed one since."""
        insights = self.state.read_turn_records("tool_insights", ToolVerdict, self.state.turn_id)
        return tuple(insight for insight in insights if insight.kind == "run")

    @cached_property
    def failed_results(self) -> tuple[Line, ...]:
        """The results of this turn that report a failure."""
        results = self.conversation.current_turn_results
        return tuple(line for line in results if classify_result(line) == "failed")

    def check(
        self,
        tool: ToolSchema,
        arguments: Mapping[str, Any],
        problems: Sequence[Problem] = (),
        *,
        repeat_is_justified: bool | None = None,
        objection: str = "",
        doubt: str = "",
    ) -> list[ToolVerdict]:
        """Return the verdict on a proposed call; the first thing that is wrong with it decides.

        Args:
            tool: The tool.
            arguments: The arguments of the call.
            problems: Those that are missing or invalid.
            repeat_is_justified: Whether there is a reason to repeat a call; None if the model wasn't asked.
            objection: Why a policy or a limit of steps forbids the call; empty if nothing does.
            doubt: Why the customer has to confirm one of its values; empty if they don't.
        """
        if tool.name not in self.granted:
            candidates = ", ".join(sorted(self.granted)) or "none"
            reason = (
                f"{tool.name} cannot be called now: no active guideline grants it; the tools that can: "
                f"{candidates}"
            )
            return [self.make_verdict(tool, "declined", arguments, reason)]
        if problems:
            return self.report_problems(tool, arguments, problems)
        if reason := self._find_repetition(tool, arguments, repeat_is_justified) or objection:
            return [self.make_verdict(tool, "declined", arguments, reason)]
        if tool.name in self.agent.get_confirmed_tools("customer") or doubt:
            return [self.make_verdict(tool, "confirm", arguments, doubt or NOT_AGREED)]
        return [self.make_verdict(tool, "run", arguments)]

    def recheck_pending_calls(self, calls: Iterable[PendingCall]) -> list[ToolVerdict]:
        """Return the verdicts on pending calls; the customer is asked again about those that could run."""
        insights: list[ToolVerdict] = []
        for call in calls:
            for insight in self.check_agreed_call(call):
                if insight.kind == "run":
                    insight = insight.model_copy(update={"kind": "confirm", "problem": NOT_AGREED})
                insights.append(insight)
        return insights

    def check_agreed_call(self, call: PendingCall, objection: str = "") -> list[ToolVerdict]:
        """Return the verdict on a call that the customer has agreed to.

        What a model judged when the customer was asked still counts. Conditions that are functions, overrides,
        policies and the tool's own schema are checked again, since they may have changed.
        """
        tool = self.tools[call.tool]
        granted_by = find_remaining_grants(self.agent, self.state, call.granted_by)
        if tool.name not in self.agent.always_available and not granted_by:
            return [self.make_verdict(tool, "declined", call.arguments, "no guideline grants it any more")]
        if problems := tool.validate(call.arguments):
            return self.report_problems(tool, call.arguments, problems)
        kind = "declined" if objection else "run"
        return [self.make_verdict(tool, kind, call.arguments, objection, granted_by=granted_by)]

    def make_verdict(
        self,
        tool: ToolSchema,
        kind: Any,
        arguments: Mapping[str, Any],
        problem: str = "",
        argument: Argument | None = None,
        *,
        granted_by: tuple[str, ...] | None = None,
        rationale: str = "",
    ) -> ToolVerdict:
        """Return the record of a verdict on a call, or on one of its arguments."""
        if granted_by is None:
            granted_by = self.granted.get(tool.name, ())
        return ToolVerdict(
            turn=self.state.turn_id,
            tool=tool.name,
            kind=kind,
            argument=argument.name if argument else None,
            description=argument.description if argument else tool.base_tool.description,
            problem=problem,
            arguments=dict(arguments),
            rationale=rationale,
            granted_by=granted_by,
        )

    def report_problems(
        self, tool: ToolSchema, arguments: Mapping[str, Any], problems: Sequence[Problem]
    ) -> list[ToolVerdict]:
        """Return the records of the missing and invalid arguments of a call."""
        return [
            self.make_verdict(tool, problem.kind, arguments, problem.message, problem.argument)
            for problem in problems
        ]

    def _find_repetition(
        self, tool: ToolSchema, arguments: Mapping[str, Any], is_justified: bool | None
    ) -> str:
        """Return why a call only repeats one of this turn; empty if it doesn't, or if there is a reason to."""
        if is_justified:
            return ""
        key = tool.make_call_identity(arguments)
        results: list[Line] = []
        same_results: list[Line] = []
        for line in self.conversation.current_turn_results:
            if line.call:
                results.append(line)
                if line.call["name"] == tool.name and tool.make_call_identity(line.call["args"]) == key:
                    same_results.append(line)
        if not same_results:
            for call in self.previous_calls:
                if call.tool == tool.name and tool.make_call_identity(call.arguments) == key:
                    return "the same call was proposed already in this turn, and another one was made in its place"
            return ""
        last = same_results[-1]
        if last in self.failed_results:
            is_first_retry = is_justified is None and len(same_results) == 1  # as after a time-out
            return "" if is_first_retry else f"the same call has failed already in this turn ({last.id})"
        if is_justified is None and last is not results[-1]:
            return ""  # another call was made since, and may have changed what it returns
        return f"the same call was already made in this turn ({last.id})"


def find_refusal(agent: Agent, state: StateView, call: Mapping[str, Any]) -> str | None:
    """Return why a call must not run, wherever it comes from; None if it may."""
    name = call["name"]
    agreed_calls: list[PendingCall] = []
    for agreement in state.read_records("agreements", Agreement):
        agreed_calls += [agreed for agreed in agreement.calls if agreed.tool_call_id]
    agreed_call = next((agreed for agreed in agreed_calls if agreed.tool_call_id == call["id"]), None)
    if agreed_call is None:
        if name in agent.confirm:
            return "this call needs an agreement that nobody has given to it"
    elif (agreed_call.tool, agreed_call.arguments) != (name, call["args"]):
        return "this is not the call that was agreed to"
    elif any(isinstance(m, ToolMessage) and m.tool_call_id == call["id"] for m in state.messages):
        return "this call has run already: one yes is for one call"
    elif find_remaining_grants(agent, state, agreed_call.granted_by):
        return None
    if name in get_granted_tools(agent, state):
        return None
    return "this tool cannot be called now: no active guideline grants it"


def get_active_guidelines(agent: Agent, state: Any, *, messages_key: str = "messages") -> list[Guideline]:
    """Return the guidelines that are active in the current turn of a state, for a prompt or a router of your own.

    Args:
        agent: The specification.
        state: A graph's state, as a node gets it.
        messages_key: Channel of the messages.

    Raises:
        StateError: A channel of this library holds something that it did not write.
    """
    scores = get_active_scores(agent, StateView(state, messages_key, agent=agent.name))
    return [agent.get_guideline(id) for id in scores]


def get_active_scores(agent: Agent, state: StateView) -> dict[str, int]:
    """Return the scores of the guidelines that are active in this turn, by their ids.

    If guidelines weren't matched in this turn, those without a condition are active, and a warning says so.
    """
    scores: dict[str, int] = {}
    matches = state.current_turn_matches
    if matches:
        known_ids = {guideline.id for guideline in agent.guidelines}
        for match in matches:
            if match.active and match.guideline in known_ids:
                scores[match.guideline] = match.score or MAX_SCORE
        return scores
    for guideline in agent.guidelines:
        if guideline.condition is None:
            scores[guideline.id] = MAX_SCORE
    if len(scores) < len(agent.guidelines) and not state.is_speculative:
        warnings.warn(
            f"guidelines were not matched for the customer's last message: of agent {agent.name!r} only those "
            "without a condition apply. Put a GuidelineMatcher before this node. It (or GuidelineMiddleware) "
            "belongs behind what rewrites messages, such as a summary; messages need the reducer add_messages",
            stacklevel=1,  # one place, so that Python warns once and not in every step
        )
    return scores


def get_granted_tools(agent: Agent, state: StateView) -> dict[str, tuple[str, ...]]:
    """Return the tools that may be called in this turn, each with the active guidelines that grant it."""
    active_ids = get_active_scores(agent, state)
    granted_tools = {}
    for name in agent.toolbox:
        granted_by = tuple(id for id in agent.grants[name] if id in active_ids)
        if granted_by or name in agent.always_available:
            granted_tools[name] = granted_by
    return granted_tools


def find_remaining_grants(agent: Agent, state: StateView, granted_by: Sequence[str]) -> tuple[str, ...]:
    """Return the guidelines that granted a call when the customer was asked, and still do.

    Their conditions aren't judged again by the customer's answer, unless they are decided in code.
    """
    agreed_ids = {guideline.id for guideline in agent.guidelines}.intersection(granted_by)
    unvisited = list(agreed_ids)
    while unvisited:  # the guidelines that these depend on were active too
        dependencies = set(agent.get_guideline(unvisited.pop()).depends_on) - agreed_ids
        agreed_ids |= dependencies
        unvisited += dependencies
    matches = state.current_turn_matches
    refuted_ids = {match.guideline for match in matches if match.origin == "code" and not match.matched}
    scores = dict.fromkeys(agreed_ids - refuted_ids, MAX_SCORE)
    for match in matches:
        if match.matched:
            scores[match.guideline] = match.score or MAX_SCORE
    active_ids = agent.relations.resolve(scores).active
    return tuple(id for id in granted_by if id in active_ids)
