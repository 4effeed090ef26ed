"""The gate: one check that every proposed call passes, whichever strategy proposes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Agreement, PendingCall, ToolVerdict, VerdictKind
from arq_graph.agent.tool_model import are_same_values, find_unstorable
from arq_graph.nodes.argument_decisions import Argument
from arq_graph.nodes.grants import find_remaining_grants, get_granted_tools
from arq_graph.nodes.journey_run import STEP_IS_DONE, find_calls_of_open_steps
from arq_graph.nodes.messages import classify_result, find_unanswered_calls
from arq_graph.nodes.speaking.policies import ToolRules
from arq_graph.nodes.state_view import StateView
from arq_graph.nodes.takeover import is_hand_over
from arq_graph.nodes.tool_arguments import Problem, ToolSchema
from arq_graph.nodes.turn_records import select_verdicts
from arq_graph.reasoning.history import Line

NOT_AGREED = "it runs only once the customer says yes to it"


@dataclass(frozen=True)
class CallCheck:
    """The gate's decision on one call.

    Args:
        verdicts: One verdict on the call, or one on each missing or invalid argument; never empty.
    """

    verdicts: tuple[ToolVerdict, ...]

    @property
    def is_accepted(self) -> bool:
        """True if the call may be made now. One that an operator has to approve then goes to the node that asks."""
        return self.verdicts[0].kind == "run"

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as the tool completed them, without values that no checkpoint can hold."""
        return self.verdicts[0].arguments

    def annotate(self, **fields: Any) -> CallCheck:
        """Return the check with these fields in each verdict, such as the model's `rationale`."""
        return CallCheck(tuple(verdict.model_copy(update=fields) for verdict in self.verdicts))


