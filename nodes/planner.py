"""Planning: one action at a time, each call checked by the gate (Pre-Act, 3.1 and Appendices D, E; ReAct)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Unpack

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import PendingCall, Plan, PlanChange, PlannedCall, PlanStep, Progress, ToolVerdict
from arq_graph.errors import require_count
from arq_graph.nodes.agent_node import describe_tool, require_free_composition
from arq_graph.nodes.agreement import AgreementOutcome
from arq_graph.nodes.blueprint_node import NodeSteps
from arq_graph.nodes.confirmation import find_preamble_problem
from arq_graph.nodes.events import PlanMade
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.messages import count_tool_rounds, list_ids, make_tool_call
from arq_graph.nodes.plan_schema import FINAL_ANSWER, make_pre_act_blueprint, make_react_blueprint
from arq_graph.nodes.proposed_calls import (
    DecisionContext,
    Objection,
    Proposal,
    explain_refusal,
    find_requested_arguments,
    map_properties,
    merge_verdicts,
    parse_call,
    read_choice,
)
from arq_graph.nodes.strategy import Strategy, StrategyNodeSettings
from arq_graph.nodes.turn_records import read_current_plan
from arq_graph.nodes.violations import collect_references, find_leaks
from arq_graph.reasoning.answer import Answer
from arq_graph.reasoning.blueprint import ARQ
from arq_graph.reasoning.reasoner import ModelLike
from arq_graph.reasoning.sections import split_words

NO_STEP_LEFT = "no step is left in this turn: give the final answer"


class PlanningContext(DecisionContext[Proposal]):
    """The state that a planner's answers are checked against: this turn's plan so far, and the results.

    `max_steps` limits the calls of a turn; the prompt calls the rest of them `steps_left`.
    """

    def __init__(self, gate: Gate, agreement_outcome: AgreementOutcome, max_steps: int) -> None:
        super().__init__(gate, agreement_outcome)
        self.current_plan = read_current_plan(gate.state)
        self.calls_left = max(0, max_steps - count_tool_rounds(gate.state))
        self.results = gate.state.conversation.current_turn_results
        self.new_results = self.results
        self.version = 1
        if self.current_plan:
            self.new_results = self.results[self.current_plan.result_count :]
            self.version = self.current_plan.version + 1
        self.has_new_failure = any(line in gate.failed_results for line in self.new_results)


class Planner(Strategy):
    """The base of the planners.

    A subclass names its prompt and its blueprint, and defines which parts of an answer go into the plan.
    """

    module = "planner"
    make_blueprint: ClassVar[Callable[..., type[ARQ]]]
    agent_state_channels = (*Strategy.agent_state_channels, "plan", "progress")

    def __init__(
        self,
        model: ModelLike,
        agent: Agent,
        *,
        max_steps: int = 8,
        draft: bool = False,
        **settings: Unpack[StrategyNodeSettings],
    ) -> None:
        self.max_steps = require_count("max_steps", max_steps)
        self.sends_reply = not draft
        super().__init__(model, agent, **settings)
        if self.sends_reply:
            require_free_composition(agent)
        tools = list(self.tools.values())
        has_pending_calls = bool(agent.get_confirmed_tools("customer"))
        self.blueprint = self.make_blueprint(tools, with_pending_calls=has_pending_calls)
        self.tools_by_property = map_properties(tools, (FINAL_ANSWER,))
        descriptions = [describe_tool(agent, tool, name) for name, tool in self.tools_by_property.items()]
        self.head = self.render_head(guided=bool(agent.rules), tools=descriptions)

    @abstractmethod
    def build_plan_fields(self, answer: Any, context: PlanningContext, tool: str | None) -> dict[str, Any]:
        """Return the fields of the record `Plan` that come from an answer; `tool` is called next."""

    def review_plan(self, answer: Any, context: PlanningContext, tool: str | None) -> Sequence[Objection]:
        """Return the objections to the plan in an answer; `tool` is called next."""
        return ()

    def decide(self, gate: Gate, agreement_outcome: AgreementOutcome) -> NodeSteps:
        """Make or refine the plan of this turn, and take one action."""
        context = PlanningContext(gate, agreement_outcome, self.max_steps)
        sections = self._describe_plan_context(context)
        review = partial(self._review, context=context)
        answer, proposal = yield from self.ask_for_proposal(context, sections, review)
        return (yield from self._take_action(context, answer, proposal))

    def _describe_plan_context(self, context: PlanningContext) -> dict[str, Any]:
        milestones: list[dict[str, Any]] = []
        for progress in context.gate.state.read_lasting_records("progress", Progress):
            for milestone in progress.next:
                milestones.append(milestone.model_dump(exclude_none=True))
        counts = {"steps_left": context.calls_left}
        sections = self.describe_context(context, counts, {"next_milestones": milestones})
        sections["plan"] = _describe_plan(context)
        return sections

    def _review(self, answer: Any, context: PlanningContext) -> Proposal:
        """Return the action that an answer proposes, with code's objections."""
        still_wanted = context.agreement_outcome.select_wanted_calls(answer)
        option, action = read_choice(answer.action)
        if option == FINAL_ANSWER:
            proposal = self._review_answer(action, context, still_wanted)
        else:
            proposal = self._review_call(option, action, context)
        objections = proposal.objections + tuple(self.review_plan(answer, context, proposal.tool))
        return replace(proposal, objections=objections, still_wanted=still_wanted)

    def _review_answer(
        self, action: Any, context: PlanningContext, still_wanted: Sequence[PendingCall]
    ) -> Proposal:
        state, text = context.gate.state, action.answer
        to_confirm = context.find_verdicts_to_confirm(still_wanted)
        path = f"action.{FINAL_ANSWER}.answer"
        objections: list[Objection] = []
        if not text.strip() and not to_confirm:
            objections.append(Objection(path, "it is empty"))
        if self.sends_reply:  # else the reviser checks its reply
            references = collect_references(self.agent, state, context.agreement_outcome.pending)
            for leak in find_leaks(text, references):
                objections.append(Objection(path, leak))
            if problem := find_preamble_problem(text, to_confirm):
                objections.append(Objection(path, problem))
        verdicts = find_requested_arguments(action.asks_for, context.gate)
        verdicts += context.find_lost_calls(still_wanted)
        return Proposal(text, objections=tuple(objections), verdicts=tuple(verdicts))

    def _review_call(self, property_name: str, action: Any, context: PlanningContext) -> Proposal:
        tool = self.tools_by_property[property_name]
        parsed = parse_call(tool, action)
        limit_refusal = None if context.calls_left else NO_STEP_LEFT
        doubt = "; ".join(parsed.doubts.values())
        check = context.gate.check(
            tool, parsed.arguments, parsed.problems, limit_refusal=limit_refusal, doubt=doubt
        )
        objections = explain_refusal(tool, check.verdicts, f"action.{property_name}", "the final answer")
        expected = str(getattr(action, "expected", ""))
        call = PlannedCall(tool=tool.name, arguments=check.arguments, expected=expected)
        return Proposal(call=call, objections=tuple(objections), verdicts=check.verdicts)

    def _take_action(self, context: PlanningContext, answer: Answer[Any], proposal: Proposal) -> NodeSteps:
        """Return the update that carries out a proposal.

        If it was refused, the reply is the confirmation question or the fallback.
        """
        gate = context.gate
        call: PlannedCall | None = None
        final_answer: str | None = None
        if not proposal.is_refused:
            call = proposal.call
            final_answer = None if call else proposal.text
        record = Plan(
            turn=gate.state.turn_id,
            version=context.version,
            call=call,
            final_answer=final_answer,
            result_count=len(context.results),
            faults=tuple(map(str, answer.complaints)),
            **self.build_plan_fields(answer.value, context, proposal.tool),
        )
        made: Sequence[ToolVerdict] = ()
        to_confirm: Sequence[ToolVerdict] = ()
        if call:
            made = proposal.verdicts
        else:
            # The customer is asked once the turn ends, about the calls that are still proposed then.
            to_confirm = context.find_verdicts_to_confirm(proposal.still_wanted)
        verdicts = merge_verdicts(
            context.agreement_outcome, context.proposed_verdicts, made, to_confirm, asks=call is None
        )
        gate.state.emit(PlanMade(plan=record, decisions=tuple(verdicts)))
        if call:
            update = self.make_calls(gate, verdicts, [make_tool_call(call.tool, call.arguments)])
        elif self.sends_reply:
            fallback = "" if to_confirm else self.agent.fallback
            update = yield from self.send_reply(gate, verdicts, final_answer or fallback, to_confirm)
        else:
            update = self.make_update(gate, verdicts)
        return update | {"plan": gate.state.build_channel_value("plan", [record])}


