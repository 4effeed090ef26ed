"""The turns of recorded conversations, as fine-tuning takes them (Pre-Act 3.2.1, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall

from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.turn_level.turn_steps import convert_events_to_messages
from arq_graph.reasoning.conversation import Conversation


class RecordedCall(NamedTuple):
    """One call that the agent made, with the text beside it, and its result."""

    message: AIMessage
    result: BaseMessage

    @property
    def call(self) -> ToolCall:
        """The call."""
        (call,) = self.message.tool_calls
        return call


@dataclass
class RecordedTurn:
    """A customer's message and what the agent did after it.

    Args:
        history: The messages up to the customer's.
        calls: Every call, one after the other, also those that were made at the same time.
        answer: What the agent said behind the last call; empty if the record ends before that.
        later_system_messages: System messages within the turn, which are history of the next one.
    """

    history: list[BaseMessage]
    calls: list[RecordedCall] = field(default_factory=list)
    answer: str = ""
    later_system_messages: list[BaseMessage] = field(default_factory=list)

    @cached_property
    def conversation(self) -> Conversation:
        """The whole turn and its history, as a planner reads it."""
        return Conversation(self.messages)

    @property
    def messages(self) -> list[BaseMessage]:
        """The history and the turn."""
        messages = list(self.history)
        for recorded_call in self.calls:
            messages += recorded_call
        if self.answer:
            messages.append(AIMessage(self.answer))
        return messages

    @property
    def has_action(self) -> bool:
        """True if the agent called or said something."""
        return bool(self.calls or self.answer)

    @property
    def has_customer(self) -> bool:
        """True if the customer has said something before it."""
        return any(isinstance(message, HumanMessage) for message in self.history)

    def add_agent_message(self, message: AIMessage, results: list[BaseMessage]) -> None:
        """Add what the agent said, and its calls with their results."""
        texts = [text for text in (self.answer, message.text) if text]
        self.answer = "\n\n".join(texts)
        for call, result in zip(message.tool_calls, results, strict=True):
            self.calls.append(RecordedCall(AIMessage(self.answer, tool_calls=[call]), result))
            self.answer = ""


def split_turns(transcript: Transcript) -> Iterator[RecordedTurn]:
    """Yield the turns of a conversation in which its agent did something.

    Text before a call stands beside it, and several messages behind the last call are one answer. A malformed call is
    left out with its result. What the agent says before the customer does, or what the conversation began with, is
    history alone.
    """
    messages = list(convert_events_to_messages(transcript.events))
    first_measured = len(list(convert_events_to_messages(transcript.events[: transcript.history_length])))
    turn = RecordedTurn(history=[])
    for position, message in enumerate(messages):
        if isinstance(message, AIMessage):
            # The results follow directly, in the order of the calls.
            results = messages[position + 1 : position + 1 + len(message.tool_calls)]
            turn.add_agent_message(message, results)
        elif message.type == "tool":
            continue
        elif not turn.has_action:
            turn.history.append(message)
        elif isinstance(message, HumanMessage):
            if position > first_measured and turn.has_customer:
                yield turn
            turn = RecordedTurn([*turn.messages, *turn.later_system_messages, message])
        else:
            turn.later_system_messages.append(message)
    if turn.has_action and turn.has_customer and len(messages) > first_measured:
        yield turn
