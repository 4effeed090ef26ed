"""Planning: one action at a time, each call checked by the gate (Pre-Act, 3.1 and Appendices D, E; ReAct)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from langchain_core.messages import BaseMessage

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Plan, PlanChange, PlannedCall, PlanStep, Progress, ToolVerdict
from arq_graph.errors import require_count
from arq_graph.nodes.agent_node import describe_tool, describe_variables
from arq_graph.nodes.blueprint_node import NodeRequests
from arq_graph.nodes.channels import Update, count_tool_rounds, read_current_plan
from arq_graph.nodes.confirmation import (
    AgreementOutcome,
    ask_for_confirmation,
    find_question_conflict,
    make_call,
)
from arq_graph.nodes.events import PlanMade
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.messages import make_agent_message
from arq_graph.nodes.plan_schema import FINAL_ANSWER, make_pre_act_blueprint, make_react_blueprint
from arq_graph.nodes.proposed_calls import (
    DecisionContext,
    Fault,
    Proposal,
    explain_refusal,
    find_requested_arguments,
    get_property_name,
    merge_insights,
    parse_call,
    read_choice,
)
from arq_graph.nodes.strategy import Strategy, StrategyNodeSettings
from arq_graph.nodes.tool_arguments import ToolSchema
from arq_graph.nodes.violations import collect_references, find_leaks
from arq_graph.reasoning.answer import Answer
from arq_graph.reasoning.reasoner import ModelLike
from arq_graph.reasoning.sections import split_words


class PlanningContext(DecisionContext[Proposal]):
    """The state that a planner's answers are checked against: this turn's plan so far, and the results."""

    def __init__(self, gate: Gate, outcome: AgreementOutcome, max_steps: int) -> None:
        super().__init__(gate, outcome)
        self.plan = read_current_plan(gate.state)
        self.steps_left = max(0, max_steps - count_tool_rounds(gate.state))
        self.results = gate.conversation.current_turn_results
        self.new_results = self.results
        self.version = 1
        if self.plan:
            self.new_results = self.results[self.plan.result_count :]
            self.version = self.plan.version + 1
        self.has_failed = any(line in gate.failed_results for line in self.new_results)


class Planner(Strategy):
    """The base of the planners.

    A subclass names its prompt, its worked examples and its blueprint, and says what of an answer the plan records.
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
        **settings: Unpack[StrategyNodeSettings],
    ) -> None:
        self.max_steps = require_count("max_steps", max_steps)
        self.draft = draft
        super().__init__(model, agent, **settings)
        is_confirmed = bool(agent.get_confirmed_tools("customer"))
        self.blueprint = self.make_example_blueprint(list(self.tools.values()), confirmed=is_confirmed)
        self.tools_by_property: dict[str, ToolSchema] = {}
        for name, tool in self.tools.items():
            self.tools_by_property[get_property_name(name, (FINAL_ANSWER,))] = tool
        tools = [describe_tool(agent, tool, property) for property, tool in self.tools_by_property.items()]
        self.head = self.render_head(guided=bool(agent.guidelines), tools=tools)

    @abstractmethod
    def build_plan_fields(self, value: Any, context: PlanningContext, tool: str | None) -> dict[str, Any]:
        """Return what `Plan` records of an answer besides its action; `tool` is the one that it calls."""

    def find_faults(self, value: Any, context: PlanningContext, tool: str | None) -> Iterator[Fault]:
        """Yield what is wrong with an answer besides its action."""
        yield from ()

    def find_refusals(self, value: Any, context: PlanningContext, tool: str | None) -> Iterator[Fault]:
        """Yield why an answer's action must not be taken, besides what is wrong with the action itself."""
        yield from ()

    def decide(self, gate: Gate, outcome: AgreementOutcome) -> NodeRequests:
        """Make or refine the plan of this turn, and take one action."""
        context = PlanningContext(gate, outcome, self.max_steps)
        sections = self._describe_plan_context(context)
        question = self.make_question(context, sections, partial(self._review, context=context))
        (answer,) = yield from self.ask_questions(question)
        return self._take_action(context, answer)

    def _describe_plan_context(self, context: PlanningContext) -> dict[str, Any]:
        state = context.gate.state
        progress = state.read_record("progress", Progress)
        next_milestones = progress.next if progress else ()
        milestones = [milestone.model_dump(exclude_none=True) for milestone in next_milestones]
        counts = {"steps_left": context.steps_left}
        lists = {"next_milestones": milestones}
        sections = self.describe_context(context.gate, context.outcome, counts, lists)
        sections["plan"] = _describe_plan(context)
        return sections

    def _review(self, value: Any, context: PlanningContext) -> Proposal:
        """Return what an answer proposes, and what code objects."""
        still_wanted = getattr(value, "still_wanted", None) or ()
        key, action = read_choice(value.action)
        if key == FINAL_ANSWER:
            proposal = self._review_answer(action, context, still_wanted)
        else:
            proposal = self._review_call(key, action, context)
        refusals = self.find_refusals(value, context, proposal.tool)
        return replace(
            proposal,
            refusals=(*proposal.refusals, *refusals),
            faults=tuple(self.find_faults(value, context, proposal.tool)),
            still_wanted=still_wanted,
        )

    def _review_answer(self, action: Any, context: PlanningContext, still_wanted: Sequence[str]) -> Proposal:
        gate, text = context.gate, action.answer
        to_confirm = context.find_calls_to_confirm(still_wanted)
        problems: list[str] = []
        if not text.strip() and not to_confirm:
            problems.append("it is empty")
        if not self.draft:
            variables = describe_variables(self.agent, gate.state)
            facts = collect_references(self.agent, gate.conversation, variables, context.outcome.pending)
            problems += find_leaks(text, facts)
            if conflict := find_question_conflict(text, to_confirm):
                problems.append(conflict)
        path = f"action.{FINAL_ANSWER}.answer"
        return Proposal(
            text,
            refusals=tuple((path, problem) for problem in problems),
            insights=tuple(find_requested_arguments(action.asks_for, gate)),
        )

    def _review_call(self, key: str, action: Any, context: PlanningContext) -> Proposal:
        tool = self.tools_by_property[key]
        arguments, problems, doubts = parse_call(tool, action)
        objection = "" if context.steps_left else "no step is left in this turn: give the final answer"
        doubt = "; ".join(doubts.values())
        verdict = context.gate.check(tool, arguments, problems, objection=objection, doubt=doubt)
        expected = str(getattr(action, "expected", ""))
        return Proposal(
            call=PlannedCall(tool=tool.name, arguments=arguments, expected=expected),
            refusals=tuple(explain_refusal(tool, verdict, f"action.{key}", "the final answer")),
            insights=tuple(insight.model_copy(update={"rationale": expected}) for insight in verdict),
        )

    def _take_action(self, context: PlanningContext, answer: Answer[Any]) -> Update:
        """Return the update with the plan, and the call or the answer of the last proposal; instead of a refused one,
        the fallback or code's question."""
        gate, proposal = context.gate, context.proposals[-1]
        call, final_answer = None, None
        if not proposal.refusals:
            call = proposal.call
            final_answer = None if call else proposal.text
        plan = Plan(
            turn=gate.state.turn_id,
            version=context.version,
            call=call,
            final_answer=final_answer,
            result_count=len(context.results),
            faults=tuple(map(str, answer.complaints)),
            **self.build_plan_fields(answer.value, context, proposal.tool),
        )
        # The customer is asked once the turn ends, about the calls that are still proposed then.
        to_confirm: Sequence[ToolVerdict] = ()
        call_insights: Sequence[ToolVerdict] = ()
        if call:
            call_insights = proposal.insights
        else:
            to_confirm = context.find_calls_to_confirm(proposal.still_wanted)
        decisions = merge_insights(
            context.outcome, context.insights, call_insights, to_confirm, asks=call is None
        )
        gate.state.emit(PlanMade(plan=plan, decisions=tuple(decisions)))
        update: Update = {"plan": gate.state.replace_records("plan", [plan])}
        messages: list[BaseMessage] = []
        if call:
            tool_call = make_call(call.tool, call.arguments)
            messages.append(make_agent_message(self.agent.name, tool_calls=[tool_call]))
        elif not self.draft:
            fallback = "" if to_confirm else self.agent.fallback
            reply, agreements, event = ask_for_confirmation(
                self.agent, gate.state, final_answer or fallback, to_confirm
            )
            gate.state.emit(event)
            update |= agreements
            messages.append(reply)
        return {**update, **self.make_update(gate, decisions, messages)}


