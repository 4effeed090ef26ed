"""The gate: one check that every proposed call passes, whichever strategy proposes it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from arq_graph.agent.spec import Agent, Guideline
from arq_graph.agent.state import Agreement, PendingCall, ToolInsight
from arq_graph.nodes.channels import StateView
from arq_graph.nodes.current_turn import current_turn_matches
from arq_graph.nodes.messages import classify_result
from arq_graph.nodes.tool_arguments import Argument, Problem, ToolArguments
from arq_graph.reasoning.conversation import Conversation, Line

NOT_AGREED = "it runs only once the customer says yes to it"


@dataclass(frozen=True)
class Gate:
    """What calls are held against at one point of a turn.

    A verdict is what is kept about the call: one insight, or one for each argument that is missing or invalid.
    """

    agent: Agent
    state: StateView
    conversation: Conversation
    tools: Mapping[str, ToolArguments]

    @cached_property
    def granted(self) -> Mapping[str, tuple[str, ...]]:
        """The tools that may be called now, each with the active guidelines that grant it."""
        return get_granted_tools(self.agent, self.state)

    @cached_property
    def previous_calls(self) -> tuple[ToolInsight, ...]:
        """The calls of this turn so far, as they were proposed; an operator may have changed one since."""
        insights = self.state.read_turn_records("tool_insights", ToolInsight, self.state.turn)
        return tuple(each for each in insights if each.kind == "run")

    @cached_property
    def failed_results(self) -> tuple[Line, ...]:
        """The results of this turn that tell of a failure."""
        return tuple(
            line for line in self.conversation.current_turn_results if classify_result(line) == "failed"
        )

    def check(
        self,
        tool: ToolArguments,
        arguments: Mapping[str, Any],
        problems: Sequence[Problem] = (),
        *,
        repeat_is_justified: bool | None = None,
        objection: str = "",
        doubt: str = "",
    ) -> list[ToolInsight]:
        """The verdict on a proposed call; the first thing that is wrong with it decides."""
        if tool.name not in self.granted:
            now = ", ".join(sorted(self.granted)) or "none"
            why = (
                f"{tool.name} cannot be called now: no active guideline grants it; the tools that can: {now}"
            )
            return [self.make_insight(tool, "declined", arguments, why)]
        if problems:
            return self.report_problems(tool, arguments, problems)
        if why := self._repetition(tool, arguments, repeat_is_justified) or objection:
            return [self.make_insight(tool, "declined", arguments, why)]
        if tool.name in self.agent.confirmed_by("customer") or doubt:
            return [self.make_insight(tool, "confirm", arguments, doubt or NOT_AGREED)]
        return [self.make_insight(tool, "run", arguments)]

    def check_agreed(self, call: PendingCall, objection: str = "") -> list[ToolInsight]:
        """The verdict on a call that the customer has agreed to.

        What a model judged when it was put stands. Conditions that are functions, overrides, policies and the tool's
        own schema may have changed since.
        """
        tool = self.tools[call.tool]
        by = find_remaining_grants(self.agent, self.state, call.granted_by)
        if tool.name not in self.agent.always_available and not by:
            return [self.make_insight(tool, "declined", call.arguments, "no guideline grants it any more")]
        if problems := tool.validate(call.arguments):
            return self.report_problems(tool, call.arguments, problems)
        kind = "declined" if objection else "run"
        return [self.make_insight(tool, kind, call.arguments, objection, granted_by=by)]

    def make_insight(
        self,
        tool: ToolArguments,
        kind: Any,
        arguments: Mapping[str, Any],
        problem: str = "",
        argument: Argument | None = None,
        **further: Any,
    ) -> ToolInsight:
        """What is kept about a call, or about one of its arguments."""
        about = {
            "argument": argument and argument.name,
            "description": argument.description if argument else tool.tool.description,
            "granted_by": self.granted.get(tool.name, ()),
            **further,
        }
        turn, given = self.state.turn, dict(arguments)
        return ToolInsight(turn=turn, tool=tool.name, kind=kind, problem=problem, arguments=given, **about)

    def report_problems(
        self, tool: ToolArguments, arguments: Mapping[str, Any], problems: Sequence[Problem]
    ) -> list[ToolInsight]:
        """What is kept about a call whose arguments are missing or invalid."""
        return [
            self.make_insight(tool, each.kind, arguments, each.message, each.argument) for each in problems
        ]

    def _repetition(self, tool: ToolArguments, arguments: Mapping[str, Any], justified: bool | None) -> str:
        """Why a call only repeats one of this turn; empty if it does not, or if there is a reason to."""
        key = tool.make_key(arguments)
        ran = [(line, line.call) for line in self.conversation.current_turn_results if line.call]
        same = [
            line for line, call in ran if call["name"] == tool.name and tool.make_key(call["args"]) == key
        ]
        proposed = any(
            each.tool == tool.name and tool.make_key(each.arguments) == key for each in self.previous_calls
        )
        if justified or not (same or proposed):
            return ""
        if not same:
            return "the same call was proposed already in this turn, and another one was made in its place"
        if same[-1] in self.failed_results:
            if justified is None and len(same) == 1:  # once more, as after a time-out
                return ""
            return f"the same call has failed already in this turn ({same[-1].id})"
        if justified is None and same[-1] is not ran[-1][0]:
            return ""
        return f"the same call was already made in this turn ({same[-1].id})"


def active_guidelines(agent: Agent, state: Any, *, messages_key: str = "messages") -> list[Guideline]:
    """The guidelines that are active in the current turn of a state, for a prompt or a route of your own.

    Args:
        agent: The specification.
        state: A graph's state, as a node gets it.
        messages_key: Channel of the messages.

    Raises:
        StateError: A channel of this library holds something that it did not write.
    """
    scores = get_active_scores(agent, StateView(state, messages_key, agent=agent.name))
    return [agent.guideline(id) for id in scores]


def get_active_scores(agent: Agent, state: StateView) -> dict[str, int]:
    """Ids of the guidelines active in this turn, with their scores.

    Where guidelines were not matched in this turn, only those that are always true count, with a warning.
    """
    matches = current_turn_matches(state)
    if not matches:
        if not state.is_ahead and any(guideline.condition is not None for guideline in agent.guidelines):
            warnings.warn(
                f"guidelines were not matched for the customer's last message: of agent {agent.name!r} only those "
                "without a condition apply. Put a GuidelineMatcher before this node. It (or GuidelineMiddleware) "
                "belongs behind what rewrites messages, such as a summary; messages need the reducer add_messages",
                stacklevel=1,  # one place, so that Python tells it once and not in every step
            )
        return {guideline.id: 10 for guideline in agent.guidelines if guideline.condition is None}
    known = {guideline.id for guideline in agent.guidelines}
    return {each.guideline: each.score or 10 for each in matches if each.active and each.guideline in known}


def get_granted_tools(agent: Agent, state: StateView) -> dict[str, tuple[str, ...]]:
    """The tools that may be called in this turn, each with the active guidelines that grant it."""
    active = get_active_scores(agent, state)
    granting = {name: tuple(id for id in agent.grants[name] if id in active) for name in agent.toolbox}
    return {name: ids for name, ids in granting.items() if ids or name in agent.always_available}


def find_remaining_grants(agent: Agent, state: StateView, granted_by: Sequence[str]) -> tuple[str, ...]:
    """Which of the guidelines that granted a call when it was put still do, whatever is judged of the yes itself."""
    matches = current_turn_matches(state)
    given = {guideline.id for guideline in agent.guidelines}.intersection(granted_by)
    while more := {needed for id in given for needed in agent.guideline(id).depends_on} - given:
        given |= more  # what it rests on was active, too
    refuted = {each.guideline for each in matches if each.origin == "code" and not each.matched}
    scores = dict.fromkeys(given - refuted, 10)
    scores |= {each.guideline: each.score or 10 for each in matches if each.matched}
    active = agent.relations.resolve(scores).active
    return tuple(id for id in granted_by if id in active)


def refusal(agent: Agent, state: StateView, call: Mapping[str, Any]) -> str | None:
    """Why a call must not run, whoever wrote it into the messages; None if it may."""
    name = call["name"]
    agreed = [each for record in state.read_records("agreements", Agreement) for each in record.calls]
    spent = next((each for each in agreed if each.tool_call_id and each.tool_call_id == call["id"]), None)
    if spent is None:
        if name in agent.confirm:
            return "this call needs an agreement that nobody has given to it"
    elif (spent.tool, spent.arguments) != (name, call["args"]):
        return "this is not the call that was agreed to"
    elif any(getattr(each, "tool_call_id", None) == spent.tool_call_id for each in state.messages):
        return "this call has run already: one yes is for one call"
    elif find_remaining_grants(agent, state, spent.granted_by):
        return None
    if name in get_granted_tools(agent, state):
        return None
    return "this tool cannot be called now: no active guideline grants it"