def _describe_plan(context: PlanningContext) -> dict[str, Any] | None:
    """Return the plan as the prompt shows it; None if there isn't one yet."""
    plan = context.current_plan
    if plan is None:
        return None
    entries: dict[str, Any] = {
        "version": plan.version,
        "previous_steps": plan.previous_steps,
        "steps": [step.model_dump(exclude_defaults=True) for step in plan.steps],
        "call": plan.call and plan.call.model_dump(exclude_defaults=True),
        "told_by": list_ids(context.new_results),
        "changes": [change.model_dump() for change in plan.changes],
    }
    return {name: entry for name, entry in entries.items() if entry or name == "steps"}


class PreActPlanner(Planner):
    """Plan every step up to the final answer with its reason, and take the first; refine it after each result.

    Writes the plan to `plan`, and its action: a message with one tool call, or the final answer. A new customer
    message starts a new plan. A result that contradicts the plan (a failure, an empty result, another branch)
    changes it, and the plan says what changed and why. A failed call is repeated at most once in the turn, and a plan
    that continues as if it hadn't failed is refused. A refused answer is asked for again, within the reasoner's
    `max_candidates`; after that the turn ends with the agent's `fallback`, or without a draft.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification. Its tools are gated by its active guidelines, as for `ToolCaller`.
        max_steps: How many calls one turn may make before the final answer.
        draft: Leave the final answer in the plan, as the draft of `MessageReviser`, instead of sending it as a message.
        **settings: `agrees`, `template`, `temperature` (0.05) and the others, as for `ToolCaller`.

    Raises:
        InputError: `max_steps` is below 1. `BlueprintNode` lists what running raises.
    """

    prompt_name = "pre_act_planner"
    make_blueprint = make_example_blueprint = staticmethod(make_pre_act_blueprint)

    def review_plan(self, answer: Any, context: PlanningContext, tool: str | None) -> Sequence[Objection]:
        """Return the objections to a plan; it is refused if it ignores a result that contradicts it."""
        objections = list(_find_step_objections(answer, tool))
        if context.results and not (answer.previous_steps or "").strip():
            reason = "a tool ran for this request: summarize what was done and what it showed"
            objections.append(Objection("previous_steps", reason, is_blocking=False))
        if _is_unexpected_result(answer, context):
            if answer.change is None:
                reason = "the result was not as expected: say what changes in the plan, and why"
                objections.append(Objection("change", reason, is_blocking=False))
            is_same_plan = _is_same_plan(answer, context)
            if is_same_plan and tool is None:
                reason = "the result was not as expected: say what the answer will state instead"
                objections.append(Objection("next_steps", reason, is_blocking=False))
            elif is_same_plan:
                ids = ", ".join(list_ids(context.new_results))
                reason = f"the plan is the one from before, though {ids} was not as expected: change the plan"
                objections.append(Objection("next_steps", reason))
        return objections

    def build_plan_fields(self, answer: Any, context: PlanningContext, tool: str | None) -> dict[str, Any]:
        """Return the remaining steps, what was done, and what changed."""
        changes = context.current_plan.changes if context.current_plan else ()
        if context.current_plan and answer.change is not None:
            change = PlanChange(version=context.version, what=answer.change.what, why=answer.change.why)
            changes += (change,)
        steps: list[PlanStep] = []
        for step in answer.next_steps:
            steps.append(PlanStep(description=step.step, reason=step.reason, tool=step.tool))
        return {
            "previous_steps": answer.previous_steps if context.results else None,
            "steps": steps,
            "observation": _classify_observation(answer, context),
            "changes": changes,
        }


