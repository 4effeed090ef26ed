"""Strategies: nodes that decide what the agent does next, all behind the same gate."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Unpack

from langchain_core.messages import BaseMessage, ToolCall

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import ToolVerdict
from arq_graph.nodes.agent_node import AgentNode, NodeSettings, describe_guideline
from arq_graph.nodes.agreement import AgreementOutcome, Agrees, resolve_agreement
from arq_graph.nodes.blueprint_node import DeferredCall, NodeSteps, QuestionBatch
from arq_graph.nodes.confirmation import make_reply
from arq_graph.nodes.early_reply import check_reply
from arq_graph.nodes.events import ReplySent, ToolsDecided
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.grants import get_active_scores
from arq_graph.nodes.messages import list_ids, make_calling_message, make_history_repair
from arq_graph.nodes.node import Update
from arq_graph.nodes.proposed_calls import DecisionContext, P
from arq_graph.nodes.state_view import StateView
from arq_graph.nodes.tool_arguments import ToolSchema
from arq_graph.nodes.turn_records import find_requests_of_last_reply
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.blueprint import ARQ
from arq_graph.reasoning.reasoner import ModelLike


class StrategyNodeSettings(NodeSettings, total=False):
    """Settings that all strategies share; `agrees` accepts further answers as a yes, besides the shipped list."""

    agrees: Agrees | None


class Strategy(AgentNode[ARQ]):
    """A node that decides what the agent does next.

    A subclass implements `decide`: it asks its model, and has each proposed call checked by the gate. The calls that
    the customer has agreed to are made here, before a model is asked.
    """

    agent_state_channels: ClassVar[tuple[str, ...]] = (
        "guideline_matches",
        "passages",
        "journeys",
        "tool_insights",
        "agreements",
        "variables",
    )
    default_temperature = 0.05
    sends_reply = False
    """True if it sends the reply itself; otherwise another node does, such as `MessageReviser`."""

    def __init__(
        self,
        model: ModelLike,
        agent: Agent,
        *,
        agrees: Agrees | None = None,
        **settings: Unpack[NodeSettings],
    ) -> None:
        super().__init__(model, agent, None, **settings)
        self.agrees = agrees
        self.tools = {name: ToolSchema(tool) for name, tool in agent.toolbox.items()}

    def steps(self, state: StateView) -> NodeSteps:
        """Make the call that the customer has agreed to; without one, decide."""
        state.require_message()
        if state.conversation.unreadable_line:
            replies = [self.make_unreadable_reply(state)] if self.sends_reply else []
            return self.make_update(Gate(self.agent, state, self.tools), (), replies)
        gate = yield from self.make_gate(state)
        outcome = yield from resolve_agreement(gate, self.agrees)
        if isinstance(outcome, AgreementOutcome):
            return (yield from self.decide(gate, outcome))
        state.emit(ToolsDecided(decisions=outcome.verdicts))
        return self.make_update(gate, outcome.verdicts, [outcome.message]) | outcome.update

    @abstractmethod
    def decide(self, gate: Gate, agreement_outcome: AgreementOutcome) -> NodeSteps:
        """Ask the model, check the calls that it proposes with the gate, and return the update.

        Include the verdicts of `agreement_outcome` in the update.
        """

    def make_gate(self, state: StateView) -> Generator[DeferredCall, Any, Gate]:
        """Return the gate for this point of the turn; may yield the developer's functions that decide its rules."""
        yield from ()  # a generator, as the gate of a subclass with policies
        return Gate(self.agent, state, self.tools)

    def describe_context(
        self, context: DecisionContext[P], counts: dict[str, int], optional: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the sections of a prompt's tail that describe the state.

        `counts` and `optional` are added to the section `now`, without what is empty in `optional`.
        """
        gate, agreement_outcome = context.gate, context.agreement_outcome
        active_ids = list(get_active_scores(self.agent, gate.state))
        candidates: list[str] = []
        for name in self.agent.toolbox:
            if name in gate.granted and not gate.rules.find_refusal(name):
                candidates.append(name)
        asked_again: list[dict[str, Any]] = []
        refused: list[dict[str, Any]] = []
        for verdict in agreement_outcome.verdicts:
            call: dict[str, Any] = {"tool": verdict.tool, "arguments": verdict.arguments}
            if verdict.kind == "confirm":
                asked_again.append(call)
            else:
                refused.append(call | {"why": verdict.problem})
        all_optional: dict[str, Any] = {
            "active": active_ids,
            "results": list_ids(gate.state.conversation.current_turn_results),
            "failed": list_ids(gate.failed_results),
            "empty": list_ids(gate.empty_results),
            "awaiting_confirmation": agreement_outcome.describe_pending(),
            "asked_about_again": asked_again,
            "refused": refused,
        }
        values: dict[str, Any] = {"candidates": candidates}
        sections = self.describe_turn(gate.state, values | counts, all_optional | optional)
        descriptions = [describe_guideline(self.agent.get_guideline(id)) for id in active_ids]
        sections["active_guidelines"] = descriptions if self.agent.rules else None
        return sections

    def ask_for_proposal(
        self, context: DecisionContext[P], sections: Mapping[str, Any], review: Callable[[Any], P]
    ) -> Generator[QuestionBatch, Any, tuple[Answer[Any], P]]:
        """Ask the model, with the sections in the prompt's tail; return its answer and what that proposes.

        `review` returns what an answer proposes. Each proposal is added to the context, also if code objects to it: the
        call in it may need the customer's agreement. The last one is that of the answer.

        Each answer is reviewed twice, first for its complaints and then as a proposal. In `Parallel` the two may happen
        in different contexts: the complaints in that of the speculative question, and the proposal in that of the
        question asked now, to which the answer is replayed.
        """

        def check(value: Any) -> list[Complaint]:
            return review(value).make_complaints(type(value))

        def add_proposal(value: Any, _: Sequence[Complaint]) -> None:
            # Reviewed before it is added, since a review reads the earlier proposals.
            proposal = review(value)
            context.proposals.append(proposal)

        prompt = self.build_prompt(context.gate.state.conversation, sections)
        active_ids = tuple(sections["now"].get("active", ()))
        question = Question(self.blueprint, prompt, check, guidelines=active_ids, on_candidate=add_proposal)
        (answer,) = yield from self.ask_questions(question)
        return answer, context.proposals[-1]

    def make_calls(self, gate: Gate, verdicts: Iterable[ToolVerdict], calls: Sequence[ToolCall]) -> Update:
        """Return the update with the verdicts, and a message that makes the calls."""
        message = make_calling_message(self.agent, gate.state, calls)
        return self.make_update(gate, verdicts, [message])

    def send_reply(
        self,
        gate: Gate,
        verdicts: Iterable[ToolVerdict],
        text: str,
        to_confirm: Sequence[ToolVerdict],
        metadata: Mapping[str, Any] | None = None,
    ) -> NodeSteps:
        """Return the update with the verdicts, and a reply that asks the customer to confirm the last ones.

        If the reply fails an output check, another message is sent in its place.
        """
        reply = make_reply(self.agent, gate.state, text, to_confirm, metadata=metadata)
        checked, other_message = yield from check_reply(self.agent, gate.state, reply.message.text)
        if other_message is not None:
            return self.make_update(gate, verdicts, [other_message]) | checked
        gate.state.emit(ReplySent(content=reply.message.text))
        gate.state.emit(reply.event)
        return self.make_update(gate, verdicts, [reply.message]) | reply.update | checked

    def make_update(
        self, gate: Gate, verdicts: Iterable[ToolVerdict], messages: Sequence[BaseMessage] = ()
    ) -> Update:
        """Return the update with the verdicts on calls, and the messages that follow from them.

        The calls made earlier in this turn are recorded again. So are the arguments and confirmations that the last
        reply asked for, unless their tool was called since.
        """
        distinct: dict[str, ToolVerdict] = {}
        for verdict in verdicts:
            identity = verdict.model_dump_json()
            if verdict.kind == "confirm" and verdict.tool in self.tools:
                # The customer is asked once about calls that do the same.
                identity = self.tools[verdict.tool].make_call_identity(verdict.arguments)
            distinct.setdefault(identity, verdict)
        run_verdicts = list(gate.earlier_runs)
        other_verdicts: list[ToolVerdict] = []
        for verdict in distinct.values():
            if verdict.kind == "run":
                run_verdicts.append(verdict)
            else:
                other_verdicts.append(verdict)
        called_tools = {verdict.tool for verdict in run_verdicts}
        open_verdicts: list[ToolVerdict] = []
        for verdict in find_requests_of_last_reply(gate.state):
            if verdict.tool not in called_tools:
                open_verdicts.append(verdict)
        records = open_verdicts + run_verdicts + other_verdicts

        update: Update = {"tool_insights": gate.state.build_channel_value("tool_insights", records)}
        repair = make_history_repair(gate.state.history, self.tools)
        if repair or messages:
            update[self.messages_key] = repair + list(messages)
        return update
