"""What the planners share: one action at a time, held against the gate, the schema and what has happened."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Unpack
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Plan, ToolInsight
from arq_graph.errors import ReasoningError
from arq_graph.nodes.blueprint_node import BlueprintNode, NodeSettings, Steps, Update, checked_agent, counted
from arq_graph.nodes.channels import Reader, emit, our_channels
from arq_graph.nodes.confirmation import awaiting_confirmation, left_open, still_open
from arq_graph.nodes.decisions import calling, calls_of_turn, new_call
from arq_graph.nodes.events import PlanMade, total_usage
from arq_graph.nodes.gate import active_guidelines, callable_tools
from arq_graph.nodes.outcomes import outcome_of
from arq_graph.nodes.planned_actions import Judged, Situation, judge_action, shown_plan
from arq_graph.nodes.plans import FINAL_ANSWER, PlannerBlueprint, property_of
from arq_graph.nodes.putting import is_about
from arq_graph.nodes.spec_sections import designed, shown_guideline, shown_tool, shown_variables
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.nodes.turns import abandoned_calls, plan_of_turn, rounds_of_turn
from arq_graph.nodes.violations import PromptFacts
from arq_graph.nodes.worked_examples import Example, shown
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.blueprint import ARQ
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.reasoner import Reasoner

DEFAULT_STEPS = 8
"""How many calls a planner makes in one turn unless set otherwise."""


class Planner(BlueprintNode[ARQ]):
    """What the planners have in common: one action at a time, held against what code knows.

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
        temperature: float | None = 0.05,
        template: str | Path | None = None,
        examples: Sequence[Example] | None = None,
        **settings: Unpack[NodeSettings],
    ) -> None:
        self.agent = checked_agent(agent)
        self.max_steps = counted("max_steps", max_steps)
        self.draft = draft
        self._confirmed = agent.confirmed_by("customer", "interrupt")
        tools = [ToolArguments(tool) for tool in agent.toolbox.values()]
        self.planned = self.ask(tools, self._confirmed)
        super().__init__(
            model,
            self.planned.blueprint,
            self.shipped if template is None else template,
            temperature=temperature,
            **settings,
        )
        examples = self.examples() if examples is None else examples
        self.head = self.template.render(
            "head",
            {
                **designed(agent),
                "guided": bool(agent.guidelines),
                "tools": [self._shown_tool(tool) for tool in tools],
                "examples": [shown(example, self.mode) for example in examples],
            },
        )

    @abstractmethod
    def ask(self, tools: Sequence[ToolArguments], confirmed: frozenset[str]) -> PlannerBlueprint:
        """The blueprint, with every tool of the agent."""

    @abstractmethod
    def record(self, value: Any, situation: Situation, judged: Judged) -> Plan:
        """What of an answer is kept; `version`, `call`, `final_answer` and `faults` are filled in afterwards."""

    def faults(self, value: Any, situation: Situation, judged: Judged) -> list[Complaint]:
        """What is wrong with what stands around the action."""
        return []

    def blocks(self, value: Any, situation: Situation, judged: Judged) -> list[Complaint]:
        """What is so wrong with what stands around the action that it is not taken."""
        return []

    def examples(self) -> Sequence[Example]:
        """The worked examples that are shown unless others are given."""
        return ()

    def channels(self) -> dict[str, Any]:
        """What it reads and writes besides the messages."""
        return our_channels("guideline_matches", "tool_insights", "plan", "progress", "variables")

    def steps(self, state: Reader) -> Steps:
        """Make or refine the plan of this turn, and take one action."""
        conversation = self.read_conversation(state)
        variables = shown_variables(self.agent, state)
        situation = self._situation(state, conversation, variables)
        tail = self._tail(state, situation, variables)
        judged: list[Judged] = []

        def check(value: Any) -> list[Complaint]:
            action = judge_action(value, self.planned, self._confirmed, situation)
            blocking = [*action.refusals, *self.blocks(value, situation, action)]
            unproposed = self._unproposed(type(value).__name__, action, judged)
            judged.append(replace(action, refusals=tuple(blocking)))
            return [*self.faults(value, situation, action), *unproposed, *blocking]

        prompt = self.prompt(conversation, tail, head=self.head)
        (answer,) = yield [Question(self.planned.blueprint, prompt, check=check)]
        if isinstance(answer, ReasoningError):
            raise answer
        return self._update(state, situation, answer, judged)

    def _unproposed(self, name: str, action: Judged, before: Sequence[Judged]) -> list[Complaint]:
        """Calls that the answer asks about without their arguments being known: no "yes" could be held against them."""
        proposed = {insight.tool for each in before for insight in each.insights if insight.kind == "confirm"}
        return [
            Complaint(
                name,
                f"action.{FINAL_ANSWER}.asks_for",
                f"take the call of {tool} as the action, with its arguments: the customer is then asked about it",
            )
            for tool in sorted(action.asks_to_confirm & self._confirmed - proposed)
        ]

    def _situation(
        self, state: Reader, conversation: Conversation, variables: Sequence[Mapping[str, Any]]
    ) -> Situation:
        facts = None
        if not self.draft:
            glossary = [entry["id"] for entry in designed(self.agent)["glossary"]]
            facts = PromptFacts(
                conversation,
                {"P", *glossary, *(variable["id"] for variable in variables)},
                tuple(self.agent.toolbox),
                (*(g.id for g in self.agent.guidelines), *(variable["name"] for variable in variables)),
                public_text=self.agent.profile,
            )
        return Situation(
            conversation,
            callable_tools(self.agent, state, conversation.turn),
            awaiting_confirmation(state, conversation),
            calls_of_turn(state, conversation),
            plan_of_turn(state, conversation.turn),
            max(0, self.max_steps - rounds_of_turn(state.messages())),
            facts,
        )

    def _shown_tool(self, tool: ToolArguments) -> dict[str, Any]:
        entry = shown_tool(self.agent, tool)
        if tool.name in self._confirmed:
            entry["needs_agreement"] = True
        if property_of(tool.name) != tool.name:
            entry["key"] = property_of(tool.name)
        return entry

    def _tail(self, state: Reader, situation: Situation, variables: list[dict[str, Any]]) -> dict[str, Any]:
        conversation = situation.conversation
        active = (
            list(active_guidelines(self.agent, state, conversation.turn)) if self.agent.guidelines else []
        )
        last = conversation.last_customer_line
        now: dict[str, Any] = {
            "turn": last.id if last else None,
            "candidates": [name for name in self.agent.toolbox if name in situation.callable],
            "steps_left": situation.steps_left,
        }
        if active:
            now["active"] = active
        if conversation.results:
            now["results"] = [line.id for line in conversation.results]
        for outcome in ("failed", "empty"):
            if ids := [line.id for line in conversation.results if outcome_of(line) == outcome]:
                now[outcome] = ids
        if situation.pending:
            now["awaiting_confirmation"] = [
                {
                    "tool": insight.tool,
                    "arguments": insight.arguments,
                    "asked_after": conversation.id_of(insight.turn),
                }
                for insight in situation.pending
            ]
        if following := next_milestones(state.get("progress")):
            now["next_milestones"] = following
        return {
            "variables": variables,
            "active_guidelines": [shown_guideline(self.agent.guideline(id)) for id in active]
            if self.agent.guidelines
            else None,
            "plan": shown_plan(situation.plan, situation) if situation.plan else None,
            "now": now,
        }

    def _update(
        self, state: Reader, situation: Situation, answer: Answer[Any], judged: Sequence[Judged]
    ) -> Update:
        last = judged[-1]
        accepted = last if not last.refusals else Judged()
        before = situation.plan
        plan = self.record(answer.value, situation, last).model_copy(
            update={
                "version": before.version + 1 if before else 1,
                "call": accepted.call,
                "final_answer": accepted.answer,
                "results": len(situation.conversation.results),
                "faults": tuple(map(str, answer.complaints)),
            }
        )
        decided = self._decided(judged)
        run = [insight for insight in [*situation.run, *decided] if insight.kind == "run"]
        others = [insight for insight in decided if insight.kind != "run"]
        emit(
            PlanMade(
                turn=situation.conversation.turn,
                plan=plan,
                decisions=tuple(decided),
                calls=len(answer.attempts),
                usage=total_usage([answer]),
            )
        )
        update: Update = {
            "plan": state.as_json(plan),
            "tool_insights": state.written(
                "tool_insights", [*still_open(left_open(state, situation.conversation), run), *run, *others]
            ),
        }
        messages = [*(abandoned_calls(state.messages()) or ()), *self._said(plan)]
        if messages:
            update[self.messages_key] = messages
        return update

    def _decided(self, judged: Sequence[Judged]) -> list[ToolInsight]:
        """What the reply has to know: of the action taken, and of those that were refused before it.

        Where a call is made after all, what was wrong with another one is no question to the customer. A call waits
        for the customer's word only where the reply asks for it: a reviser is told to, a final answer says that it
        does, and speaks of it.
        """
        last = judged[-1]
        makes_call = last.call is not None and not last.refusals
        found: list[ToolInsight] = []
        for insight in [insight for each in judged for insight in each.insights]:
            is_idle = insight.kind != "run" and makes_call
            unasked = insight.kind == "confirm" and not self.draft and not self._asks(insight, last)
            if is_idle or unasked or (insight.kind == "run" and not makes_call):
                insight = insight.model_copy(update={"kind": "declined", "argument": None})
            if insight not in found:
                found.append(insight)
        return found

    def _asks(self, call: ToolInsight, last: Judged) -> bool:
        """Whether the final answer asks the customer about a call."""
        description = self.agent.toolbox[call.tool].description
        return call.tool in last.asks_to_confirm and is_about(call, last.answer or "", description)

    def _said(self, plan: Plan) -> list[AIMessage]:
        if plan.call:
            return [calling(new_call(plan.call.tool, plan.call.arguments))]
        return (
            []
            if self.draft
            else [AIMessage(plan.final_answer or self.agent.fallback, id=str(uuid4()), name=self.agent.name)]
        )


def next_milestones(progress: Any) -> list[Any]:
    """The milestones that could come next, as far as live progress tells: its `next`, or its `frontier`."""
    for name in ("next", "frontier"):
        found = progress.get(name) if isinstance(progress, Mapping) else getattr(progress, name, None)
        if isinstance(found, Sequence) and not isinstance(found, str):
            return [
                {key: value for key, value in each.items() if value is not None}
                if isinstance(each, Mapping)
                else each
                for each in found
            ]
    return []
