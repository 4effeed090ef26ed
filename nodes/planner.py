"""What the planners share: one action at a time, each call checked by the gate."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Plan, PlannedCall, Progress, ToolInsight
from arq_graph.nodes.blueprint_node import Steps, Update, checked_agent, counted
from arq_graph.nodes.channels import emit
from arq_graph.nodes.choice import chosen
from arq_graph.nodes.confirmation import Settled, asks_beside, new_call, put
from arq_graph.nodes.events import PlanMade, total_usage
from arq_graph.nodes.gate import Gate, active_guidelines
from arq_graph.nodes.plan_schema import FINAL_ANSWER, tool_property
from arq_graph.nodes.proposed_calls import asked_for, calls_to_put, kept_insights, read_call, refusals
from arq_graph.nodes.spec_sections import shown_guideline, shown_tool, shown_variables
from arq_graph.nodes.strategy import Strategy, StrategyOptions, tools_of
from arq_graph.nodes.turns import plan_of_turn, rounds_of_turn
from arq_graph.nodes.violations import PromptFacts, leaks
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.conversation import Line
from arq_graph.reasoning.reasoner import Reasoner


@dataclass(frozen=True)
class Action:
    """What one answer's action is, a call or the final answer, and what code says to it."""

    call: PlannedCall | None = None
    answer: str | None = None
    insights: tuple[ToolInsight, ...] = ()
    refusals: tuple[Complaint, ...] = ()


@dataclass(frozen=True)
class Situation:
    """What a planner's answer is held against."""

    gate: Gate
    settled: Settled
    plan: Plan | None
    """This turn's plan so far."""
    steps_left: int
    variables: list[dict[str, Any]]
    facts: PromptFacts

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

    @property
    def has_failed(self) -> bool:
        """Whether one of these tells of a failure."""
        return any(line in self.gate.failed for line in self.new_results)


