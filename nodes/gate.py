"""The gate: one check that every proposed call passes, whichever strategy proposes it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from arq_graph.agent.guideline import Guideline
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Agreement, PendingCall, ToolVerdict, VerdictKind
from arq_graph.agent.tool_model import are_same_values, find_unstorable
from arq_graph.nodes.channels import StateView, select_verdicts, view_state
from arq_graph.nodes.judgements import MAX_SCORE
from arq_graph.nodes.messages import classify_result, find_unanswered_calls
from arq_graph.nodes.speaking.policies import Policy
from arq_graph.nodes.tool_arguments import Argument, Problem, ToolSchema
from arq_graph.reasoning.history import Line

NOT_AGREED = "it runs only once the customer says yes to it"


@dataclass(frozen=True)
class ToolRules:
    """The tools that policies forbid now, and those that they require before anything else, each with its policy.

    A tool that can't be called now, or was called already in this turn or task, isn't required.
    """

    forbidden: Mapping[str, Policy] = field(default_factory=dict)
    required: Mapping[str, Policy] = field(default_factory=dict)

    def find_refusal(self, tool: str) -> str | None:
        """Return why a tool may not be called now, with the rule; None if it may."""
        if policy := self.forbidden.get(tool):
            return f"the policy {policy.name} forbids {tool} now ({policy.rule})"
        return None if tool in self.required else self.describe_required()

    def describe_required(self) -> str | None:
        """Return what has to be called before anything else, with the rules; None if nothing has."""
        reasons: list[str] = []
        for tool, policy in self.required.items():
            reasons.append(f"the policy {policy.name} requires {tool} first ({policy.rule})")
        return "; ".join(reasons) or None


@dataclass(frozen=True)
class Gate:
    """The check of calls at one point of a turn.

    It returns verdicts: one on the call, or one on each missing or invalid argument. `rules` are those of the policies
    that apply at this point.
    """

    agent: Agent
    state: StateView
    tools: Mapping[str, ToolSchema]
    rules: ToolRules = field(default_factory=ToolRules)

    @cached_property
    def granted(self) -> Mapping[str, tuple[str, ...]]:
        """The tools that may be called now, each with the active guidelines that grant it."""
        return get_granted_tools(self.agent, self.state)

    @cached_property
    def previous_calls(self) -> tuple[ToolVerdict, ...]:
        """The calls of this turn so far, as they were proposed; an operator may have changed one since."""
        verdicts = self.state.read_turn_records("tool_insights", ToolVerdict, self.state.turn_id)
        return tuple(select_verdicts(verdicts, "run"))

    @cached_property
    def failed_results(self) -> tuple[Line, ...]:
        """The results of this turn that report a failure."""
        results = self.state.conversation.current_turn_results
        return tuple(line for line in results if classify_result(line) == "failed")

    @cached_property
    def empty_results(self) -> tuple[Line, ...]:
        """The results of this turn in which nothing was found."""
        results = self.state.conversation.current_turn_results
        return tuple(line for line in results if classify_result(line) == "empty")

    def check(
        self,
        tool: ToolSchema,
        arguments: Mapping[str, Any],
        problems: Sequence[Problem] = (),
        *,
        repeat_is_justified: bool | None = None,
        refusal: str | None = None,
        doubt: str = "",
    ) -> list[ToolVerdict]:
        """Return the verdicts on a proposed call; the first thing that is wrong with it decides.

        A call that a person has to agree to gets the arguments that the tool itself makes of those proposed.

        Args:
            tool: The tool.
            arguments: The arguments of the call.
            problems: Those that are missing or invalid.
            repeat_is_justified: True if there is a reason to repeat a call; None if the model wasn't asked.
            refusal: Why a policy or a limit forbids the call; None if nothing does.
            doubt: Why the customer has to confirm one of its values; empty if they don't.
        """
        if tool.name not in self.granted:
            candidates = ", ".join(sorted(self.granted)) or "none"
            reason = (
                f"{tool.name} cannot be called now: no active guideline grants it; tools that can be called now: "
                f"{candidates}"
            )
            return [self.make_verdict(tool, "declined", arguments, reason)]
        if problems:
            return self.report_problems(tool, arguments, problems)
        refusal = self._find_repetition_refusal(tool, arguments, repeat_is_justified) or refusal
        if refusal:
            return [self.make_verdict(tool, "declined", arguments, refusal)]
        if tool.name in self.agent.confirm or doubt:
            arguments, problems = tool.complete(arguments)
            if problems:
                return self.report_problems(tool, arguments, problems)
        if tool.name in self.agent.get_confirmed_tools("customer") or doubt:
            return [self.make_verdict(tool, "confirm", arguments, doubt or NOT_AGREED)]
        return [self.make_verdict(tool, "run", arguments)]

    def recheck_pending_calls(self, calls: Iterable[PendingCall]) -> list[ToolVerdict]:
        """Return the verdicts on pending calls; the customer is asked again about those that could run."""
        verdicts: list[ToolVerdict] = []
        for call in calls:
            for verdict in self.check_agreed_call(call):
                if verdict.kind == "run":
                    verdict = verdict.model_copy(update={"kind": "confirm", "problem": NOT_AGREED})
                verdicts.append(verdict)
        return verdicts

    def check_agreed_call(self, call: PendingCall, refusal: str | None = None) -> list[ToolVerdict]:
        """Return the verdicts on a call that the customer has agreed to.

        What a model judged when the customer was asked still counts. Conditions that are functions, overrides,
        policies (by `refusal`) and the tool's own schema are checked again, since they may have changed.
        """
        tool = self.tools[call.tool]
        granted_by = find_remaining_grants(self.agent, self.state, call.granted_by)
        if tool.name not in self.agent.always_available and not granted_by:
            return [self.make_verdict(tool, "declined", call.arguments, "no guideline grants it now")]
        arguments, problems = tool.complete(call.arguments)
        if problems:
            return self.report_problems(tool, call.arguments, problems)
        if refusal:
            return [self.make_verdict(tool, "declined", call.arguments, refusal, granted_by=granted_by)]
        if not are_same_values(arguments, call.arguments):  # the tool has changed since
            return [self.make_verdict(tool, "confirm", arguments, NOT_AGREED, granted_by=granted_by)]
        return [self.make_verdict(tool, "run", call.arguments, granted_by=granted_by)]

    def report_problems(
        self, tool: ToolSchema, arguments: Mapping[str, Any], problems: Iterable[Problem]
    ) -> list[ToolVerdict]:
        """Return the verdicts on the missing and invalid arguments of a call."""
        verdicts: list[ToolVerdict] = []
        for problem in problems:
            verdict = self.make_verdict(tool, problem.kind, arguments, problem.message, problem.argument)
            verdicts.append(verdict)
        return verdicts

    def make_verdict(
        self,
        tool: ToolSchema,
        kind: VerdictKind,
        arguments: Mapping[str, Any],
        problem: str = "",
        argument: Argument | None = None,
        *,
        granted_by: tuple[str, ...] | None = None,
        rationale: str = "",
    ) -> ToolVerdict:
        """Return the verdict on a call, or on one of its arguments.

        If `granted_by` is None, the verdict names the guidelines that grant the tool now.
        """
        if granted_by is None:
            granted_by = self.granted.get(tool.name, ())
        name, description = None, tool.base_tool.description
        if argument:
            name, description = argument.name, argument.description
        storable = {key: value for key, value in arguments.items() if find_unstorable(value) is None}
        return ToolVerdict(
            turn=self.state.turn_id,
            tool=tool.name,
            kind=kind,
            argument=name,
            description=description,
            problem=problem,
            arguments=storable,
            rationale=rationale,
            granted_by=granted_by,
        )

    def _find_repetition_refusal(
        self, tool: ToolSchema, arguments: Mapping[str, Any], is_justified: bool | None
    ) -> str | None:
        """Return why a call only repeats one of this turn; None if it doesn't, or if there is a reason to."""
        if is_justified:
            return None
        same_results = self._find_same_results(tool, arguments)
        if not same_results:
            for call in self.previous_calls:
                if call.tool == tool.name and tool.is_repetition(arguments, call.arguments):
                    return "the same call was proposed already in this turn, and another one was made in its place"
            return None
        last = same_results[-1]
        if last in self.failed_results:
            if is_justified is None and len(same_results) == 1:
                return None  # a first retry, as after a time-out
            return f"the same call has failed already in this turn ({last.id})"
        if is_justified is None and last is not self.state.conversation.current_turn_results[-1]:
            return None  # another call was made since, and may have changed what it returns
        return f"the same call was already made in this turn ({last.id})"

    def _find_same_results(self, tool: ToolSchema, arguments: Mapping[str, Any]) -> list[Line]:
        """Return the results of this turn that the same call had, the newest last."""
        same_results: list[Line] = []
        for line in self.state.conversation.current_turn_results:
            call = line.call
            if call and call["name"] == tool.name and tool.is_repetition(arguments, call["args"]):
                same_results.append(line)
        return same_results


