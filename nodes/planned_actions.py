"""What code decides about the action of a planner's answer: whether it may be taken, and if not, what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from arq_graph.agent.state import Plan, PlannedCall, ToolInsight
from arq_graph.nodes.confirmation import NOT_AGREED, as_put, is_affirmed
from arq_graph.nodes.decisions import call_key, told
from arq_graph.nodes.outcomes import outcome_of
from arq_graph.nodes.plans import FINAL_ANSWER, PlannerBlueprint
from arq_graph.nodes.tool_arguments import Argument, Problem, ToolArguments
from arq_graph.nodes.violations import PromptFacts, leaks
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.conversation import Conversation, Line

_DOUBTFUL = {
    "another_request": "was stated for another request",
    "inferred": "is inferred",
}


@dataclass(frozen=True)
class Situation:
    """What a planner's answer is held against.

    Args:
        conversation: The thread.
        callable: Names of the tools that may be called now.
        pending: Calls that the last reply put to the customer.
        run: Calls that were decided on earlier in this turn, as they were proposed.
        plan: This turn's plan so far.
        steps_left: How many more calls this turn may make.
        facts: What a final answer must not give away; None where a later step sees to that.
    """

    conversation: Conversation
    callable: frozenset[str]
    pending: Sequence[ToolInsight]
    run: Sequence[ToolInsight]
    plan: Plan | None
    steps_left: int
    facts: PromptFacts | None

    @cached_property
    def new_results(self) -> tuple[Line, ...]:
        """The results that the plan so far did not know."""
        return self.conversation.results[self.plan.results if self.plan else 0 :]

    @cached_property
    def failed(self) -> tuple[Line, ...]:
        """The results of this turn that tell of a failure."""
        return tuple(line for line in self.conversation.results if outcome_of(line) == "failed")

    def repeats(self, call: PlannedCall, tool: ToolArguments) -> str | None:
        """Why a call would only repeat one of this turn; None if it does not.

        Args:
            call: The call.
            tool: Its tool.
        """

        def key_of(name: str, arguments: Mapping[str, Any]) -> str:
            return call_key(name, tool.settled(arguments) if name == tool.name else arguments)

        key = key_of(call.tool, call.arguments)
        made = [
            (line, key_of(line.call["name"], line.call["args"]))
            for line in self.conversation.results
            if line.call
        ]
        for line, before in made:
            if before == key and line in self.failed:
                return f"the same call has failed already ({line.id})"
        if made and made[-1][1] == key:
            return f"the same call was just made ({made[-1][0].id}), and nothing has changed since"
        proposed = {key_of(insight.tool, insight.arguments) for insight in self.run}
        if key in proposed and key not in {before for _, before in made}:
            return "the same call was proposed already, and another one was made in its place"
        return None


@dataclass(frozen=True)
class Judged:
    """What became of one answer's action.

    Args:
        call: The call that it is, if it is one.
        answer: The final answer that it is, if it is one.
        refusals: Why the action cannot be taken; none if it can.
        insights: What the reply has to know about it.
        asks_to_confirm: Tools about whose call the final answer asks the customer.
    """

    call: PlannedCall | None = None
    answer: str | None = None
    refusals: tuple[Complaint, ...] = ()
    insights: tuple[ToolInsight, ...] = ()
    asks_to_confirm: frozenset[str] = frozenset()


def judge_action(
    value: Any, planner: PlannerBlueprint, confirmed: frozenset[str], situation: Situation
) -> Judged:
    """Hold the action of an answer against the gate, the tool's schema and what has happened in this turn.

    Args:
        value: The answer.
        planner: The blueprint that it answers.
        confirmed: Names of the tools whose calls the customer has to agree to.
        situation: What it is held against.
    """
    name = type(value).__name__
    key = next(iter(type(value.action).model_fields))
    chosen = getattr(value.action, key)
    if key == FINAL_ANSWER:
        return _judge_answer(name, chosen, planner, situation)
    return _CallJudge(name, key, planner.tools[key], situation).judge(
        chosen, needs_agreement=planner.tools[key].name in confirmed
    )


def _judge_answer(name: str, chosen: Any, planner: PlannerBlueprint, situation: Situation) -> Judged:
    answer = str(chosen.answer)
    wrong = [] if answer.strip() else ["it is empty"]
    if situation.facts is not None:
        wrong += leaks(answer, situation.facts)
    tools = {tool.name: tool for tool in planner.tools.values() if tool.name in situation.callable}
    asked = [entry for entry in chosen.asks_for if entry.tool in tools]
    missing = [
        ToolInsight(
            turn=situation.conversation.turn,
            tool=entry.tool,
            kind="missing",
            argument=argument.name,
            description=argument.description,
        )
        for entry in asked
        for argument in tools[entry.tool].arguments
        if entry.argument in (argument.name, argument.key)
    ]
    return Judged(
        answer=answer,
        refusals=tuple(Complaint(name, f"action.{FINAL_ANSWER}.answer", message) for message in wrong),
        insights=tuple(missing),
        asks_to_confirm=frozenset(entry.tool for entry in asked if entry.argument is None),
    )


@dataclass(frozen=True)
class _CallJudge:
    name: str
    key: str
    tool: ToolArguments
    situation: Situation

    def judge(self, chosen: Any, *, needs_agreement: bool) -> Judged:
        """Decide on a call; the first thing that is wrong with it refuses it."""
        arguments, problems = self._read(chosen)
        expected = str(getattr(chosen, "expected", ""))
        call = PlannedCall(tool=self.tool.name, arguments=arguments, expected=expected)
        insight = ToolInsight(
            turn=self.situation.conversation.turn,
            tool=self.tool.name,
            kind="declined",
            arguments=arguments,
            rationale=expected,
        )
        put = as_put(self.situation.pending, insight, self.tool.settled)
        affirmed = needs_agreement and is_affirmed(insight, put, chosen, self.situation.conversation)
        if refusal := self._refusal(call):
            return self._refused(call, insight.model_copy(update={"problem": refusal}), refusal)
        if problems:
            return self._incomplete(call, insight, problems)
        if needs_agreement and not affirmed:
            waits = insight.model_copy(update={"problem": NOT_AGREED, "kind": "confirm"})
            question = (
                f"{NOT_AGREED}: put this call to the customer in the final answer, and name it in asks_for"
            )
            return self._refused(call, waits, question)
        if not affirmed and (doubts := list(self._doubts(chosen))):
            return self._doubtful(call, insight, doubts)
        return Judged(call=call, insights=(insight.model_copy(update={"kind": "run"}),))

    def _read(self, chosen: Any) -> tuple[dict[str, Any], list[Problem]]:
        if not self.tool.arguments:
            return {}, self.tool.validate({})
        arguments, problems = self.tool.read(chosen.arguments)
        for argument, decision in self._given(chosen):
            if decision.basis == "nobody" and argument.name in arguments:
                del arguments[argument.name]
                if argument.required:
                    problems.append(Problem(argument, "missing", "nobody gave it"))
        return arguments, problems

    def _given(self, chosen: Any) -> Iterator[tuple[Argument, Any]]:
        for argument in self.tool.arguments:
            decision = getattr(chosen.arguments, argument.key)
            if decision.given:
                yield argument, decision

    def _doubts(self, chosen: Any) -> Iterator[Problem]:
        """Values that the customer has to confirm before they are used."""
        for argument, decision in self._given(chosen) if self.tool.arguments else ():
            if why := _DOUBTFUL.get(decision.basis):
                yield Problem(argument, "doubtful", f"{_quoted(decision.value)} {why}")

    def _refusal(self, call: PlannedCall) -> str | None:
        if self.situation.steps_left < 1:
            return "no step is left in this turn: give the final answer"
        if call.tool not in self.situation.callable:
            now = ", ".join(sorted(self.situation.callable)) or "none"
            return f"{call.tool} cannot be called now; the tools that can: {now}"
        if repeated := self.situation.repeats(call, self.tool):
            return f"{repeated}: take another way, or say in the final answer what is not possible"
        return None

    def _incomplete(self, call: PlannedCall, insight: ToolInsight, problems: Sequence[Problem]) -> Judged:
        refusals = []
        for problem in problems:
            place = f"arguments.{problem.argument.key}" if problem.argument else "arguments"
            what = f"it is {problem.kind}" + (f" ({problem.message})" if problem.message else "")
            refusals.append(self._complaint(place, f"{what}: ask the customer for it in the final answer"))
        insights = tuple(insight.model_copy(update=told(problem, self.tool)) for problem in problems)
        return Judged(call=call, refusals=tuple(refusals), insights=insights)

    def _doubtful(self, call: PlannedCall, insight: ToolInsight, doubts: Sequence[Problem]) -> Judged:
        why = "; ".join(problem.message for problem in doubts)
        refusals = [
            self._complaint(
                f"arguments.{problem.argument.key}" if problem.argument else "",
                f"{problem.message}: ask in the final answer whether it is meant, and name this tool in asks_for",
            )
            for problem in doubts
        ]
        waits = insight.model_copy(update={"problem": why, "kind": "confirm"})
        return Judged(call=call, refusals=tuple(refusals), insights=(waits,))

    def _refused(self, call: PlannedCall, insight: ToolInsight, why: str) -> Judged:
        return Judged(call=call, refusals=(self._complaint("", why),), insights=(insight,))

    def _complaint(self, place: str, message: str) -> Complaint:
        return Complaint(self.name, ".".join(part for part in ("action", self.key, place) if part), message)


def shown_plan(plan: Plan, situation: Situation) -> Mapping[str, Any]:
    """This turn's plan so far as the prompt shows it, with the ids of what its call has told."""
    shown: dict[str, Any] = {"version": plan.version}
    if plan.previous_steps:
        shown["previous_steps"] = plan.previous_steps
    shown["steps"] = [step.model_dump(exclude_defaults=True) for step in plan.steps]
    if plan.call:
        shown["call"] = plan.call.model_dump(exclude_defaults=True)
    if situation.new_results:
        shown["told_by"] = [line.id for line in situation.new_results]
    if plan.changes:
        shown["changes"] = [change.model_dump() for change in plan.changes]
    return shown


def _quoted(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:80]}…"