def _describe_plan(context: PlanningContext) -> dict[str, Any] | None:
    """Return the plan as the prompt shows it; None if there isn't one yet."""
    plan = context.plan
    if plan is None:
        return None
    entries: dict[str, Any] = {
        "version": plan.version,
        "previous_steps": plan.previous_steps,
        "steps": [step.model_dump(exclude_defaults=True) for step in plan.steps],
        "call": plan.call and plan.call.model_dump(exclude_defaults=True),
        "told_by": [line.id for line in context.new_results],
        "changes": [change.model_dump() for change in plan.changes],
    }
    return {name: entry for name, entry in entries.items() if entry or name == "steps"}


class PreActPlanner(Planner):
    """Plan every step up to the final answer with its reason, and take the first; refine it after each result.

    Writes the plan to `plan`, and its action: a message with one tool call, or the final answer. A new customer
    message starts a new plan. A result that contradicts the plan (a failure, an empty result, another branch)
    changes it, and the plan says what changed and why. A call that failed is made once more at most in that turn,
    and a plan that continues as if it had not failed is refused. What is refused is asked for again, within the
    reasoner's `max_candidates`; after that the turn ends with the agent's `fallback`, or without a draft.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification. Its tools are gated by its active guidelines, as for `ToolCaller`.
        max_steps: How many calls one turn may make; after them only the final answer is left.
        draft: Keep the final answer in the plan, where `MessageReviser` finds it as its draft, in place of sending
            it as a message.
        **settings: `agrees`, `template`, `temperature` (0.05) and the others, as for `ToolCaller`.

    Raises:
        InputError: `max_steps` is below 1. `BlueprintNode` lists what running raises.
    """

    prompt_name = "pre_act_planner"
    make_example_blueprint = staticmethod(make_pre_act_blueprint)

    def find_faults(self, value: Any, context: PlanningContext, tool: str | None) -> Iterator[Fault]:
        """Yield what makes a plan invalid: its first step must be the action, its last one the final answer."""
        steps = value.next_steps
        if steps[0].tool != tool:
            yield "next_steps[0].tool", f"the first step is the action taken now, {tool or FINAL_ANSWER}"
        for number, step in enumerate(steps):
            is_last = number == len(steps) - 1
            if is_last and step.tool is not None:
                yield f"next_steps[{number}].tool", "the last step is the final answer: null"
            elif not is_last and step.tool is None:
                problem = "only the last step is the final answer; this one needs its tool"
                yield f"next_steps[{number}].tool", problem
        if context.results and not (value.previous_steps or "").strip():
            yield "previous_steps", "a tool ran for this request: sum up what was done and what it told"
        if _must_change(value, context):
            if value.change is None:
                yield "change", "the result was not as expected: say what changes in the plan, and why"
            if tool is None and _is_same_plan(value, context):
                yield "next_steps", "the result was not as expected: say what the answer now tells instead"

    def find_refusals(self, value: Any, context: PlanningContext, tool: str | None) -> Iterator[Fault]:
        """Yield why the first step must not be taken: the plan continues as if no result had contradicted it."""
        if tool is not None and _must_change(value, context) and _is_same_plan(value, context):
            ids = ", ".join(line.id for line in context.new_results)
            problem = f"the plan is the one from before, though {ids} was not as expected: make another one"
            yield "next_steps", problem

    def build_plan_fields(self, value: Any, context: PlanningContext, tool: str | None) -> dict[str, Any]:
        """Return the steps still to come, what was done, and what changed."""
        plan = context.plan
        changes = plan.changes if plan else ()
        if plan and value.change is not None:
            change = PlanChange(version=context.version, what=value.change.what, why=value.change.why)
            changes = (*changes, change)
        steps = [
            PlanStep(description=step.step, reason=step.reason, tool=step.tool) for step in value.next_steps
        ]
        return {
            "previous_steps": value.previous_steps if context.results else None,
            "steps": steps,
            "observation": _classify_observation(value, context),
            "changes": changes,
        }