def find_execution_refusal(agent: Agent, state: StateView, call: Mapping[str, Any]) -> str | None:
    """Return why a call must not run, wherever it comes from; None if it may."""
    agreed_call = _find_agreed_call(state, call["id"])
    if agreed_call is None and call["name"] in agent.confirm:
        return "this call needs an agreement, and nobody has agreed to it in this turn"
    if agreed_call is not None:
        if (agreed_call.tool, agreed_call.arguments) != (call["name"], call["args"]):
            return "this is not the call that was agreed to"
        if not _waits_for_its_run(state, agreed_call):
            return "this call has run already: a yes allows one call"
        if find_remaining_grants(agent, state, agreed_call.granted_by):
            return None
    if call["name"] in get_granted_tools(agent, state):
        return None
    return "this tool cannot be called now: no active guideline grants it"


def _find_agreed_call(state: StateView, tool_call_id: str | None) -> PendingCall | None:
    """Return the call with this id that was agreed to in this turn; providers may repeat its id in another one."""
    for agreement in state.read_records("agreements", Agreement):
        if agreement.answer_message_id != state.turn_id:
            continue
        for call in agreement.calls:
            if call.tool_call_id and call.tool_call_id == tool_call_id:
                return call
    return None


def _waits_for_its_run(state: StateView, agreed_call: PendingCall) -> bool:
    """Return True if the message that was agreed to is the one whose calls run now; its id is repeated by others."""
    for placed_call in find_unanswered_calls(state.messages):
        if placed_call.call["id"] != agreed_call.tool_call_id:
            continue
        if agreed_call.message_id is not None:
            return placed_call.message.id == agreed_call.message_id
        answered_ids = {getattr(message, "tool_call_id", None) for message in state.messages}
        return agreed_call.tool_call_id not in answered_ids
    return False


