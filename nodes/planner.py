"""Planning: one action at a time, each call checked by the gate (Pre-Act, 3.1 and Appendices D, E; ReAct)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Unpack

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Plan, PlanChange, PlannedCall, PlanStep, Progress
from arq_graph.errors import require_count
from arq_graph.nodes.blueprint_node import Steps
from arq_graph.nodes.channels import Update
from arq_graph.nodes.confirmation import (
    AgreementOutcome,
    ask_for_confirmation,
    find_question_conflict,
    make_call,
)
from arq_graph.nodes.current_turn import count_tool_rounds, current_turn_plan
from arq_graph.nodes.events import PlanMade
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.plan_schema import FINAL_ANSWER, pre_act_blueprint, react_blueprint
from arq_graph.nodes.proposed_calls import (
    DecisionContext,
    Proposal,
    asked_for,
    chosen,
    get_property_name,
    merge_insights,
    read_call,
    refusals,
)
from arq_graph.nodes.spec_sections import describe_tool, describe_variables
from arq_graph.nodes.strategy import Strategy, StrategyOptions
from arq_graph.nodes.violations import find_leaks, split_words
from arq_graph.reasoning.answer import Answer, Complaint
from arq_graph.reasoning.reasoner import ModelLike

Fault = tuple[str, str, bool]
"""Where in an answer something is wrong, what is wrong there, and whether its action is therefore not taken."""


class PlanningContext(DecisionContext):
    """What a planner's answers are held against: this turn's plan so far, and the results, those new to it apart."""

    def __init__(self, gate: Gate, outcome: AgreementOutcome, max_steps: int) -> None:
        super().__init__(gate, outcome)
        self.plan = current_turn_plan(gate.state)
        self.steps_left = max(0, max_steps - count_tool_rounds(gate.state))
        self.results = gate.conversation.current_turn_results
        self.new_results = self.results[self.plan.result_count if self.plan else 0 :]
        self.has_failed = any(line in gate.failed_results for line in self.new_results)


class Planner(Strategy):
    """What the planners have in common.

    A subclass names its prompt, its worked examples and its blueprint, and says what of an answer is kept (`record`).
    """

    module = "planner"
    agent_state_channels = (*Strategy.agent_state_channels, "plan", "progress")

    def __init__(
        self,
        model: ModelLike,
        agent: Agent,
        *,
        max_steps: int = 8,
        draft: bool = False,
        **settings: Unpack[StrategyOptions],
    ) -> None:
        self.max_steps = require_count("max_steps", max_steps)
        self.draft = draft
        super().__init__(model, agent, **settings)
        tools, confirmed = list(self.tools.values()), bool(agent.confirmed_by("customer"))
        self.blueprint = self.example_blueprint(tools, confirmed=confirmed)
        self.by_property = {
            get_property_name(name, (FINAL_ANSWER,)): tool for name, tool in self.tools.items()
        }
        shown = [describe_tool(agent, tool, key) for key, tool in self.by_property.items()]
        self.head = self.render_head(guided=bool(agent.guidelines), tools=shown)

    @abstractmethod
    def record(self, value: Any, context: PlanningContext, tool: str | None) -> dict[str, Any]:
        """What `Plan` keeps of an answer besides its action; `tool` is the one that it calls."""

    def faults(self, value: Any, context: PlanningContext, tool: str | None) -> Iterator[Fault]:
        """What is wrong with what stands around the action."""
        yield from ()

    def decide(self, gate: Gate, outcome: AgreementOutcome) -> Steps:
        """Make or refine the plan of this turn, and take one action."""
        context = PlanningContext(gate, outcome, self.max_steps)

        def check(value: Any) -> list[Complaint]:
            context.still_wanted = getattr(value, "still_wanted", None) or ()
            action = self._action(value, context)
            found = list(self.faults(value, context, action.tool))
            refusals = (*action.refusals, *((place, why) for place, why, blocks in found if blocks))
            context.checked.append(replace(action, refusals=refusals))
            wrong = [*((place, why) for place, why, blocks in found if not blocks), *refusals]
            return [Complaint(type(value).__name__, place, why) for place, why in wrong]

        (answer,) = yield from self.ask_questions(
            self.make_question(gate.conversation, self._tail(context), check)
        )
        return self._update(context, answer)

    def _action(self, value: Any, context: PlanningContext) -> Proposal:
        key, said = chosen(value.action)
        if key == FINAL_ANSWER:
            waiting = context.waiting
            wrong = [] if said.answer.strip() or waiting else ["it is empty"]
            if not self.draft:
                gate, ids = context.gate, context.outcome.pending
                facts = self.collect_facts(gate.conversation, describe_variables(self.agent, gate.state), ids)
                wrong += find_leaks(said.answer, facts)
                wrong += [why] if (why := find_question_conflict(said.answer, waiting)) else []
            refused = tuple((f"action.{key}.answer", why) for why in wrong)
            asked = tuple(asked_for(said.asks_for, context.gate))
            return Proposal(said.answer, refusals=refused, insights=asked)
        tool = self.by_property[key]
        arguments, problems, doubts = read_call(tool, said)
        verdict = context.gate.check(
            tool,
            arguments,
            problems,
            objection="" if context.steps_left else "no step is left in this turn: give the final answer",
            doubt="; ".join(doubts.values()),
        )
        expected = str(getattr(said, "expected", ""))
        return Proposal(
            call=PlannedCall(tool=tool.name, arguments=arguments, expected=expected),
            refusals=tuple(
                (f"action.{key}{at}", why) for at, why in refusals(tool, verdict, "the final answer")
            ),
            insights=tuple(each.model_copy(update={"rationale": expected}) for each in verdict),
        )

    def _tail(self, context: PlanningContext) -> dict[str, Any]:
        gate = context.gate
        progress = gate.state.read_record("progress", Progress)
        milestones = [each.model_dump(exclude_none=True) for each in progress.next] if progress else []
        counts, further = {"steps_left": context.steps_left}, {"next_milestones": milestones}
        tail = {**self.describe_context(gate, context.outcome, counts, further), "plan": None}
        if plan := context.plan:
            shown: dict[str, Any] = {
                "version": plan.version,
                "previous_steps": plan.previous_steps,
                "steps": [step.model_dump(exclude_defaults=True) for step in plan.steps],
                "call": plan.call and plan.call.model_dump(exclude_defaults=True),
                "told_by": [line.id for line in context.new_results],
                "changes": [change.model_dump() for change in plan.changes],
            }
            tail["plan"] = {name: value for name, value in shown.items() if value or name == "steps"}
        return tail

    def _update(self, context: PlanningContext, answer: Answer[Any]) -> Update:
        gate, before, proposed = context.gate, context.plan, context.checked[-1]
        is_refused = bool(proposed.refusals)
        plan = Plan(
            turn=gate.state.turn,
            version=before.version + 1 if before else 1,
            call=None if is_refused else proposed.call,
            final_answer=None if is_refused or proposed.call else proposed.text,
            result_count=len(context.results),
            faults=tuple(map(str, answer.complaints)),
            **self.record(answer.value, context, proposed.tool),
        )
        # What waits is put once the turn ends, if it is still proposed then.
        waiting = [] if plan.call else context.waiting
        made = proposed.insights if plan.call else ()
        decided = merge_insights(context.outcome, context.insights, made, waiting, asks=plan.call is None)
        gate.state.emit(PlanMade(plan=plan, decisions=tuple(decided)))
        update: Update = {"plan": gate.state.replace_records("plan", [plan])}
        if plan.call:
            calling = self.make_call_message([make_call(plan.call.tool, plan.call.arguments)])
            return {**update, **self.make_update(gate, decided, [calling])}
        if self.draft:
            return {**update, **self.make_update(gate, decided)}
        content = plan.final_answer or ("" if waiting else self.agent.fallback)
        reply, agreements, asked = ask_for_confirmation(self.agent, gate.state, content, waiting)
        gate.state.emit(asked)
        return {**update, **agreements, **self.make_update(gate, decided, [reply])}


class PreActPlanner(Planner):
    """Plan every step up to the final answer with its reason, and take the first; refine it after each result.

    Writes the plan to `plan`, and its action: a message with one tool call, or the final answer. A new customer
    message starts a new plan. A result that contradicts the plan (a failure, an empty result, another branch)
    changes it, and the plan says what changed and why. A call that failed is made once more at most in that turn,
    and a plan that goes on as if it had not failed is refused. What is refused is asked for again, within the
    reasoner's `max_candidates`; after that the turn ends with the agent's `fallback`, or without a draft.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification. Its tools are gated by its active guidelines, as for `ToolCaller`.
        max_steps: How many calls one turn may make; after them only the final answer is left.
        draft: Keep the final answer in the plan, where `MessageReviser` finds it as its draft, in place of sending
            it as a message.
        **settings: `agrees`, `template`, `temperature` (0.05) and the others, as for `ToolCaller`.

    Raises:
        InputError: `max_steps` is below 1. What running raises is said at `BlueprintNode`.
    """

    files = "pre_act_planner"
    example_blueprint = staticmethod(pre_act_blueprint)

    def faults(self, value: Any, context: PlanningContext, tool: str | None) -> Iterator[Fault]:
        """A plan that is not one: its first step is the action, its last the final answer, a change is told."""
        steps, last = value.next_steps, len(value.next_steps) - 1
        if steps[0].tool != tool:
            why = f"the first step is the action taken now, {tool or FINAL_ANSWER}"
            yield "next_steps[0].tool", why, False
        for number, step in enumerate(steps):
            if number == last and step.tool is not None:
                yield f"next_steps[{number}].tool", "the last step is the final answer: null", False
            elif number < last and step.tool is None:
                only = "only the last step is the final answer; this one needs its tool"
                yield f"next_steps[{number}].tool", only, False
        if context.results and not (value.previous_steps or "").strip():
            missing = "a tool ran for this request: sum up what was done and what it told"
            yield "previous_steps", missing, False
        before = context.plan
        if before is None or not context.new_results or _observation(value, context) == "as_expected":
            return
        if value.change is None:
            yield "change", "the result was not as expected: say what changes in the plan, and why", False
        left = [(step.tool, split_words(step.description)) for step in before.steps[1:]]
        if left == [(step.tool, split_words(step.step)) for step in steps]:
            ids = ", ".join(line.id for line in context.new_results)
            told = "the result was not as expected: say what the answer now tells instead"
            same = f"the plan is the one from before, though {ids} was not as expected: make another one"
            yield "next_steps", same if tool else told, tool is not None

    def record(self, value: Any, context: PlanningContext, tool: str | None) -> dict[str, Any]:
        """The steps still to come, what was done, and what changed."""
        before = context.plan
        changes = before.changes if before else ()
        if before and value.change is not None:
            changes += (PlanChange(version=before.version + 1, what=value.change.what, why=value.change.why),)
        return {
            "previous_steps": value.previous_steps if context.results else None,
            "steps": [PlanStep(description=s.step, reason=s.reason, tool=s.tool) for s in value.next_steps],
            "observation": _observation(value, context),
            "changes": changes,
        }


def _observation(value: Any, context: PlanningContext) -> Any:
    if not context.results:
        return None
    return "failed" if context.has_failed else value.observation or "as_expected"


class ReActPlanner(Planner):
    """Think about the newest message or result and take one action, without a plan: what Pre-Act is held against.

    Arguments, errors and what it writes are those of `PreActPlanner`; its plan is the one step it takes, with the
    thought as the reason.
    """

    files = "react_planner"
    example_blueprint = staticmethod(react_blueprint)

    def record(self, value: Any, context: PlanningContext, tool: str | None) -> dict[str, Any]:
        """The step that is taken, and what was thought and done before it, as ReAct keeps its trace."""
        before = context.plan
        trace = [before.previous_steps] if before and before.previous_steps else []
        trace += [f"{step.reason} So: {step.description}." for step in (before.steps if before else ())]
        does = f"call {tool}" if tool else "give the final answer"
        return {
            "previous_steps": "\n".join(trace) or None,
            "steps": [PlanStep(description=does, reason=value.thought, tool=tool)],
            "observation": "failed" if context.has_failed else None,
        }
