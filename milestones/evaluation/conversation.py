"""What was said and done in one conversation so far, and why it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from arq_graph.milestones.reports.records import Ended
from arq_graph.milestones.transcript import Event, Message
from arq_graph.milestones.transcripts.messages import events_of
from arq_graph.reasoning.sections import clean
from arq_graph.reasoning.usage import UsageTracker


@dataclass
class Aside:
    """What the agent asked the user while it went on with its turn.

    Args:
        place: How many messages the app had made in the turn when it waited.
        spoken: What it asked.
        answer: What the user said to it; None before that.
    """

    place: int
    spoken: str
    answer: str | None = None


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
        usage: The calls of the app to its models.
        turn_begins: How many messages there were before what the app does in the turn under way.
    """

    thread_id: str
    messages: list[BaseMessage] = field(default_factory=list)
    ended: Ended | None = None
    error: str | None = None
    failure: BaseException | None = None
    by_user: bool = False
    turn_seconds: list[float] = field(default_factory=list)
    seconds: float = 0.0
    usage: UsageTracker = field(default_factory=UsageTracker)
    turn_begins: int = 0
    _asides: list[Aside] = field(default_factory=list)
    _done: list[BaseMessage] = field(default_factory=list)
    _said_before: tuple[Message, ...] = ()
    _settled: int = 0

    @property
    def events(self) -> list[Event]:
        """The messages as events of a transcript."""
        return events_of(self.messages)[0]

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
        self._asides, self._done = [], []

    def take(self, new: Sequence[BaseMessage]) -> None:
        """What the app did since the turn began, which stands in the place of what it had done before."""
        self._done = list(new)
        self.messages[self.turn_begins :] = _with_asides(self._done, self._asides)

    def ask(self, spoken: str) -> None:
        """The agent asks the user something while it goes on with its turn."""
        self._asides.append(Aside(len(self._done), spoken))
        self.take(self._done)

    def answer(self, text: str) -> None:
        """The user answers what was asked last."""
        self._asides[-1].answer = text
        self.take(self._done)

    @property
    def asked_aside(self) -> bool:
        """Whether the agent asked anything while it went on with the turn."""
        return bool(self._asides)

    def end(self, why: Ended, failure: BaseException | None = None, *, by_user: bool = False) -> None:
        """It is over."""
        self.ended = why
        self.failure = failure
        self.by_user = by_user
        if failure is not None:
            self.error = clean(f"{type(failure).__name__}: {failure}" if str(failure) else repr(failure))


def _said(messages: Sequence[BaseMessage]) -> list[Message]:
    return [event for event in events_of(messages)[0] if isinstance(event, Message)]


def _with_asides(messages: Sequence[BaseMessage], asides: Sequence[Aside]) -> list[BaseMessage]:
    """The messages with each question and answer once: an app may keep them among its messages itself, or not.

    It may have written a question down before it waited, or after it was answered.
    """
    kept: set[int] = set()
    missing: dict[int, list[BaseMessage]] = {}
    for aside in asides:
        # A question may stand in front of its place, but not in front of that of an earlier one.
        since = max((each.place for each in asides if each.place < aside.place), default=0)
        asked = _found(messages, "ai", aside.spoken, since, kept)
        answered = None
        if aside.answer is not None:
            behind = aside.place if asked is None else max(aside.place, asked + 1)
            # The app that keeps the question may keep the answer in words of its own.
            words = aside.answer if asked is None else None
            answered = _found(messages, "human", words, behind, kept)
        kept |= {each for each in (asked, answered) if each is not None}
        if asked is None:
            place = aside.place if answered is None else answered
            missing.setdefault(place, []).append(AIMessage(aside.spoken))
        if answered is None and aside.answer is not None:
            place = aside.place if asked is None else max(aside.place, asked + 1)
            missing.setdefault(place, []).append(HumanMessage(aside.answer))
    woven: list[BaseMessage] = []
    for index, message in enumerate(messages):
        woven += [*missing.pop(index, ()), message]
    return [*woven, *(each for _, rest in sorted(missing.items()) for each in rest)]


def _found(
    messages: Sequence[BaseMessage], kind: str, text: str | None, since: int, but: set[int]
) -> int | None:
    """Where the first message of a kind is, with this text if one is given."""
    for index in range(since, len(messages)):
        if index in but or messages[index].type != kind:
            continue
        if text is None or messages[index].text.strip() == text.strip():
            return index
    return None
