"""An operator's word on tool calls: one interrupt for all of them, in LangChain's human-in-the-loop shape.

The request and the answer have the `batched` shape of LangChain's `HumanInTheLoopMiddleware` (`HITLRequest`,
`HITLResponse`), so that a user interface made for it serves here too. It is asked in a node of its own, before
any tool runs: interrupts inside a shared `ToolNode` race for the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self, cast

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import interrupt
from pydantic import BaseModel, ConfigDict, ValidationError, create_model, model_validator

from arq_graph.agent.spec import Agent
from arq_graph.errors import InputError
from arq_graph.nodes.channels import Reader
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.nodes.turns import pending_calls

Update = dict[str, Any]


class EditedAction(BaseModel):
    """The call as the operator wants it; the tool's name cannot be changed."""

    model_config = ConfigDict(extra="forbid")

    name: str
    args: dict[str, Any]


class Decision(BaseModel):
    """The operator's word on one call.

    Args:
        type: `approve` runs it as it is, `edit` with other arguments, `reject` not at all, `respond` takes
            `message` for the tool's result.
        edited_action: For `edit`: the call to run instead.
        message: For `reject`: the reason. For `respond`: the result.
    """

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
    """Ask the operator about the pending calls with `confirm="operator"`, in one interrupt.

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
        self._arguments = {
            name: ToolArguments(agent.toolbox[name]) for name in agent.confirmed_by("operator")
        }

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Interrupt for the operator, or carry out the answer."""
        messages = Reader(input, self.messages_key).messages()
        calls = [call for call in pending_calls(messages) if call["name"] in self._arguments]
        if not calls:
            return {}
        try:
            answer = interrupt(self._request(calls), response_schema=self._answer_to(calls))
        except ValidationError as error:
            raise InputError(f"the operator's answer does not fit: {_first_problem(error)}") from error
        return {self.messages_key: list(self._carried_out(messages, calls, answer.decisions))}

    def _request(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        return {
            "action_requests": [
                {
                    "name": call["name"],
                    "args": call["args"],
                    "description": self.agent.toolbox[call["name"]].description,
                }
                for call in calls
            ],
            "review_configs": [
                {"action_name": name, "allowed_decisions": ["approve", "edit", "reject", "respond"]}
                for name in dict.fromkeys(call["name"] for call in calls)
            ],
        }

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