@dataclass(frozen=True)
class Gate:
    """The check of calls at one point of a turn, under the policies' `rules` for tools."""

    agent: Agent
    state: StateView
    tools: Mapping[str, ToolSchema]
    rules: ToolRules = field(default_factory=ToolRules)

    @cached_property
    def granted(self) -> Mapping[str, tuple[str, ...]]:
        """The tools that may be called now, each with the active guidelines that grant it."""
        return get_granted_tools(self.agent, self.state)

    @cached_property
    def earlier_runs(self) -> tuple[ToolVerdict, ...]:
        """The verdicts on this turn's calls so far, as they were proposed; an operator may have changed one since."""
        verdicts = self.state.read_turn_records("tool_insights", ToolVerdict, self.state.turn_id)
        return tuple(select_verdicts(verdicts, "run"))

    @cached_property
    def failed_results(self) -> tuple[Line, ...]:
        """The results of this turn that report a failure."""
        return self._select_results("failed")

    @cached_property
    def empty_results(self) -> tuple[Line, ...]:
        """The results of this turn in which nothing was found."""
        return self._select_results("empty")

    def _select_results(self, outcome: str) -> tuple[Line, ...]:
        results = self.state.conversation.current_turn_results
        return tuple(line for line in results if classify_result(line) == outcome)

    def check(
        self,
        tool: ToolSchema,
        arguments: Mapping[str, Any],
        problems: Sequence[Problem] = (),
        *,
        repeat_is_justified: bool | None = None,
        limit_refusal: str | None = None,
        doubt: str = "",
    ) -> CallCheck:
        """Check a proposed call; the first check that fails decides.

        If a person has to agree to the call, the tool itself completes its arguments first.

        Args:
            tool: The tool.
            arguments: The arguments of the call.
            problems: The missing and the invalid arguments.
            repeat_is_justified: The model's answer if there is a reason to repeat a call; None if it wasn't asked.
            limit_refusal: Why the strategy's limit of steps forbids the call; None if it doesn't.
            doubt: Why the customer has to confirm one of its values; empty if they don't.
        """
        if tool.name not in self.granted:
            candidates = ", ".join(sorted(self.granted)) or "none"
            reason = (
                f"{tool.name} cannot be called now: no active guideline grants it; tools that can be called now: "
                f"{candidates}"
            )
            return self.make_check(tool, "declined", arguments, reason)
        if problems:
            return self.report_problems(tool, arguments, problems)
        refusal = (
            self._find_repetition_refusal(tool, arguments, repeat_is_justified)
            or self._find_step_refusal(tool, arguments)
            or limit_refusal
            or self.rules.find_refusal(tool.name)
        )
        if refusal:
            return self.make_check(tool, "declined", arguments, refusal)
        if is_hand_over(self.agent, tool.name):
            doubt = ""  # its reason is in the agent's own words, for a colleague
        if tool.name in self.agent.confirm or doubt:
            arguments, problems = tool.complete(arguments)
            if problems:
                return self.report_problems(tool, arguments, problems)
        if tool.name in self.agent.get_confirmed_tools("customer") or doubt:
            return self.make_check(tool, "confirm", arguments, doubt or NOT_AGREED)
        return self.make_check(tool, "run", arguments)

    def recheck_pending_calls(self, calls: Iterable[PendingCall]) -> tuple[ToolVerdict, ...]:
        """Return the verdicts on pending calls; those that could run are to be confirmed again."""
        verdicts: tuple[ToolVerdict, ...] = ()
        for call in calls:
            check = self.check_agreed_call(call)
            if check.is_accepted:
                check = check.annotate(kind="confirm", problem=NOT_AGREED)
            verdicts += check.verdicts
        return verdicts

    def check_agreed_call(self, call: PendingCall) -> CallCheck:
        """Check a call that the customer has agreed to.

        The model's judgements from when the customer was asked still count. Conditions that are functions, overrides,
        policies and the tool's own schema are checked again, since they may have changed.
        """
        tool = self.tools[call.tool]
        granted_by = find_remaining_grants(self.agent, self.state, call.granted_by)
        if tool.name not in self.agent.always_available and not granted_by:
            return self.make_check(tool, "declined", call.arguments, "no guideline grants it now")
        arguments, problems = tool.complete(call.arguments)
        if problems:
            return self.report_problems(tool, call.arguments, problems)
        if refusal := self.rules.find_refusal(tool.name):
            return self.make_check(tool, "declined", call.arguments, refusal, granted_by)
        if not are_same_values(arguments, call.arguments):  # the tool has changed since
            return self.make_check(tool, "confirm", arguments, NOT_AGREED, granted_by)
        return self.make_check(tool, "run", call.arguments, granted_by=granted_by)

    def make_check(
        self,
        tool: ToolSchema,
        kind: VerdictKind,
        arguments: Mapping[str, Any],
        problem: str = "",
        granted_by: tuple[str, ...] | None = None,
    ) -> CallCheck:
        """Return a decision on a call as a whole; `granted_by` is None for the guidelines that grant the tool now."""
        return CallCheck((self._make_verdict(tool, kind, arguments, problem, granted_by=granted_by),))

    def report_problems(
        self, tool: ToolSchema, arguments: Mapping[str, Any], problems: Iterable[Problem]
    ) -> CallCheck:
        """Return the decision on a call with missing or invalid arguments."""
        verdicts: list[ToolVerdict] = []
        for problem in problems:
            verdict = self._make_verdict(tool, problem.kind, arguments, problem.message, problem.argument)
            verdicts.append(verdict)
        return CallCheck(tuple(verdicts))

    def _make_verdict(
        self,
        tool: ToolSchema,
        kind: VerdictKind,
        arguments: Mapping[str, Any],
        problem: str,
        argument: Argument | None = None,
        granted_by: tuple[str, ...] | None = None,
    ) -> ToolVerdict:
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
            granted_by=granted_by,
        )

    def _find_repetition_refusal(
        self, tool: ToolSchema, arguments: Mapping[str, Any], is_justified: bool | None
    ) -> str | None:
        """Return why a call must not repeat one of this turn; None if it doesn't, or if there is a reason to."""
        if is_justified:
            return None
        same_results = self._find_same_results(tool, arguments)
        if not same_results:
            return self._find_replacement_refusal(tool, arguments)
        was_model_asked = is_justified is not None
        if not was_model_asked and self._may_be_repeated(same_results):
            return None
        last_result = same_results[-1]
        if last_result in self.failed_results:
            return f"the same call has failed already in this turn ({last_result.id})"
        return f"the same call was already made in this turn ({last_result.id})"

    def _may_be_repeated(self, same_results: Sequence[Line]) -> bool:
        """Return True if a call failed once, or if another one was made since, which may have changed its result."""
        last_result = same_results[-1]
        if last_result in self.failed_results:
            return len(same_results) == 1
        return last_result is not self.state.conversation.current_turn_results[-1]

    def _find_replacement_refusal(self, tool: ToolSchema, arguments: Mapping[str, Any]) -> str | None:
        """Return a refusal if this turn proposed the same call and it has no result: an operator has edited it."""
        for verdict in self.earlier_runs:
            if verdict.tool == tool.name and tool.is_repetition(arguments, verdict.arguments):
                return (
                    "the same call was proposed already in this turn, and another one was made in its place"
                )
        return None

    def _find_step_refusal(self, tool: ToolSchema, arguments: Mapping[str, Any]) -> str | None:
        """Return a refusal if the call has done each journey step that grants it, and these are only open again."""
        granted_by = self.granted[tool.name]
        earlier_calls = find_calls_of_open_steps(self.state)
        for id in granted_by:
            if id not in earlier_calls or not tool.is_repetition(arguments, earlier_calls[id]):
                return None
        if not granted_by:
            return None
        return STEP_IS_DONE

    def _find_same_results(self, tool: ToolSchema, arguments: Mapping[str, Any]) -> list[Line]:
        """Return the results of the same call in this turn, the newest last."""
        same_results: list[Line] = []
        for line in self.state.conversation.current_turn_results:
            call = line.call
            if call and call["name"] == tool.name and tool.is_repetition(arguments, call["args"]):
                same_results.append(line)
        return same_results


