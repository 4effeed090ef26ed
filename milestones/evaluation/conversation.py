"""One conversation of any app with a simulated user: they take turns, within limits; what goes wrong ends it alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages

from arq_graph.agent.modules import describe_error
from arq_graph.errors import ArqGraphError, InputError, ModelRequestError, ModelUnavailableError
from arq_graph.milestones.evaluation.scenario import Limits
from arq_graph.milestones.event_loop import run_in_loop
from arq_graph.milestones.reports.records import Ended
from arq_graph.milestones.transcript import Event, Message
from arq_graph.milestones.transcripts.messages import parse_messages
from arq_graph.milestones.users.agenda import AgendaUser
from arq_graph.milestones.users.agent_message import has_question
from arq_graph.milestones.users.user_spec import ScriptedUser, User, join_agent_texts
from arq_graph.reasoning.failures import classify_failure
from arq_graph.reasoning.sections import clean
from arq_graph.reasoning.usage import CallLimitReached, UsageTracker

App = Any
"""Anything with `invoke` or `ainvoke`, which take `{"messages": […]}` and a config, and give messages."""

MOST_INTERRUPTS = 25
"""So often may an app wait in one turn; more would be a circle."""

_SECONDS_FOR_STATE = 5.0


@dataclass
class Conversation:
    """What was said and done so far.

    Attributes:
        thread_id: Its thread.
        messages: All messages, `history` of which were there before it began.
        ended: Why it ended; None while it goes on.
        failure: What was raised, where that ended it.
        is_user_failure: Whether it was the user who failed, and not the app.
        turn_seconds: How long the app took for each turn.
        usage: The calls of the app to its models.
        moves: What the app's channel `moves` says of each turn, where it has one, by the id of the user's message.
    """

    thread_id: str
    messages: list[BaseMessage] = field(default_factory=list)
    ended: Ended | None = None
    failure: BaseException | None = None
    is_user_failure: bool = False
    turn_seconds: list[float] = field(default_factory=list)
    usage: UsageTracker = field(default_factory=UsageTracker)
    history: int = 0
    moves: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def error(self) -> str | None:
        """What went wrong, in words, where that ended it."""
        if self.failure is None:
            return None
        # The line of a model's error is left out, because a replay raises the error elsewhere.
        return clean(describe_error(self.failure, with_location=self.failure not in self.usage.failures))

    @property
    def events(self) -> list[Event]:
        """The messages as events of a transcript."""
        return parse_messages(self.messages)[0]

    @property
    def spoken_messages(self) -> tuple[Message, ...]:
        """What user and agent said."""
        return tuple(event for event in self.events if isinstance(event, Message))

    @property
    def turns(self) -> int:
        """How many messages the user sent."""
        return sum(message.type == "human" for message in self.messages[self.history :])


def converse(app: App, user: User, **settings: Any) -> Conversation:
    """Hold a conversation; its settings are those of `aconverse`.

    Raises:
        InputError: An event loop runs already: await `aconverse` there.
    """
    return run_in_loop(aconverse(app, user, **settings), "aconverse")


async def aconverse(
    app: App,
    user: User,
    *,
    limits: Limits | None = None,
    thread_id: str | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    on_change: Callable[[Conversation], None] = lambda _: None,
    history: Sequence[BaseMessage] = (),
    variables: Mapping[str, Any] | None = None,
) -> Conversation:
    """Hold a conversation. What the app or the user raises ends it, and is told in it.

    A user who is a guide speaks only of what it is asked: once the agent's turn is over and asks nothing, the
    conversation has ended. An app with a checkpointer is given what is new, any other all messages so far. One that is
    not async runs in a thread. What takes longer than the limit of seconds is cancelled; a thread is left behind. Calls
    that wait for an operator are approved.

    Args:
        app: Anything that is invoked with `{"messages": […]}`.
        user: Who talks to it; made for this conversation.
        limits: How far it may go; those of `Limits()` unless given.
        thread_id: Its thread, for an app that keeps threads; a new one unless given.
        should_stop: Asked before anything that costs a call is begun: whether nothing more is to be.
        on_change: Called whenever there is something new.
        history: What was said and done before; the app is given it with the first message.
        variables: Values of the agent's variables, given to the app in the same way.
    """
    limits = limits or Limits()
    held = Conversation(thread_id or str(uuid4()), usage=UsageTracker(limits.calls))
    held.messages += history
    held.history = len(held.messages)
    talk = _Talk(app, user, limits, held, should_stop, on_change, variables)
    clock = asyncio.timeout(limits.seconds)
    try:
        async with clock:
            await talk.take_turns()
    except _Ended as over:
        held.ended = over.why
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # by who awaits this; an app may raise it for reasons of its own
        await talk.keep_what_was_done()
        held.ended = "seconds" if clock.expired() else "error"
        if any(isinstance(each, CallLimitReached) for each in _causes(error)):
            held.ended = "calls"
        if held.ended == "error":
            held.failure, held.is_user_failure = error, talk.user_speaks
    on_change(held)
    return held


class _Ended(Exception):
    def __init__(self, why: Ended) -> None:
        self.why = why


@dataclass
class _Talk:
    """App and user, taking turns; the settings are those of `aconverse`."""

    app: App
    user: User
    limits: Limits
    held: Conversation
    should_stop: Callable[[], bool]
    on_change: Callable[[Conversation], None]
    variables: Mapping[str, Any] | None = None
    user_speaks: bool = False
    turn: _Turn | None = None

    def __post_init__(self) -> None:
        self.config = {"configurable": {"thread_id": self.held.thread_id}, "callbacks": [self.held.usage]}
        self.remembers = bool(getattr(self.app, "checkpointer", None))
        # With a checkpointer, LangGraph need not wait for each step to be written.
        is_graph = self.remembers and hasattr(self.app, "aget_state")
        self.settings: dict[str, Any] = {"durability": "exit"} if is_graph else {}

    async def take_turns(self) -> None:
        held = self.held
        is_guided = getattr(getattr(self.user, "spec", None), "role", None) == "guide"
        while True:
            # Scripted users cost nothing, and may be at their end.
            if self.should_stop() and not isinstance(self.user, AgendaUser | ScriptedUser):
                raise _Ended("limit")
            text = await self._hear()
            if self.should_stop():
                raise _Ended("limit")
            self.turn = turn = _Turn(held.messages, HumanMessage(text, id=str(uuid4())))
            before = len(held.messages)
            await self._answer(turn)
            if not any(message.type == "ai" for message in held.messages[before:]):
                raise InputError("the app answered the user with no message of its own")
            # An agent that asks its guide within the turn asks nothing after it.
            if is_guided and (turn.has_asked or not has_question(join_agent_texts(held.spoken_messages))):
                raise _Ended("user")

    async def keep_what_was_done(self) -> None:
        """Keep what an app's own thread has of a turn that failed."""
        if self.turn is None or self.user_speaks or not self.settings:
            return
        with suppress(Exception):
            state = await asyncio.wait_for(self.app.aget_state(self.config), _SECONDS_FOR_STATE)
            messages = state.values["messages"]
            self._keep_moves(self.turn, state.values)
            if any(each.id == self.turn.opening.id for each in messages):
                self.turn.take(_new_messages(messages, self.turn.opening))

    def _keep_moves(self, turn: _Turn, state: Any) -> None:
        kept, turn_id = state.get("moves") if isinstance(state, Mapping) else None, str(turn.opening.id)
        if isinstance(kept, list):
            known = (each for each in kept if isinstance(each, Mapping))
            self.held.moves[turn_id] = [each for each in known if each.get("turn") == turn_id]

    async def _hear(self) -> str:
        self.user_speaks = True
        text = await self.user.aspeak(self.held.spoken_messages)
        self.user_speaks = False
        if text is None or self.held.turns >= self.limits.turns:
            raise _Ended("user" if text is None else "turns")
        return clean(text)

    async def _answer(self, turn: _Turn) -> None:
        self.held.turn_seconds.append(0.0)
        is_new = self.held.turns > 1 and self.remembers
        given: Any = {"messages": [turn.opening] if is_new else list(self.held.messages)}
        if self.variables and not is_new:
            given["variables"] = dict(self.variables)
        for _ in range(MOST_INTERRUPTS):
            self.on_change(self.held)
            given = await self._ask_app(given)
            self._keep_moves(turn, given)
            turn.take(_new_messages(given, turn.opening))
            self.on_change(self.held)
            waiting = given.get("__interrupt__") if isinstance(given, Mapping) else None
            if not waiting:
                return
            answers = {each.id: await self._resume(turn, each.value) for each in waiting}
            # Only LangGraph has interrupts, so nothing else here depends on it.
            command = import_module("langgraph.types").Command
            given = command(resume=answers if len(answers) > 1 else next(iter(answers.values())))
        raise InputError(f"the app waited for an answer {MOST_INTERRUPTS} times in one turn")

    async def _ask_app(self, given: Any) -> Any:
        await asyncio.sleep(0)  # an app that never waits would not be stopped at its limit
        begun = time.monotonic()
        try:
            with self.held.usage.listen():
                if callable(getattr(self.app, "ainvoke", None)):
                    return await self.app.ainvoke(given, self.config, **self.settings)
                return await asyncio.to_thread(self.app.invoke, given, self.config, **self.settings)
        finally:
            self.held.turn_seconds[-1] += time.monotonic() - begun

    async def _resume(self, turn: _Turn, value: Any) -> Any:
        """The answer to an interrupt: approval of the calls that wait for an operator, or words of the user."""
        spoken = value
        if isinstance(value, Mapping):
            if calls := value.get("action_requests"):
                return {"decisions": [{"type": "approve"} for _ in calls]}
            spoken = value.get("text") if value.get("type") == "speak" else None
        if not isinstance(spoken, str):
            raise InputError(f"the app waits for what nobody here can answer: {str(value)[:200]}")
        turn.ask(spoken)
        text = await self._hear()
        self.held.messages.append(HumanMessage(text))
        return text