def _must_change(value: Any, context: PlanningContext) -> bool:
    is_refined = context.plan is not None and bool(context.new_results)
    return is_refined and _classify_observation(value, context) != "as_expected"


def _is_same_plan(value: Any, context: PlanningContext) -> bool:
    if context.plan is None:
        return False
    remaining = [(step.tool, split_words(step.description)) for step in context.plan.steps[1:]]
    return remaining == [(step.tool, split_words(step.step)) for step in value.next_steps]


def _classify_observation(value: Any, context: PlanningContext) -> Any:
    if not context.results:
        return None
    if context.has_failed:
        return "failed"
    return value.observation or "as_expected"


class ReActPlanner(Planner):
    """Think about the newest message or result and take one action, without a plan: the baseline for Pre-Act.

    Arguments, errors and what it writes are those of `PreActPlanner`; its plan is the one step it takes, with the
    thought as the reason.
    """

    prompt_name = "react_planner"
    make_example_blueprint = staticmethod(make_react_blueprint)

    def build_plan_fields(self, value: Any, context: PlanningContext, tool: str | None) -> dict[str, Any]:
        """Return the step that is taken, and the thoughts and steps before it, which are ReAct's trace."""
        trace: list[str] = []
        if context.plan:
            if context.plan.previous_steps:
                trace.append(context.plan.previous_steps)
            trace += [f"{step.reason} So: {step.description}." for step in context.plan.steps]
        description = f"call {tool}" if tool else "give the final answer"
        return {
            "previous_steps": "\n".join(trace) or None,
            "steps": [PlanStep(description=description, reason=value.thought, tool=tool)],
            "observation": "failed" if context.has_failed else None,
        }
