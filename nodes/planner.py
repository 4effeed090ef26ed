"""What the planners share: one action at a time, each call checked by the gate."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Unpack
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Plan, PlannedCall, Progress, ToolInsight
from arq_graph.errors import ReasoningError
from arq_graph.nodes.blueprint_node import NodeSettings, Steps, Update, counted
from arq_graph.nodes.channels import emit, our_channels
from arq_graph.nodes.choice import chosen, property_of
from arq_graph.nodes.confirmation import Agrees, Settled, asks_beside, put
from arq_graph.nodes.events import PlanMade, total_usage
from arq_graph.nodes.gate import Gate, Verdict, active_guidelines
from arq_graph.nodes.plan_schema import FINAL_ANSWER, PlannerBlueprint
from arq_graph.nodes.proposed_calls import asked_for, calls_to_put, kept_insights, read_call, refusals
from arq_graph.nodes.spec_sections import designed, shown_guideline, shown_tool, shown_variables
from arq_graph.nodes.strategy import Strategy, new_call, tools_of
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.nodes.turns import plan_of_turn, rounds_of_turn
from arq_graph.nodes.violations import leaks
from arq_graph.nodes.worked_examples import Example, shown
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.conversation import Line
from arq_graph.reasoning.reasoner import Reasoner

DEFAULT_STEPS = 8
"""How many calls a planner makes in one turn unless set otherwise."""


@dataclass(frozen=True)
class Action:
    """What one answer's action is, and what code says to it.

    Args:
        verdict: What the gate says to the call that it is; None for a final answer.
        call: The call.
        answer: The final answer that it is; None for a call.
        insights: What the reply has to know about it.
        refusals: Why it cannot be taken; none if it can.
    """

    verdict: Verdict | None = None
    call: PlannedCall | None = None
    answer: str | None = None
    insights: tuple[ToolInsight, ...] = ()
    refusals: tuple[Complaint, ...] = ()


@dataclass(frozen=True)
class Situation:
    """What a planner's answer is held against.

    Args:
        gate: The gate at this point of the turn.
        settled: What has come of the question that waited.
        plan: This turn's plan so far.
        steps_left: How many more calls this turn may make.
    """

    gate: Gate
    settled: Settled
    plan: Plan | None
    steps_left: int

    @property
    def turn(self) -> str:
        """Id of the customer message that began the turn."""
        return self.gate.conversation.turn

    @property
    def results(self) -> tuple[Line, ...]:
        """The results of this turn."""
        return self.gate.conversation.results

    @property
    def new_results(self) -> tuple[Line, ...]:
        """The results that the plan so far did not know."""
        return self.results[self.plan.results if self.plan else 0 :]


class Planner(Strategy):
    """What the planners have in common: one action at a time, a call or the final answer.

    A subclass says what is asked around the action (`ask`), and what of the answer is kept (`record`).
    """

    module = "planner"
    shipped: ClassVar[Path]

    def __init__(
        self,
        model: BaseChatModel | str | Reasoner,
        agent: Agent,
        *,
        max_steps: int = DEFAULT_STEPS,
        draft: bool = False,
        agrees: Agrees | None = None,
        temperature: float | None = 0.05,
        template: str | Path | None = None,
        examples: Sequence[Example] | None = None,
        **settings: Unpack[NodeSettings],
    ) -> None:
        self.max_steps = counted("max_steps", max_steps)
        self.draft = draft
        confirmed = bool(agent.confirmed_by("customer"))
        self.planned = self.ask(list(tools_of(agent).values()), confirmed=confirmed)
        super().__init__(
            model,
            agent,
            self.planned.blueprint,
            self.shipped if template is None else template,
            agrees=agrees,
            temperature=temperature,
            **settings,
        )
        examples = self.examples() if examples is None else examples
        self.head = self.template.render(
            "head",
            {
                **designed(agent),
                "guided": bool(agent.guidelines),
                "tools": [self._shown_tool(tool) for tool in self.tools.values()],
                "examples": [shown(example, self.mode) for example in examples],
            },
        )

    @abstractmethod
    def ask(self, tools: Sequence[ToolArguments], *, confirmed: bool) -> PlannerBlueprint:
        """The blueprint, with every tool of the agent."""

    @abstractmethod
    def record(self, value: Any, situation: Situation, action: Action) -> Plan:
        """What of an answer is kept; `version`, `call`, `final_answer` and `faults` are filled in afterwards."""

    def faults(self, value: Any, situation: Situation, action: Action) -> list[Complaint]:
        """What is wrong with what stands around the action."""
        return []

    def blocks(self, value: Any, situation: Situation, action: Action) -> list[Complaint]:
        """What is so wrong with what stands around the action that it is not taken."""
        return []

    def examples(self) -> Sequence[Example]:
        """The worked examples that are shown unless others are given."""
        return ()

    def channels(self) -> dict[str, Any]:
        """What it reads and writes besides the messages."""
        return {**super().channels(), **our_channels("plan", "progress")}

    def decide(self, gate: Gate, settled: Settled) -> Steps:
        """Make or refine the plan of this turn, and take one action."""
        messages = gate.state.messages()
        situation = Situation(
            gate,
            settled,
            plan_of_turn(gate.state, gate.conversation.turn),
            max(0, self.max_steps - rounds_of_turn(messages, self.agent.name)),
        )
        variables = shown_variables(self.agent, gate.state)
        taken: list[Action] = []

        def check(value: Any) -> list[Complaint]:
            waiting = self._waiting(value, situation, taken)
            action = self._action(value, situation, waiting, variables)
            blocking = [*action.refusals, *self.blocks(value, situation, action)]
            taken.append(Action(action.verdict, action.call, action.answer, action.insights, tuple(blocking)))
            return [*self.faults(value, situation, action), *blocking]

        prompt = self.prompt(gate.conversation, self._tail(situation, variables), head=self.head)
        (answer,) = yield [Question(self.planned.blueprint, prompt, check=check)]
        if isinstance(answer, ReasoningError):
            raise answer
        return self._update(situation, answer, taken)

    def _waiting(self, value: Any, situation: Situation, before: Sequence[Action]) -> list[ToolInsight]:
        proposed = [each for action in before for each in action.insights]
        still_wanted = getattr(value, "still_wanted", None)
        return calls_to_put(situation.gate, situation.settled, self.tools, still_wanted, proposed)

    def _action(
        self,
        value: Any,
        situation: Situation,
        waiting: Sequence[ToolInsight],
        variables: Sequence[Mapping[str, Any]],
    ) -> Action:
        """An answer's action, and what code says to it."""
        key, said = chosen(value.action)
        name = type(value).__name__
        if key == FINAL_ANSWER:
            wrong = [] if said.answer.strip() or waiting else ["it is empty"]
            if not self.draft:
                wrong += leaks(said.answer, self.facts(situation.gate.conversation, variables))
                wrong += [why] if (why := asks_beside(said.answer, waiting)) else []
            return Action(
                answer=said.answer,
                insights=tuple(asked_for(said.asks_for, situation.gate, self.tools)),
                refusals=tuple(Complaint(name, f"action.{FINAL_ANSWER}.answer", each) for each in wrong),
            )
        tool = self.planned.tools[key]
        read = read_call(tool, said)
        verdict = situation.gate.check(
            tool,
            read.arguments,
            read.problems,
            objection="" if situation.steps_left else "no step is left in this turn: give the final answer",
            doubt="; ".join(read.doubts.values()),
        )
        expected = str(getattr(said, "expected", ""))
        return Action(
            verdict=verdict,
            call=PlannedCall(tool=tool.name, arguments=read.arguments, expected=expected),
            insights=tuple(verdict.insights(situation.turn, rationale=expected)),
            refusals=tuple(
                Complaint(name, f"action.{key}{place}", why)
                for place, why in refusals(verdict, "the final answer")
            ),
        )

    def _shown_tool(self, tool: ToolArguments) -> dict[str, Any]:
        entry = shown_tool(self.agent, tool)
        if (key := property_of(tool.name, (FINAL_ANSWER,))) != tool.name:
            entry["key"] = key
        return entry

    def _tail(self, situation: Situation, variables: list[dict[str, Any]]) -> dict[str, Any]:
        gate, conversation = situation.gate, situation.gate.conversation
        guided = bool(self.agent.guidelines)
        active = list(active_guidelines(self.agent, gate.state, conversation.turn)) if guided else []
        progress = gate.state.record("progress", Progress)
        return {
            "variables": variables,
            "active_guidelines": [shown_guideline(self.agent.guideline(id)) for id in active]
            if guided
            else None,
            "plan": _shown_plan(situation.plan, situation) if situation.plan else None,
            "now": self.standing(
                gate,
                situation.settled,
                active,
                {"steps_left": situation.steps_left},
                {
                    "next_milestones": [each.model_dump(exclude_none=True) for each in progress.next]
                    if progress
                    else []
                },
            ),
        }

    def _update(self, situation: Situation, answer: Answer[Any], taken: Sequence[Action]) -> Update:
        last = taken[-1]
        accepted = Action() if last.refusals else last
        before = situation.plan
        plan = self.record(answer.value, situation, last).model_copy(
            update={
                "version": before.version + 1 if before else 1,
                "call": accepted.call,
                "final_answer": accepted.answer,
                "results": len(situation.results),
                "faults": tuple(map(str, answer.complaints)),
            }
        )
        decided = self._decided(situation, answer.value, taken, accepted)
        emit(
            PlanMade(
                turn=situation.turn,
                plan=plan,
                decisions=tuple(decided),
                calls=len(answer.attempts),
                usage=total_usage([answer]),
            )
        )
        state = situation.gate.state
        planned: Update = {"plan": state.written("plan", [plan])}
        if plan.call:
            call = new_call(plan.call.tool, plan.call.arguments)
            return {**planned, **self.update(situation.gate, decided, [self.calling([call])])}
        if self.draft:
            return {**planned, **self.update(situation.gate, decided)}
        waiting = [each for each in decided if each.kind == "confirm"]
        content = plan.final_answer or ("" if waiting else self.agent.fallback)
        reply = AIMessage(content, id=str(uuid4()), name=self.reply_name or self.agent.name)
        reply, agreements = put(self.agent, state, reply, waiting)
        return {**planned, **agreements, **self.update(situation.gate, decided, [reply])}

    def _decided(
        self, situation: Situation, value: Any, taken: Sequence[Action], accepted: Action
    ) -> list[ToolInsight]:
        """What the reply has to know; what waits is put once the turn ends, if it is still proposed then."""
        calls = accepted.call is not None
        return kept_insights(
            situation.settled,
            [each for action in taken for each in action.insights],
            accepted.insights if calls else (),
            [] if calls else self._waiting(value, situation, taken),
            asks=not calls,
        )


def _shown_plan(plan: Plan, situation: Situation) -> Mapping[str, Any]:
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