def find_execution_refusal(agent: Agent, state: StateView, call: Mapping[str, Any]) -> str | None:
    """Return why a call must not run, whoever made it; None if it may."""
    agreed_call = _find_agreed_call(state, call["id"])
    if agreed_call is None and call["name"] in agent.confirm:
        return "this call needs an agreement, and nobody has agreed to it in this turn"
    if agreed_call is not None:
        if (agreed_call.tool, agreed_call.arguments) != (call["name"], call["args"]):
            return "this is not the call that was agreed to"
        if not _is_about_to_run(state, agreed_call):
            return "this call has run already: a yes allows one call"
        if find_remaining_grants(agent, state, agreed_call.granted_by):
            return None
    if call["name"] in get_granted_tools(agent, state):
        return None
    return "this tool cannot be called now: no active guideline grants it"


def _find_agreed_call(state: StateView, tool_call_id: str | None) -> PendingCall | None:
    """Return the call with this id that was agreed to in this turn; other turns may have calls with the same id."""
    for agreement in state.read_records("agreements", Agreement):
        if agreement.answer_message_id != state.turn_id:
            continue
        for call in agreement.calls:
            if call.tool_call_id and call.tool_call_id == tool_call_id:
                return call
    return None


def _is_about_to_run(state: StateView, agreed_call: PendingCall) -> bool:
    """Return True if the agreed call is in the message whose calls run now; other messages may repeat its id."""
    for placed_call in find_unanswered_calls(state.messages):
        if placed_call.call["id"] != agreed_call.tool_call_id:
            continue
        if agreed_call.message_id is not None:
            return placed_call.message.id == agreed_call.message_id
        # Without an id of the message, the call runs if no call with its id has a result.
        answered_ids = {getattr(message, "tool_call_id", None) for message in state.messages}
        return agreed_call.tool_call_id not in answered_ids
    return False
