"""Tool calls in a conversation, each with the result that answers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Entry(Generic[T]):
    call: T
    message_index: int
    id: str
    tool: str


class UnansweredCalls(Generic[T]):
    """The calls that have no result yet, in the order in which they were made. Their ids may repeat or be empty."""

    def __init__(self) -> None:
        self._entries: list[_Entry[T]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def copy(self) -> UnansweredCalls[T]:
        """Return a copy that changes by itself."""
        copied: UnansweredCalls[T] = UnansweredCalls()
        copied._entries = self._entries.copy()
        return copied

    def add(self, call: T, message_index: int, id: str, tool: str) -> None:
        """Add a call of the message at this index."""
        self._entries.append(_Entry(call, message_index, id, tool))

    def pop(self, id: str) -> T | None:
        """Remove and return the nearest call with this id; within a message, the first one; None if there is none."""
        nearest: _Entry[T] | None = None
        for entry in reversed(self._entries):
            if nearest is not None and entry.message_index != nearest.message_index:
                break
            if entry.id == id:
                nearest = entry
        return self._remove(nearest) if nearest else None

    def pop_first(self, tool: str, *, without_id: bool) -> T | None:
        """Remove and return the first call of a tool, of any if its name is empty; perhaps only of those without id."""
        for entry in self._entries:
            if tool in ("", entry.tool) and not (without_id and entry.id):
                return self._remove(entry)
        return None

    def _remove(self, entry: _Entry[T]) -> T:
        self._entries.remove(entry)
        return entry.call


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
    # Slow to import, and those who read recorded conversations need only the calls.
    from langchain_core.messages import AIMessage, ToolMessage

    calls: list[PlacedCall] = []
    unanswered: UnansweredCalls[PlacedCall] = UnansweredCalls()
    for index, message in enumerate(messages):
        if isinstance(message, AIMessage):
            for position, call in enumerate(message.tool_calls):
                placed_call = PlacedCall(call, message, index, position)
                calls.append(placed_call)
                unanswered.add(placed_call, index, call["id"] or "", call["name"])
        elif isinstance(message, ToolMessage):
            answered_call = unanswered.pop(message.tool_call_id)
            if answered_call is not None:
                answered_call.result = message
    return calls