class Planner(Strategy):
    """What the planners have in common: one action at a time, a call or the final answer.

    A subclass names its prompt and worked examples (`files`) and what is asked (`blueprint_of` the agent's tools), and
    says what of the answer is kept (`record`).
    """

    module = "planner"
    ours = (*Strategy.ours, "plan", "progress")

    def __init__(
        self,
        model: BaseChatModel | str | Reasoner,
        agent: Agent,
        *,
        max_steps: int = 8,
        draft: bool = False,
        **settings: Unpack[StrategyOptions],
    ) -> None:
        self.max_steps = counted("max_steps", max_steps)
        self.draft = draft
        tools = list(tools_of(checked_agent(agent)).values())
        blueprint = self.of_examples(tools, confirmed=bool(agent.confirmed_by("customer")))
        super().__init__(model, agent, blueprint, **settings)
        self.by_property = {tool_property(name): tool for name, tool in self.tools.items()}
        shown = [shown_tool(agent, tool, key) for key, tool in self.by_property.items()]
        self.head = self.head_of(guided=bool(agent.guidelines), tools=shown)

    @abstractmethod
    def record(self, value: Any, situation: Situation, action: Action) -> Plan:
        """What of an answer is kept; `version`, `call`, `final_answer` and `faults` are filled in afterwards."""

    def faults(self, value: Any, situation: Situation, action: Action) -> list[Complaint]:
        """What is wrong with what stands around the action."""
        return []

    def blocks(self, value: Any, situation: Situation, action: Action) -> list[Complaint]:
        """What is so wrong with what stands around the action that it is not taken."""
        return []

    def decide(self, gate: Gate, settled: Settled) -> Steps:
        """Make or refine the plan of this turn, and take one action."""
        variables = shown_variables(self.agent, gate.state)
        situation = Situation(
            gate,
            settled,
            plan_of_turn(gate.state, gate.conversation.turn),
            max(0, self.max_steps - rounds_of_turn(gate.state.messages(), self.agent.name)),
            variables,
            self.facts(gate.conversation, variables),
        )
        taken: list[Action] = []

        def check(value: Any) -> list[Complaint]:
            action = self._action(value, situation, self._waiting(value, situation, taken))
            blocking = (*action.refusals, *self.blocks(value, situation, action))
            taken.append(replace(action, refusals=blocking))
            return [*self.faults(value, situation, action), *blocking]

        prompt = self.prompt(gate.conversation, self._tail(situation), head=self.head)
        answer = yield from self.asked(Question(self.blueprint, prompt, check=check))
        return self._update(situation, answer, taken)

    def _waiting(self, value: Any, situation: Situation, before: Sequence[Action]) -> list[ToolInsight]:
        """The calls that code puts to the customer, should the turn end here."""
        proposed = [each for action in before for each in action.insights]
        still_wanted = getattr(value, "still_wanted", None)
        return calls_to_put(situation.gate, situation.settled, still_wanted, proposed)

    def _action(self, value: Any, situation: Situation, waiting: Sequence[ToolInsight]) -> Action:
        """An answer's action, and what code says to it."""
        key, said = chosen(value.action)

        def refused(reasons: Sequence[tuple[str, str]]) -> tuple[Complaint, ...]:
            name = type(value).__name__
            return tuple(Complaint(name, f"action.{key}{place}", why) for place, why in reasons)

        if key == FINAL_ANSWER:
            wrong = [] if said.answer.strip() or waiting else ["it is empty"]
            if not self.draft:
                wrong += leaks(said.answer, situation.facts)
                wrong += [why] if (why := asks_beside(said.answer, waiting)) else []
            return Action(
                answer=said.answer,
                insights=tuple(asked_for(said.asks_for, situation.gate)),
                refusals=refused([(".answer", why) for why in wrong]),
            )
        tool = self.by_property[key]
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
            call=PlannedCall(tool=tool.name, arguments=read.arguments, expected=expected),
            insights=tuple(each.model_copy(update={"rationale": expected}) for each in verdict),
            refusals=refused(list(refusals(tool, verdict, "the final answer"))),
        )

    def _tail(self, situation: Situation) -> dict[str, Any]:
        state = situation.gate.state
        guided = bool(self.agent.guidelines)
        active = list(active_guidelines(self.agent, state, situation.turn)) if guided else []
        progress = state.record("progress", Progress)
        milestones = [each.model_dump(exclude_none=True) for each in progress.next] if progress else []
        return {
            "variables": situation.variables,
            "active_guidelines": [shown_guideline(self.agent.guideline(id)) for id in active]
            if guided
            else None,
            "plan": _shown_plan(situation.plan, situation) if situation.plan else None,
            "now": self.standing(
                situation.gate,
                situation.settled,
                active,
                {"steps_left": situation.steps_left},
                {"next_milestones": milestones},
            ),
        }

    def _update(self, situation: Situation, answer: Answer[Any], taken: Sequence[Action]) -> Update:
        gate, before = situation.gate, situation.plan
        accepted = Action() if taken[-1].refusals else taken[-1]
        plan = self.record(answer.value, situation, taken[-1]).model_copy(
            update={
                "version": before.version + 1 if before else 1,
                "call": accepted.call,
                "final_answer": accepted.answer,
                "results": len(situation.results),
                "faults": tuple(map(str, answer.complaints)),
            }
        )
        # What waits is put once the turn ends, if it is still proposed then.
        waiting = [] if plan.call else self._waiting(answer.value, situation, taken)
        decided = kept_insights(
            situation.settled,
            [each for action in taken for each in action.insights],
            accepted.insights if plan.call else (),
            waiting,
            asks=plan.call is None,
        )
        emit(
            PlanMade(
                turn=situation.turn,
                plan=plan,
                decisions=tuple(decided),
                calls=len(answer.attempts),
                usage=total_usage([answer]),
            )
        )
        update: Update = {"plan": gate.state.written("plan", [plan])}
        if plan.call:
            call = new_call(plan.call.tool, plan.call.arguments)
            return {**update, **self.update(gate, decided, [self.calling([call])])}
        if self.draft:
            return {**update, **self.update(gate, decided)}
        content = plan.final_answer or ("" if waiting else self.agent.fallback)
        reply = AIMessage(content, id=str(uuid4()), name=self.reply_name or self.agent.name)
        reply, agreements = put(self.agent, gate.state, reply, waiting)
        return {**update, **agreements, **self.update(gate, decided, [reply])}


def _shown_plan(plan: Plan, situation: Situation) -> Mapping[str, Any]:
    """This turn's plan so far as the prompt shows it, with the ids of what its call has told."""
    shown: dict[str, Any] = {
        "version": plan.version,
        "previous_steps": plan.previous_steps,
        "steps": [step.model_dump(exclude_defaults=True) for step in plan.steps],
        "call": plan.call and plan.call.model_dump(exclude_defaults=True),
        "told_by": [line.id for line in situation.new_results],
        "changes": [change.model_dump() for change in plan.changes],
    }
    return {name: value for name, value in shown.items() if value or name == "steps"}