class _Turn:
    """The messages of one turn: what the app did, and in between what it asked the user, each once.

    An app that asks within its turn may keep question and answer among its messages, or not.
    """

    def __init__(self, messages: list[BaseMessage], opening: HumanMessage) -> None:
        messages.append(opening)
        self.opening = opening
        self.has_asked = False
        self._messages = messages
        self._taken = 0
        self._unsaid: list[str] = []  # questions that the app may still say among its messages

    def take(self, new: list[BaseMessage]) -> None:
        """What the app did since the turn began; what is new of it is added."""
        for message in new[self._taken :]:
            if asked := [each for each in self._unsaid if _says(message, each)]:
                self._unsaid.remove(asked[0])
            elif not (self.has_asked and message.type == "human"):
                self._messages.append(message)
        self._taken = len(new)

    def ask(self, spoken: str) -> None:
        """The app asks the user something."""
        self.has_asked = True
        if not _says(self._messages[-1], spoken):
            self._messages.append(AIMessage(spoken))
            self._unsaid.append(spoken)


def _says(message: BaseMessage, spoken: str) -> bool:
    is_speech = message.type == "ai" and not getattr(message, "tool_calls", None)
    return is_speech and message.text.strip() == spoken.strip()


def _new_messages(answer: Any, opening: HumanMessage) -> list[BaseMessage]:
    """The messages after the one that began the turn; all of them if the app returns only new ones.

    Raises:
        InputError: The answer is neither `{"messages": […]}`, nor messages, nor text.
    """
    held = answer.get("messages") if isinstance(answer, Mapping) else answer
    listed: Any = (
        held if isinstance(held, list | tuple) else [AIMessage(held) if isinstance(held, str) else held]
    )
    try:
        messages = convert_to_messages(listed)
    except Exception as error:
        raise InputError(
            f"the app answered with {held!r:.80}; it must give {{'messages': […]}}, messages, or text"
        ) from error
    same_id = [at for at, each in enumerate(messages) if each.id == opening.id]
    same_words = [
        at for at, each in enumerate(messages) if each.type == "human" and each.text == opening.text
    ]
    openings = same_id or same_words
    return messages[openings[-1] + 1 :] if openings else messages


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def is_graph(app: object) -> bool:
    """Whether an app is a compiled graph of LangGraph's, which need not be imported to see that."""
    return any(each.__name__ == "Pregel" for each in type(app).__mro__)


def is_model_failure(error: BaseException | None, of_models: Collection[BaseException] = ()) -> bool:
    """Whether a model or the way to it failed, which says nothing about the app: it is worth another try.

    A lost connection alone does not say so, as it may be that of the app's own database: it has to be among what
    calls of models raised, as a `UsageTracker` heard it.
    """
    for one in _causes(error):
        if isinstance(one, ArqGraphError):  # it says what it is
            return isinstance(one, ModelRequestError | ModelUnavailableError)
        if one in of_models and isinstance(one, Exception) and classify_failure(one).is_from_provider:
            return True
    return False
