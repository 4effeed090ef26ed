"""A message of the agent's own model with what the gate says about the calls in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage

from arq_graph.agent.state import ToolVerdict


@dataclass(frozen=True)
class CheckedMessage:
    """A message of the model, and what the gate says to the calls that it proposes.

    `refusals` are the reasons why calls are not made, and `arguments` those of the calls that are, by their ids.
    """

    message: AIMessage
    verdicts: list[ToolVerdict]
    refusals: dict[str | None, str]
    arguments: dict[str | None, dict[str, Any]]

    @property
    def allowed_calls(self) -> list[ToolCall]:
        """The calls that are made, with their completed arguments."""
        calls: list[ToolCall] = []
        for call in self.message.tool_calls:
            if call["id"] not in self.refusals:
                calls.append({**call, "args": self.arguments.get(call["id"], call["args"])})
        return calls

    @property
    def verdicts_to_confirm(self) -> list[ToolVerdict]:
        """The verdicts on calls that the customer has to agree to."""
        return [verdict for verdict in self.verdicts if verdict.kind == "confirm"]

    @property
    def has_only_refused_calls(self) -> bool:
        """True if the message proposes calls, and all of them are refused."""
        return bool(self.refusals) and not self.allowed_calls and not self.verdicts_to_confirm

    def report_refusals(self) -> list[AnyMessage]:
        """Return the message with a tool message for each refused call, as the model is told."""
        messages: list[AnyMessage] = [self.message]
        for call_id, reason in self.refusals.items():
            messages.append(ToolMessage(reason, tool_call_id=call_id or "", status="error"))
        return messages