def _find_step_objections(answer: Any, tool: str | None) -> Iterator[Objection]:
    """Yield an objection if the first step isn't the action, or if not exactly the last one is the final answer."""
    first, last = answer.next_steps[0], answer.next_steps[-1]
    if first.tool != tool:
        reason = f"the first step is the action taken now, {tool or FINAL_ANSWER}"
        yield Objection("next_steps[0].tool", reason, is_blocking=False)
    for number, step in enumerate(answer.next_steps):
        path = f"next_steps[{number}].tool"
        if step is last and step.tool is not None:
            yield Objection(path, "the last step is the final answer: null", is_blocking=False)
        elif step is not last and step.tool is None:
            reason = "only the last step is the final answer; this one needs its tool"
            yield Objection(path, reason, is_blocking=False)


def _is_unexpected_result(answer: Any, context: PlanningContext) -> bool:
    is_refined = context.current_plan is not None and bool(context.new_results)
    return is_refined and _classify_observation(answer, context) != "as_expected"


def _is_same_plan(answer: Any, context: PlanningContext) -> bool:
    """Return True if an answer's steps are those of the current plan after its first, which was taken."""
    if context.current_plan is None:
        return False
    remaining = [(step.tool, split_words(step.description)) for step in context.current_plan.steps[1:]]
    planned = [(step.tool, split_words(step.step)) for step in answer.next_steps]
    return planned == remaining


def _classify_observation(answer: Any, context: PlanningContext) -> Any:
    """Return how the newest result was: failed if code sees a failure, otherwise what the answer says."""
    if not context.results:
        return None
    if context.has_new_failure:
        return "failed"
    return answer.observation or "as_expected"


class ReActPlanner(Planner):
    """Think about the newest message or result and take one action, without a plan: the baseline for Pre-Act.

    It takes the same arguments, raises the same errors and writes the same channels as `PreActPlanner`. Its plan is a
    single step, with the thought as the reason.
    """

    prompt_name = "react_planner"
    make_blueprint = make_example_blueprint = staticmethod(make_react_blueprint)

    def build_plan_fields(self, answer: Any, context: PlanningContext, tool: str | None) -> dict[str, Any]:
        """Return the step that is taken, and ReAct's trace: the thoughts and steps before it."""
        trace: list[str] = []
        if context.current_plan:
            if context.current_plan.previous_steps:
                trace.append(context.current_plan.previous_steps)
            for step in context.current_plan.steps:
                trace.append(f"{step.reason} So: {step.description}.")
        description = f"call {tool}" if tool else "give the final answer"
        return {
            "previous_steps": "\n".join(trace) or None,
            "steps": [PlanStep(description=description, reason=answer.thought, tool=tool)],
            "observation": "failed" if context.has_new_failure else None,
        }
