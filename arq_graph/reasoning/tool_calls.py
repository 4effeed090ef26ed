"""Tool calls in a conversation, each with the result that answers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage


@dataclass(eq=False)
class PlacedCall:
    """A tool call, identified by its message and its position in it.

    Its id does not identify it: some providers number calls anew in each turn, and clients write ids of their own.
    """

    call: ToolCall
    message: AIMessage
    message_index: int
    position: int
    result: ToolMessage | None = None


def pair_calls(messages: Sequence[BaseMessage]) -> list[PlacedCall]:
    """Return the calls in messages, in order, each with its result.

    A result answers the nearest call before it that has its id and no result yet; within a message, the first one. A
    result without such a call answers none.
    """
    calls: list[PlacedCall] = []
    unanswered: dict[str, list[PlacedCall]] = {}  # by id; the last of a list is answered next
    for index, message in enumerate(messages):
        if isinstance(message, AIMessage):
            new_calls: list[PlacedCall] = []
            for position, call in enumerate(message.tool_calls):
                new_calls.append(PlacedCall(call, message, index, position))
            calls.extend(new_calls)
            for new_call in reversed(new_calls):
                unanswered.setdefault(new_call.call["id"] or "", []).append(new_call)
        elif isinstance(message, ToolMessage) and unanswered.get(message.tool_call_id):
            unanswered[message.tool_call_id].pop().result = message
    return calls
