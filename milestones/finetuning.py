"""Recorded conversations as turns that a model can learn from (Pre-Act 3.2.1, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.turn_level.steps import messages_of


@dataclass(frozen=True)
class RecordedTurn:
    """What an agent did after a message of the customer.

    Args:
        history: What was said and done before, the customer's message last.
        calls: Each call as a message, which also holds what was said beside it, and its result.
        answer: What the agent said behind its last call; empty where the record ends before an answer.
    """

    history: tuple[BaseMessage, ...] = ()
    calls: tuple[tuple[AIMessage, ToolMessage], ...] = ()
    answer: str = ""

    def messages(self) -> list[BaseMessage]:
        """Everything up to the answer."""
        return [*self.history, *(message for pair in self.calls for message in pair)]


def recorded_turns(transcript: Transcript) -> Iterator[RecordedTurn]:
    """The turns of a conversation in which its agent did something. Pre-Act 3.2.1, Algorithm 1.

    Calls that were made at the same time follow one another, each with its result. Words before a call stand beside
    it, and several messages behind the last call are one answer. A malformed call is left out with its result, as if it
    had not been made. What the agent says before the customer has spoken is history alone, as is what the conversation
    began with (`Transcript.history`); a system message in the middle of a turn is history of the next.
    """
    turn, later, waiting = RecordedTurn(), list[BaseMessage](), dict[str, AIMessage]()
    before = sum(1 for _ in messages_of(transcript.events[: transcript.history]))
    for number, message in enumerate([*messages_of(transcript.events), HumanMessage("")]):
        if isinstance(message, HumanMessage) and (turn.calls or turn.answer):
            if number > before and any(isinstance(each, HumanMessage) for each in turn.history):
                yield turn
            said = [AIMessage(turn.answer)] if turn.answer else []
            turn, later = RecordedTurn((*turn.messages(), *said, *later)), []
        if isinstance(message, AIMessage):
            words = "\n\n".join(filter(None, (turn.answer, message.text)))
            for call in message.tool_calls:
                waiting[str(call["id"])] = AIMessage(words, tool_calls=[call])
                words = ""
            turn = replace(turn, answer=words)
        elif not isinstance(message, ToolMessage):
            if turn.calls or turn.answer:
                later.append(message)
            else:
                turn = replace(turn, history=(*turn.history, message))
        elif made := waiting.pop(message.tool_call_id, None):
            turn = replace(turn, calls=(*turn.calls, (made, message)))
