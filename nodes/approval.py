"""Approval: a person decides on tool calls, in one interrupt for all of them.

The request and the response have the `batched` shape of LangChain's `HumanInTheLoopMiddleware` (`HITLRequest`,
`HITLResponse`), so a user interface made for it works here too. A node of its own asks, before any tool runs:
interrupts inside a shared `ToolNode` race for the response.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Annotated, Any, Literal
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.types import interrupt
from pydantic import AfterValidator, BaseModel, ValidationError

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Agreement, PendingCall
from arq_graph.errors import InputError, describe_first_error
from arq_graph.nodes.confirmation import format_question, write_agreements
from arq_graph.nodes.messages import find_unanswered_calls, make_tool_message
from arq_graph.nodes.node import Node, Update, get_channel_types
from arq_graph.nodes.state_view import StateView, view_state
from arq_graph.nodes.tool_arguments import ToolSchema
from arq_graph.reasoning.sections import as_json
from arq_graph.reasoning.tool_calls import PlacedCall


class EditedAction(BaseModel, extra="forbid"):
    """A call as the person edited it; the tool's name must be the same."""

    name: str
    args: dict[str, Any]


class Decision(BaseModel, extra="forbid"):
    """A person's decision on one call."""

    type: Literal["approve", "edit", "reject", "respond"]
    edited_action: EditedAction | None = None
    message: str | None = None


class HITLResponse(BaseModel, extra="forbid"):
    """A person's decisions on all calls, in the order of the request."""

    decisions: list[Decision]


class CallApprover(Node):
    """Ask about the calls that are confirmed by `operator` or by `interrupt`, all in one interrupt.

    By `operator`, an operator decides. By `interrupt`, the customer does, in the interface that handles the interrupt.

    Resume with `Command(resume={"decisions": [{"type": "approve"}, …]})`, one decision for each call of the
    request, in its order. An edited call replaces the one in its message, so that the thread shows what ran.

    Args:
        agent: The specification.
        messages_key: Channel of the messages.

    Raises:
        InputError: The response doesn't fit; nothing is run, and the interrupt can be answered again.
    """

    name = "approve"

    def __init__(self, agent: Agent, *, messages_key: str = "messages") -> None:
        self.agent = agent
        self.messages_key = messages_key
        names = agent.get_confirmed_tools("operator", "interrupt")
        self._tools = {name: ToolSchema(agent.toolbox[name]) for name in names}
        self.declare_channels({messages_key: list[AnyMessage]} | get_channel_types("agreements"))

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Interrupt for a person's decisions, or apply them."""
        state = view_state(self.agent, input, self.messages_key)
        unanswered_calls = find_unanswered_calls(state.messages)
        placed_calls = [call for call in unanswered_calls if call.call["name"] in self._tools]
        if not placed_calls:
            return {}
        calls = [placed_call.call for placed_call in placed_calls]
        response_type: Any = Annotated[HITLResponse, AfterValidator(partial(self._check_response, calls))]
        try:
            response: HITLResponse = interrupt(self._make_request(calls), response_schema=response_type)
        except ValidationError as error:
            raise InputError(f"invalid response: {describe_first_error(error)}") from error
        return self._apply_decisions(state, placed_calls, response.decisions)

    def _make_request(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        requests: list[dict[str, Any]] = []
        configs: dict[str, dict[str, Any]] = {}
        for call in calls:
            name, arguments = call["name"], call["args"]
            description = self.agent.toolbox[name].description
            # The customer, unlike an operator, reads the confirmation question.
            if self.agent.confirm[name].by == "interrupt":
                pending_call = PendingCall(tool=name, arguments=arguments)
                description = format_question(self.agent, [pending_call])
            requests.append({"name": name, "args": arguments, "description": description})
            decisions = ["approve", "edit", "reject", "respond"]
            configs[name] = {"action_name": name, "allowed_decisions": decisions}
        return {"action_requests": requests, "review_configs": list(configs.values())}

    def _check_response(self, calls: Sequence[ToolCall], response: HITLResponse) -> HITLResponse:
        if len(response.decisions) != len(calls):
            count = len(response.decisions)
            raise ValueError(f"expected {len(calls)} decisions, got {count}")
        for number, (call, decision) in enumerate(zip(calls, response.decisions, strict=True)):
            if problem := self._find_problem(call["name"], decision):
                raise ValueError(f"decisions[{number}] on {call['name']!r}: {problem}")
        return response

    def _find_problem(self, name: str, decision: Decision) -> str | None:
        """Return the problem with a decision, or None."""
        if decision.type == "respond" and decision.message is None:
            return '"respond" needs "message", which becomes the tool\'s result'
        if decision.type != "edit":
            return None
        edited = decision.edited_action
        if edited is None or edited.name != name:
            example = f'{{"name": "{name}", "args": {{…}}}}'
            return f'"edit" needs "edited_action": {example}; it may change no more than args'
        completed, problems = self._tools[name].complete(edited.args)
        reasons: list[str] = []
        for problem in problems:
            reasons.append(f"{problem.argument_name or 'args'}: {problem.message or problem.kind}")
        for argument, value in edited.args.items():
            if not problems and str(completed.get(argument)) != str(value):
                reasons.append(
                    f"{argument}: the tool makes {as_json(completed.get(argument))} of it; give that value"
                )
        return "; ".join(reasons) or None

    def _apply_decisions(
        self, state: StateView, placed_calls: Sequence[PlacedCall], decisions: Sequence[Decision]
    ) -> Update:
        """Return the update with results, edited calls, and an agreement for each call that runs."""
        messages: list[AnyMessage] = []
        agreements: list[Agreement] = []
        edited_arguments: dict[int, dict[str, Any]] = {}
        message = placed_calls[0].message
        for placed_call, decision in zip(placed_calls, decisions, strict=True):
            call = placed_call.call
            by = self.agent.confirm[call["name"]].by
            if decision.type == "respond":
                messages.append(make_tool_message(call, decision.message or "", "success"))
                continue
            if decision.type == "reject":
                person = "an operator" if by == "operator" else "the customer"
                reason = f": {decision.message}" if decision.message else ""
                messages.append(make_tool_message(call, f"{person} did not allow this call{reason}"))
                continue
            arguments = call["args"]
            if decision.type == "edit" and decision.edited_action:
                arguments, _ = self._tools[call["name"]].complete(decision.edited_action.args)
                edited_arguments[placed_call.position] = arguments
            approved_call = PendingCall(
                tool=call["name"], arguments=arguments, tool_call_id=call["id"], message_id=message.id
            )
            agreements.append(
                Agreement(
                    turn=state.turn_id,
                    id=str(uuid4()),
                    by=by,
                    calls=(approved_call,),
                    answer_message_id=state.turn_id,  # the approval counts in this turn alone
                )
            )
        if edited_arguments:
            messages.insert(0, _edit_calls(message, edited_arguments))
        return write_agreements(state, *agreements) | {self.messages_key: messages}


def _edit_calls(message: AIMessage, edited_arguments: Mapping[int, dict[str, Any]]) -> AIMessage:
    """Return the message with other arguments for the calls at these positions."""
    tool_calls = deepcopy(message.tool_calls)
    for position, arguments in edited_arguments.items():
        tool_calls[position]["args"] = arguments
    return message.model_copy(update={"tool_calls": tool_calls})
