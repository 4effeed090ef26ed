"""Strategies: nodes that decide what the agent does next, all behind the same gate."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Unpack

from langchain_core.messages import BaseMessage

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import ToolVerdict
from arq_graph.nodes.agent_node import AgentNode, NodeSettings, describe_guideline
from arq_graph.nodes.blueprint_node import NodeRequests, UserFunction
from arq_graph.nodes.channels import StateView, Update, find_requests_of_last_reply
from arq_graph.nodes.confirmation import AgreementOutcome, Agrees, resolve_agreement
from arq_graph.nodes.events import ToolsDecided
from arq_graph.nodes.gate import Gate, ToolRules, get_active_scores
from arq_graph.nodes.messages import answer_abandoned_calls, classify_result, make_agent_message
from arq_graph.nodes.proposed_calls import DecisionContext, P
from arq_graph.nodes.tool_arguments import ToolSchema
from arq_graph.reasoning.answer import Complaint, Question
from arq_graph.reasoning.blueprint import ARQ
from arq_graph.reasoning.reasoner import ModelLike


class StrategyNodeSettings(NodeSettings, total=False):
    """Settings that all strategies share; `agrees` decides what else is a yes than the shipped list has."""

    agrees: Agrees | None


class Strategy(AgentNode[ARQ]):
    """A node that decides what the agent does next.

    A subclass implements `decide`: it asks its model, and has each proposed call checked by the gate. The calls that
    the customer has agreed to are made here, before a model is asked.
    """

    agent_state_channels: ClassVar[tuple[str, ...]] = (
        "guideline_matches",
        "tool_insights",
        "agreements",
        "variables",
    )
    default_temperature = 0.05

    def __init__(
        self,
        model: ModelLike,
        agent: Agent,
        *,
        agrees: Agrees | None = None,
        **settings: Unpack[NodeSettings],
    ) -> None:
        super().__init__(model, agent, ARQ, **settings)
        self.agrees = agrees
        self.tools = {name: ToolSchema(tool) for name, tool in agent.toolbox.items()}

    def reason(self, state: StateView) -> NodeRequests:
        """Make the call that the customer has agreed to; without one, decide."""
        gate = Gate(self.agent, state, self.read_conversation(state), self.tools)
        gate.rules = yield from self.evaluate_policies(gate)
        outcome = yield from resolve_agreement(gate, self.agrees)
        if outcome.call is None:
            return (yield from self.decide(gate, outcome))
        state.emit(ToolsDecided(decisions=outcome.insights))
        message = make_agent_message(self.agent.name, tool_calls=[outcome.call])
        return {**self.make_update(gate, outcome.insights, [message]), **outcome.update}

    @abstractmethod
    def decide(self, gate: Gate, outcome: AgreementOutcome) -> NodeRequests:
        """Ask the model, check the calls that it proposes with the gate, and return the update.

        The insights of `outcome`, that of the question which the customer has answered, belong into the update.
        """

    def evaluate_policies(self, gate: Gate) -> Generator[UserFunction, Any, ToolRules]:
        """Return the rules of this strategy's policies that apply now; yields the policies' functions."""
        yield from ()
        return ToolRules()

    def describe_context(
        self,
        gate: Gate,
        outcome: AgreementOutcome,
        counts: Mapping[str, int],
        lists: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return the sections of a prompt's tail that describe the state.

        `counts` and `lists` are added to the section `now`, without the empty lists.
        """
        active_ids = list(get_active_scores(self.agent, gate.state))
        guidelines = [describe_guideline(self.agent.get_guideline(id)) for id in active_ids]
        granted = [name for name in self.agent.toolbox if name in gate.granted]
        candidates = [name for name in granted if not gate.rules.find_objection(name)]
        asked_again: list[dict[str, Any]] = []
        refused: list[dict[str, Any]] = []
        for insight in outcome.insights:
            call: dict[str, Any] = {"tool": insight.tool, "arguments": insight.arguments}
            if insight.kind == "confirm":
                asked_again.append(call)
            else:
                refused.append({**call, "why": insight.problem})
        results = gate.conversation.current_turn_results
        all_lists = {
            "active": active_ids,
            "results": [line.id for line in results],
            "failed": [line.id for line in gate.failed_results],
            "empty": [line.id for line in results if classify_result(line) == "empty"],
            "awaiting_confirmation": outcome.describe_pending(),
            "asked_about_again": asked_again,
            "refused": refused,
            **lists,
        }
        return {
            **self.describe_turn(gate.state, {"candidates": candidates, **counts}, all_lists),
            "active_guidelines": guidelines if self.agent.guidelines else None,
        }

    def make_question(
        self, context: DecisionContext[P], sections: Mapping[str, Any], review: Callable[[Any], P]
    ) -> Question[Any]:
        """Return the question what to do now, with the sections in the prompt's tail.

        `review` returns what an answer proposes. Each proposal is added to the context, also if code objects to it: the
        call in it may need the customer's agreement.
        """

        def check(value: Any) -> list[Complaint]:
            return review(value).make_complaints(type(value))

        def add_proposal(value: Any, _: Sequence[Complaint]) -> None:
            context.proposals.append(review(value))

        prompt = self.build_prompt(context.gate.conversation, sections, head=self.head)
        active_ids = tuple(sections["now"].get("active", ()))
        return Question(self.blueprint, prompt, check, guidelines=active_ids, on_candidate=add_proposal)

    def make_update(
        self, gate: Gate, decisions: Iterable[ToolVerdict], messages: Sequence[BaseMessage] = ()
    ) -> Update:
        """Return the update with the decisions on calls, and the messages that follow from them."""
        insights: dict[str, ToolVerdict] = {}
        for insight in decisions:
            key = insight.model_dump_json()
            if insight.kind == "confirm" and insight.tool in self.tools:
                # The customer is asked once about calls that do the same.
                key = self.tools[insight.tool].make_call_identity(insight.arguments)
            insights.setdefault(key, insight)
        calls = list(gate.previous_calls)
        calls += [insight for insight in insights.values() if insight.kind == "run"]
        others = [insight for insight in insights.values() if insight.kind != "run"]
        called_tools = {call.tool for call in calls}
        answered_insights = find_requests_of_last_reply(gate.state)
        still_open = [insight for insight in answered_insights if insight.tool not in called_tools]
        records = [*still_open, *calls, *others]

        update: Update = {"tool_insights": gate.state.replace_records("tool_insights", records)}
        all_messages = [*answer_abandoned_calls(gate.state.messages, self.tools), *messages]
        if all_messages:
            update[self.messages_key] = all_messages
        return update
