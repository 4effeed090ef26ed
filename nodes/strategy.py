"""What every strategy has in common: a node that decides what the agent does next, behind the same gate."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Unpack

from langchain_core.messages import AIMessage, BaseMessage, ToolCall

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import ToolInsight
from arq_graph.nodes.blueprint_node import AgentNode, NodeSettings, Steps, UserFunction
from arq_graph.nodes.channels import StateView, Update
from arq_graph.nodes.confirmation import AgreementOutcome, Agrees, resolve_agreement
from arq_graph.nodes.current_turn import find_answered_insights
from arq_graph.nodes.events import ToolsDecided
from arq_graph.nodes.gate import Gate, get_active_scores
from arq_graph.nodes.messages import answer_abandoned_calls, classify_result, make_agent_message
from arq_graph.nodes.spec_sections import describe_guideline, describe_turn, describe_variables
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.reasoning.answer import Complaint, Question
from arq_graph.reasoning.blueprint import ARQ
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.reasoner import ModelLike


class StrategyOptions(NodeSettings, total=False):
    """Settings that all strategies share.

    `agrees`: what else is a yes of the customer's than the shipped list has.
    """

    agrees: Agrees | None


class Strategy(AgentNode[ARQ]):
    """A node that decides what the agent does next.

    A subclass asks its model (`decide`), and has each call that comes of it checked by the gate. What the customer
    agreed to is made here, before any model is asked.
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
        self.tools = {name: ToolArguments(tool) for name, tool in agent.toolbox.items()}

    def steps(self, state: StateView) -> Steps:
        """Make the call that the customer has agreed to; where there is none, decide."""
        gate = Gate(self.agent, state, self.read_conversation(state), self.tools)
        outcome = yield from resolve_agreement(gate, self.agrees, partial(self.find_objection, gate))
        if outcome.call is None:
            return (yield from self.decide(gate, outcome))
        state.emit(ToolsDecided(decisions=outcome.insights))
        return {
            **self.make_update(gate, outcome.insights, [self.make_call_message([outcome.call])]),
            **outcome.agreements,
        }

    @abstractmethod
    def decide(self, gate: Gate, outcome: AgreementOutcome) -> Steps:
        """Ask the model, and return the update."""

    def find_objection(self, gate: Gate, tool: str) -> Generator[UserFunction, Any, str]:
        """Why this strategy's policies do not allow a tool now; empty if they do."""
        yield from ()
        return ""

    def describe_context(
        self,
        gate: Gate,
        outcome: AgreementOutcome,
        counts: Mapping[str, int],
        further: Mapping[str, Any],
        objection: Callable[[str], str] = lambda _: "",
    ) -> dict[str, Any]:
        """How things stand, for a prompt's tail; of the section `now`, what holds nothing is left out."""
        active = list(get_active_scores(self.agent, gate.state))
        guidelines = [describe_guideline(self.agent.guideline(id)) for id in active]
        results = gate.conversation.current_turn_results
        shown = [(each, {"tool": each.tool, "arguments": each.arguments}) for each in outcome.insights]
        listed = {
            "active": active,
            "results": [line.id for line in results],
            "failed": [line.id for line in gate.failed_results],
            "empty": [line.id for line in results if classify_result(line) == "empty"],
            "awaiting_confirmation": outcome.describe_pending(),
            "asked_about_again": [call for each, call in shown if each.kind == "confirm"],
            "refused": [{**call, "why": each.problem} for each, call in shown if each.kind != "confirm"],
            **further,
        }
        candidates = [name for name in self.agent.toolbox if name in gate.granted and not objection(name)]
        return {
            "variables": describe_variables(self.agent, gate.state),
            "active_guidelines": guidelines if self.agent.guidelines else None,
            "now": describe_turn(gate.conversation, {"candidates": candidates, **counts}, listed),
        }

    def make_question(
        self,
        conversation: Conversation,
        tail: Mapping[str, Any],
        check: Callable[[Any], Sequence[Complaint]],
    ) -> Question[Any]:
        """The question what to do now, asked with how things stand."""
        prompt = self.build_prompt(conversation, tail, head=self.head)
        return Question(self.blueprint, prompt, check, guidelines=tuple(tail["now"].get("active", ())))

    def make_update(
        self, gate: Gate, decided: Iterable[ToolInsight], messages: Sequence[BaseMessage] = ()
    ) -> Update:
        """The update with what was decided in this look, and the messages that come of it."""
        distinct: dict[str, ToolInsight] = {}
        for each in decided:
            # Calls that do the same are put to the customer once.
            waits = each.kind == "confirm" and each.tool in self.tools
            key = self.tools[each.tool].make_key(each.arguments) if waits else each.model_dump_json()
            distinct.setdefault(key, each)
        run = [*gate.previous_calls, *(each for each in distinct.values() if each.kind == "run")]
        others = [each for each in distinct.values() if each.kind != "run"]
        called = {each.tool for each in run}
        before = [
            each for each in find_answered_insights(gate.state, gate.conversation) if each.tool not in called
        ]
        update: Update = {
            "tool_insights": gate.state.replace_records("tool_insights", [*before, *run, *others])
        }
        if said := [*answer_abandoned_calls(gate.state.messages, self.tools), *messages]:
            update[self.messages_key] = said
        return update

    def make_call_message(self, calls: Sequence[ToolCall]) -> AIMessage:
        """The message that makes calls."""
        return make_agent_message(self.agent.name, tool_calls=list(calls))
