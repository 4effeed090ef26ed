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
        messages = state.messages()
        calls = [call for call in pending_calls(messages) if call["name"] in self._arguments]
        if not calls:
            return {}
        try:
            answer = interrupt(self._request(calls), response_schema=self._answer_to(calls))
        except ValidationError as error:
            raise InputError(f"the operator's answer does not fit: {_first_problem(error)}") from error
        return {
            self.messages_key: list(self._carried_out(messages, calls, answer.decisions)),
            **recorded(state, *self._agreed(state, calls, answer.decisions)),
        }

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

    def _agreed(
        self, state: Reader, calls: Sequence[ToolCall], decisions: Sequence[Decision]
    ) -> list[Agreement]:
        """A record for each call that may run now: its yes is spent on it."""
        turn = Conversation(state.messages()).turn
        agreed = []
        for call, decision in zip(calls, decisions, strict=True):
            if decision.type in ("approve", "edit"):
                arguments = decision.edited_action.args if decision.edited_action else call["args"]
                spent = WaitingCall(tool=call["name"], arguments=arguments, call=call["id"])
                by = self._by[call["name"]]
                agreed.append(Agreement(turn=turn, id=str(uuid4()), by=by, calls=(spent,), agreed_in=turn))
        return agreed

    def _answer_to(self, calls: Sequence[ToolCall]) -> type[OperatorAnswer]:
        """A schema that holds an answer against these very calls."""
        arguments = self._arguments

        def fits(answer: OperatorAnswer) -> OperatorAnswer:
            if len(answer.decisions) != len(calls):
                raise ValueError(f"{len(calls)} calls wait for a decision each, got {len(answer.decisions)}")
            for number, (call, decision) in enumerate(zip(calls, answer.decisions, strict=True)):
                edited = decision.edited_action
                if decision.type != "edit" or edited is None:
                    continue
                if edited.name != call["name"]:
                    raise ValueError(
                        f"decisions[{number}] is about {call['name']!r}: an edit may change its arguments, not the "
                        f"tool; got {edited.name!r}"
                    )
                place = f"decisions[{number}].edited_action.args"
                tool = arguments[call["name"]]
                if unknown := edited.args.keys() - {argument.name for argument in tool.arguments}:
                    raise ValueError(f"{place}: {call['name']!r} has no argument {min(unknown)!r}")
                if problems := tool.validate(edited.args):
                    first = problems[0]
                    where = f"{place}.{first.argument.name}" if first.argument else place
                    raise ValueError(f"{where}: {first.message or first.kind}")
            return answer

        return create_model(
            "HITLResponse",
            __base__=OperatorAnswer,
            __validators__={"fits": cast(Any, model_validator(mode="after")(fits))},
        )

    def _carried_out(
        self, messages: Sequence[AnyMessage], calls: Sequence[ToolCall], decisions: Sequence[Decision]
    ) -> list[AnyMessage]:
        by_call = {call["id"]: decision for call, decision in zip(calls, decisions, strict=True)}
        edits = {
            id: d.edited_action.args for id, d in by_call.items() if d.type == "edit" and d.edited_action
        }
        update: list[AnyMessage] = []
        if edits:
            asking = next(m for m in reversed(messages) if isinstance(m, AIMessage) and m.tool_calls)
            changed = [
                ToolCall(**{**call, "args": edits[call["id"]]}) if call["id"] in edits else call
                for call in asking.tool_calls
            ]
            update.append(asking.model_copy(update={"tool_calls": changed}))
        for call in calls:
            decision = by_call[call["id"]]
            if decision.type == "respond":
                update.append(_result(call, decision.message or "", "success"))
            elif decision.type == "reject":
                reason = f": {decision.message}" if decision.message else ""
                update.append(_result(call, f"an operator did not allow this call{reason}", "error"))
        return update


def _result(call: ToolCall, content: str, status: Literal["success", "error"]) -> ToolMessage:
    return ToolMessage(content, name=call["name"], tool_call_id=call["id"] or "", status=status)


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    message = str(first["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message
