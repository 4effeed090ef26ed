"""What was said and done in one conversation so far, why it ended, and whose failure that was."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from arq_graph.errors import ArqGraphError, ModelRequestError, ModelUnavailableError
from arq_graph.milestones.reports.records import Ended
from arq_graph.milestones.transcript import Event, Message
from arq_graph.milestones.transcripts.messages import events_of
from arq_graph.reasoning.failures import read_failure
from arq_graph.reasoning.sections import clean
from arq_graph.reasoning.usage import UsageTracker


@dataclass
class Conversation:
    """What was said and done so far.

    Attributes:
        thread_id: Its thread.
        messages: All messages, finished turns first.
        ended: Why it ended; None while it goes on.
        error: What went wrong, where that ended it; `failure` is the same as it was raised.
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
    # What the agent asked while it went on with its turn, and was answered; with its place among what it did.
    _asides: list[tuple[int, list[BaseMessage]]] = field(default_factory=list)
    _done: list[BaseMessage] = field(default_factory=list)

    @property
    def events(self) -> list[Event]:
        """The messages as events of a transcript."""
        return events_of(self.messages)[0]

    @property
    def said(self) -> tuple[Message, ...]:
        """What user and agent said."""
        return tuple(event for event in self.events if isinstance(event, Message))

    @property
    def turns(self) -> int:
        """How many messages the user sent."""
        return sum(message.type == "human" for message in self.messages)

    @property
    def asked_aside(self) -> bool:
        """Whether the agent asked anything while it went on with the turn."""
        return bool(self._asides)

    def begin(self, opening: HumanMessage) -> None:
        """A turn begins with the user's message."""
        self.messages.append(opening)
        self.turn_begins = len(self.messages)
        self.turn_seconds.append(0.0)
        self._asides, self._done = [], []

    def take(self, new: Sequence[BaseMessage]) -> None:
        """What the app did since the turn began, which stands in the place of what it had done before."""
        self._done = list(new)
        self._weave()

    def ask(self, spoken: str) -> None:
        """The agent asks the user something while it goes on with its turn."""
        self._asides.append((len(self._deeds(spoken)), [AIMessage(spoken)]))
        self._weave()

    def answer(self, text: str) -> None:
        """The user answers what was asked last."""
        self._asides[-1][1].append(HumanMessage(text))
        self._weave()

    def end(self, why: Ended, failure: BaseException | None = None, *, by_user: bool = False) -> None:
        """It is over."""
        self.ended = why
        self.failure = failure
        self.by_user = by_user
        if failure is not None:
            self.error = clean(f"{type(failure).__name__}: {failure}" if str(failure) else repr(failure))

    def _weave(self) -> None:
        woven = self._deeds()
        for place, aside in reversed(self._asides):
            woven[place:place] = aside
        self.messages[self.turn_begins :] = woven

    def _deeds(self, *asking: str) -> list[BaseMessage]:
        """What the app did, without what was asked and answered on the way: it may keep that as well, or not."""
        asked = [text.strip() for text in (*(aside[0].text for _, aside in self._asides), *asking)]
        if not asked:
            return list(self._done)
        deeds = []
        for message in self._done:
            if (
                message.type == "ai"
                and not getattr(message, "tool_calls", None)
                and message.text.strip() in asked
            ):
                asked.remove(message.text.strip())
            elif message.type != "human":
                deeds.append(message)
        return deeds


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and all that led to it, each once; the members of a group are among them."""
    seen: set[int] = set()
    still = [error]
    while still:
        one = still.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        still.append(one.__cause__ or one.__context__)
        if isinstance(one, BaseExceptionGroup):
            still += reversed(one.exceptions)


def is_out_of_reach(error: BaseException | None, of_models: Collection[BaseException] = ()) -> bool:
    """Whether a model or the way to it failed, which says nothing about the app: it is worth another try.

    A lost connection alone does not say so, as it may be that of the app's own database: it has to be among what
    calls of models raised, as a `UsageTracker` heard it.
    """
    heard = {id(each) for each in of_models}
    for one in causes(error):
        if isinstance(one, ModelRequestError | ModelUnavailableError):
            return True
        if isinstance(one, ArqGraphError):
            return False  # it says what it is
        if id(one) in heard and isinstance(one, Exception) and read_failure(one).from_provider:
            return True
    return False


def told(error: BaseException) -> str:
    """An error in words."""
    name, said = type(error).__name__, str(error)
    return said if isinstance(error, ArqGraphError) and said else f"{name}: {said}" if said else name
