"""What was said and done in one conversation so far, and why it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from arq_graph.milestones.langchain_messages import record_messages
from arq_graph.milestones.reports.records import Ended
from arq_graph.milestones.transcript import Event, Message
from arq_graph.reasoning.sections import clean


@dataclass
class Conversation:
    """What was said and done so far.

    Args:
        thread_id: Its thread.
        messages: All messages, finished turns first.
        ended: Why it ended; None while it goes on.
        error: What went wrong, where that ended it.
        failure: The same, as it was raised.
        by_user: Whether it was the user who failed, and not the app.
        turn_seconds: How long the app took for each turn.
        seconds: How long it took altogether.
        turn_begins: How many messages there were before what the app does in the turn under way.
    """

    thread_id: str
    messages: list[BaseMessage] = field(default_factory=list)
    ended: Ended | None = None
    error: str | None = None
    failure: Exception | None = None
    by_user: bool = False
    turn_seconds: list[float] = field(default_factory=list)
    seconds: float = 0.0
    turn_begins: int = 0
    _asides: list[tuple[int, AIMessage, HumanMessage]] = field(default_factory=list)
    _said_before: tuple[Message, ...] = ()
    _settled: int = 0

    @property
    def events(self) -> list[Event]:
        """The messages as events of a transcript."""
        return record_messages(self.messages).events

    @property
    def said(self) -> tuple[Message, ...]:
        """What user and agent said."""
        # Turns that are over are not read again: a long conversation asks for this at every turn.
        return (*self._said_before, *_said(self.messages[self._settled :]))

    @property
    def turns(self) -> int:
        """How many messages the user sent."""
        return sum(message.type == "human" for message in self.messages)

    def begin(self, opening: HumanMessage) -> None:
        """A turn begins with the user's message."""
        self._said_before = self.said
        self._settled = len(self.messages)
        self.messages.append(opening)
        self.turn_begins = len(self.messages)
        self._asides = []

    def take(self, new: Sequence[BaseMessage]) -> None:
        """What the app did since the turn began, which stands in the place of what it had done before."""
        messages = list(new)
        for place, spoken, answer in reversed(self._asides):
            # An app may keep what was asked in an interrupt among its messages, or not.
            if not any(each.type == "ai" and each.text == spoken.text for each in messages[place:]):
                messages[place:place] = [spoken, answer]
        self.messages[self.turn_begins :] = messages

    def set_aside(self, place: int, spoken: str, answer: str) -> None:
        """The agent asked the user something while it went on with its turn."""
        self._asides.append((place, AIMessage(spoken), HumanMessage(answer)))

    def end(self, why: Ended, failure: Exception | None = None, *, by_user: bool = False) -> None:
        """It is over."""
        self.ended = why
        self.failure = failure
        self.by_user = by_user
        if failure is not None:
            self.error = clean(f"{type(failure).__name__}: {failure}" if str(failure) else repr(failure))


def _said(messages: Sequence[BaseMessage]) -> list[Message]:
    return [event for event in record_messages(messages).events if isinstance(event, Message)]