def get_active_guidelines(agent: Agent, state: Any, *, messages_key: str = "messages") -> list[Guideline]:
    """Return the guidelines that are active in the current turn of a state, for a prompt or a router of your own.

    Args:
        agent: The specification.
        state: A graph's state, as a node gets it.
        messages_key: Channel of the messages.

    Raises:
        StateError: A channel of this library holds something that it did not write.
    """
    scores = get_active_scores(agent, view_state(agent, state, messages_key))
    return [agent.get_guideline(id) for id in scores]


def get_active_scores(agent: Agent, state: StateView) -> dict[str, int]:
    """Return the scores of the guidelines that are active in this turn, by their ids.

    If guidelines weren't matched in this turn, those without a condition are active, and a warning says so.
    """
    scores: dict[str, int] = {}
    matches = state.current_turn_matches
    if matches:
        for match in matches:
            if match.active and match.guideline in agent.relations.by_id:
                scores[match.guideline] = match.score or MAX_SCORE
        return scores
    for guideline in agent.guidelines:
        if guideline.condition is None:
            scores[guideline.id] = MAX_SCORE
    if len(scores) < len(agent.guidelines) and not state.is_speculative:
        warnings.warn(
            f"guidelines were not matched for the customer's last message: of agent {agent.name!r} only those "
            "without a condition apply. Put a GuidelineMatcher before this node. It (or GuidelineMiddleware) "
            "belongs after what rewrites messages, such as a summary; messages need the reducer add_messages",
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

    Only conditions in code are evaluated again; what a model judged when the customer was asked still counts.
    """
    known_ids = agent.relations.by_id.keys() & set(granted_by)
    agreed_ids = agent.relations.find_dependencies(known_ids)  # those that they depend on were active as well
    matches = state.current_turn_matches
    refuted_ids = {match.guideline for match in matches if match.origin == "code" and not match.matched}
    scores = dict.fromkeys(agreed_ids - refuted_ids, MAX_SCORE)
    for match in matches:
        if match.matched:
            scores[match.guideline] = match.score or MAX_SCORE
    active_ids = agent.relations.resolve(scores).active
    return tuple(id for id in granted_by if id in active_ids)
