"""A word on tool calls that is given in one interrupt for all of them, in LangChain's human-in-the-loop shape.

The request and the answer have the `batched` shape of LangChain's `HumanInTheLoopMiddleware` (`HITLRequest`,
`HITLResponse`), so that a user interface made for it serves here too. It is asked in a node of its own, before
any tool runs: interrupts inside a shared `ToolNode` race for the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import interrupt
from pydantic import BaseModel, ConfigDict, ValidationError, create_model, model_validator

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Agreement, WaitingCall
from arq_graph.errors import InputError
from arq_graph.nodes.channels import Reader, name_channels, our_channels
from arq_graph.nodes.confirmation import question_of, recorded
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.nodes.turns import pending_calls
from arq_graph.reasoning.conversation import Conversation

Update = dict[str, Any]


class EditedAction(BaseModel):
    """The call as the operator wants it; the tool's name cannot be changed."""

    model_config = ConfigDict(extra="forbid")

    name: str
    args: dict[str, Any]


class Decision(BaseModel):
    """The operator's word on one call."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["approve", "edit", "reject", "respond"]
    edited_action: EditedAction | None = None
    message: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.type == "edit" and self.edited_action is None:
            raise ValueError('"edit" needs "edited_action": {"name": …, "args": {…}}')
        if self.type == "respond" and self.message is None:
            raise ValueError('"respond" needs "message", which is taken for the tool\'s result')
        return self


class OperatorAnswer(BaseModel):
    """The operator's words on all calls, by position."""

    model_config = ConfigDict(extra="forbid")

    decisions: list[Decision]


class ApproveCalls(Runnable[Any, Update]):
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
        self._by = {name: how.by for name, how in agent.confirm.items()}
        asked = agent.confirmed_by("operator", "interrupt")
        self._arguments = {name: ToolArguments(agent.toolbox[name]) for name in asked}
        name_channels(self, {messages_key: list[AnyMessage], **our_channels("agreements")})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Interrupt for the operator, or carry out the answer."""
        state = Reader(input, self.messages_key, agent=self.agent.name)
        calls = [call for call in pending_calls(state.messages()) if call["name"] in self._arguments]
        if not calls:
            return {}
        try:
            answer = interrupt(self._request(calls), response_schema=self._answer_to(calls))
        except ValidationError as error:
            raise InputError(f"the operator's answer does not fit: {_first_problem(error)}") from error
        return self._carried_out(state, list(zip(calls, answer.decisions, strict=True)))

    def _request(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        return {
            "action_requests": [
                {
                    "name": call["name"],
                    "args": call["args"],
                    "description": self._description(call),
                }
                for call in calls
            ],
            "review_configs": [
                {"action_name": name, "allowed_decisions": ["approve", "edit", "reject", "respond"]}
                for name in dict.fromkeys(call["name"] for call in calls)
            ],
        }

    def _description(self, call: ToolCall) -> str:
        """What is asked about a call: code's own question where the customer is asked, else what the tool does."""
        if self._by[call["name"]] == "interrupt":
            return question_of(self.agent, [WaitingCall(tool=call["name"], arguments=call["args"])])
        return self.agent.toolbox[call["name"]].description

    def _answer_to(self, calls: Sequence[ToolCall]) -> type[OperatorAnswer]:
        """A schema that holds an answer against these very calls."""

        def fits(answer: OperatorAnswer) -> OperatorAnswer:
            if len(answer.decisions) != len(calls):
                raise ValueError(f"{len(calls)} calls wait for a decision each, got {len(answer.decisions)}")
            for number, (call, decision) in enumerate(zip(calls, answer.decisions, strict=True)):
                if decision.type == "edit" and decision.edited_action:
                    self._check_edit(f"decisions[{number}]", call["name"], decision.edited_action)
            return answer

        return create_model(
            "HITLResponse",
            __base__=OperatorAnswer,
            __validators__={"fits": cast(Any, model_validator(mode="after")(fits))},
        )

    def _check_edit(self, place: str, name: str, edited: EditedAction) -> None:
        """Hold an edit against the tool: another tool, an unknown argument, or what its schema does not take."""
        if edited.name != name:
            raise ValueError(
                f"{place} is about {name!r}: an edit may change its arguments, not the tool; got {edited.name!r}"
            )
        tool, place = self._arguments[name], f"{place}.edited_action.args"
        if unknown := edited.args.keys() - {argument.name for argument in tool.arguments}:
            raise ValueError(f"{place}: {name!r} has no argument {min(unknown)!r}")
        for problem in tool.validate(edited.args):
            where = f"{place}.{problem.argument.name}" if problem.argument else place
            raise ValueError(f"{where}: {problem.message or problem.kind}")

    def _carried_out(self, state: Reader, decided: Sequence[tuple[ToolCall, Decision]]) -> Update:
        """What the decisions make of the calls: results, edits, and a yes that is spent on each call that runs."""
        turn = Conversation(state.messages()).turn
        edits: dict[str | None, dict[str, Any]] = {}
        results: list[AnyMessage] = []
        agreed: list[Agreement] = []
        for call, decision in decided:
            if decision.type == "respond":
                results.append(_result(call, decision.message or "", "success"))
            elif decision.type == "reject":
                reason = f": {decision.message}" if decision.message else ""
                results.append(_result(call, f"an operator did not allow this call{reason}", "error"))
            else:
                arguments = call["args"]
                if decision.type == "edit" and decision.edited_action:
                    arguments = edits[call["id"]] = decision.edited_action.args
                spent = WaitingCall(tool=call["name"], arguments=arguments, call=call["id"])
                by = self._by[call["name"]]
                agreed.append(Agreement(turn=turn, id=str(uuid4()), by=by, calls=(spent,), agreed_in=turn))
        if edits:
            asking = next(m for m in reversed(state.messages()) if isinstance(m, AIMessage) and m.tool_calls)
            changed = [
                ToolCall(**{**call, "args": edits.get(call["id"], call["args"])})
                for call in asking.tool_calls
            ]
            results.insert(0, asking.model_copy(update={"tool_calls": changed}))
        return {self.messages_key: results, **recorded(state, *agreed)}


def _result(call: ToolCall, content: str, status: Literal["success", "error"]) -> ToolMessage:
    return ToolMessage(content, name=call["name"], tool_call_id=call["id"] or "", status=status)


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    message = str(first["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message
