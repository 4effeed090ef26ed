"""A word on tool calls that is given in one interrupt for all of them, in LangChain's human-in-the-loop shape.

The request and the answer have the `batched` shape of LangChain's `HumanInTheLoopMiddleware` (`HITLRequest`,
`HITLResponse`), so that a user interface made for it serves here too. It is asked in a node of its own, before
any tool runs: interrupts inside a shared `ToolNode` race for the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.types import interrupt
from pydantic import AfterValidator, BaseModel, ValidationError

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Agreement, PendingCall
from arq_graph.errors import InputError
from arq_graph.nodes.channels import Node, StateView, Update, describe_first_error, get_channel_types
from arq_graph.nodes.confirmation import find_open_agreement, format_question, update_agreements
from arq_graph.nodes.messages import make_tool_message, unanswered_calls
from arq_graph.nodes.tool_arguments import ToolArguments


class EditedAction(BaseModel, extra="forbid"):
    """The call as that person wants it; the tool's name cannot be changed."""

    name: str
    args: dict[str, Any]


class Decision(BaseModel, extra="forbid"):
    """A person's word on one call."""

    type: Literal["approve", "edit", "reject", "respond"]
    edited_action: EditedAction | None = None
    message: str | None = None


class HITLResponse(BaseModel, extra="forbid"):
    """A person's words on all calls, by position."""

    decisions: list[Decision]


class ApproveCalls(Node):
    """Ask about the pending calls that are confirmed by `operator` or by `interrupt`, all in one interrupt.

    Resume with `Command(resume={"decisions": [{"type": "approve"}, …]})`, one decision for each call of the
    request, in its order. An edited call replaces the one in its message, so that the thread shows what ran.

    Args:
        agent: The specification.
        messages_key: Channel of the messages.

    Raises:
        InputError: The answer does not fit; nothing is run, and the interrupt can be answered again.
    """

    name = "approve"

    def __init__(self, agent: Agent, *, messages_key: str = "messages") -> None:
        self.agent = agent
        self.messages_key = messages_key
        asked = agent.confirmed_by("operator", "interrupt")
        self._tools = {name: ToolArguments(agent.toolbox[name]) for name in asked}
        self.declare_channels({messages_key: list[AnyMessage], **get_channel_types("agreements")})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Interrupt for a person's word, or carry it out."""
        state = StateView(input, self.messages_key, agent=self.agent.name)
        calls = [call for call in unanswered_calls(state.messages) if call["name"] in self._tools]
        if not calls:
            return {}
        fitting: Any = Annotated[HITLResponse, AfterValidator(partial(self._fitting, calls))]
        try:
            answer: HITLResponse = interrupt(self._request(calls), response_schema=fitting)
        except ValidationError as error:
            raise InputError(f"the answer does not fit: {describe_first_error(error)}") from error
        return self._carried_out(state, calls, answer.decisions)

    def _request(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        asked = [
            {"name": call["name"], "args": call["args"], "description": self._description(call)}
            for call in calls
        ]
        decisions = ["approve", "edit", "reject", "respond"]
        names = dict.fromkeys(call["name"] for call in calls)
        review = [{"action_name": name, "allowed_decisions": decisions} for name in names]
        return {"action_requests": asked, "review_configs": review}

    def _description(self, call: ToolCall) -> str:
        """What is asked about a call: code's own question where the customer is asked, else what the tool does."""
        if self.agent.confirm[call["name"]].by == "interrupt":
            return format_question(self.agent, [PendingCall(tool=call["name"], arguments=call["args"])])
        return self.agent.toolbox[call["name"]].description

    def _fitting(self, calls: Sequence[ToolCall], answer: HITLResponse) -> HITLResponse:
        if len(answer.decisions) != len(calls):
            raise ValueError(f"{len(calls)} calls wait for a decision each, got {len(answer.decisions)}")
        for number, (call, decision) in enumerate(zip(calls, answer.decisions, strict=True)):
            name, edited, why = call["name"], decision.edited_action, ""
            if decision.type == "respond" and decision.message is None:
                why = '"respond" needs "message", which is taken for the tool\'s result'
            elif decision.type == "edit" and (edited is None or edited.name != name):
                fits = f'{{"name": "{name}", "args": {{…}}}}; it may change no more than args'
                why = f'"edit" needs "edited_action": {fits}'
            elif decision.type == "edit" and edited:
                why = "; ".join(
                    f"{each.argument.name if each.argument else 'args'}: {each.message or each.kind}"
                    for each in self._tools[name].validate(edited.args)
                )
            if why:
                raise ValueError(f"decisions[{number}] on {name!r}: {why}")
        return answer

    def _carried_out(
        self, state: StateView, calls: Sequence[ToolCall], decisions: Sequence[Decision]
    ) -> Update:
        """What the decisions make of the calls: results, edits, and a yes that is spent on each call that runs."""
        edits: dict[str | None, dict[str, Any]] = {}
        results: list[AnyMessage] = []
        agreed: list[Agreement] = []
        for call, decision in zip(calls, decisions, strict=True):
            by = self.agent.confirm[call["name"]].by
            if decision.type == "respond":
                results.append(make_tool_message(call, decision.message or "", "success"))
            elif decision.type == "reject":
                who = "an operator" if by == "operator" else "the customer"
                reason = f": {decision.message}" if decision.message else ""
                results.append(make_tool_message(call, f"{who} did not allow this call{reason}"))
            else:
                arguments = call["args"]
                if decision.type == "edit" and decision.edited_action:
                    arguments = edits[call["id"]] = decision.edited_action.args
                spent = PendingCall(tool=call["name"], arguments=arguments, tool_call_id=call["id"])
                agreed.append(
                    Agreement(
                        turn=state.turn, id=str(uuid4()), by=by, calls=(spent,), answer_message_id=state.turn
                    )
                )
        if edits:
            asking = next(m for m in reversed(state.messages) if isinstance(m, AIMessage) and m.tool_calls)
            changed: list[ToolCall] = [
                {**call, "args": edits.get(call["id"], call["args"])} for call in asking.tool_calls
            ]
            results.insert(0, asking.model_copy(update={"tool_calls": changed}))
        waiting = find_open_agreement(state)  # what the customer was asked still waits
        return {
            self.messages_key: results,
            **update_agreements(state, *(waiting[:1] if waiting else ()), *agreed),
        }
