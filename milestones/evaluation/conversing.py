"""One conversation between an app and a simulated user, turn by turn, within its limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import uuid4

from langchain_core.messages import HumanMessage

from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.app import (
    App,
    Operator,
    decided,
    new_messages,
    remembers,
    resuming,
    settings_of,
    waiting_in,
)
from arq_graph.milestones.evaluation.conversation import Conversation
from arq_graph.milestones.evaluation.failing import causes, outlive
from arq_graph.milestones.evaluation.scenario import Limits
from arq_graph.milestones.evaluation.sealing import ProgramEnded, sealed
from arq_graph.milestones.evaluation.spending import CallCounter, CallLimitReached
from arq_graph.milestones.evaluation.threads import in_thread
from arq_graph.milestones.transcript import Message
from arq_graph.milestones.users.hearing import asks_something
from arq_graph.milestones.users.user import User, UserTurn, last_words
from arq_graph.reasoning.sections import clean

MOST_INTERRUPTS = 25
"""So often may an app wait in one turn; more would be a circle."""


@dataclass(frozen=True)
class AskUser:
    """The user is to speak."""

    said: tuple[Message, ...]


@dataclass(frozen=True)
class AskApp:
    """The app is to go on; `input` is new messages, or what answers an interrupt."""

    input: Any


Steps = Generator[AskUser | AskApp, Any, None]
Watch = Callable[[Conversation], None]


def converse(
    app: App,
    user: User,
    *,
    limits: Limits | None = None,
    thread_id: str | None = None,
    operator: Operator = "approve",
    counter: CallCounter | None = None,
    stopped: Callable[[], bool] = lambda: False,
    watch: Watch = lambda _: None,
) -> Conversation:
    """Hold a conversation. What the app or the user raises ends it, and is told in it.

    A user who is a guide speaks only of what it is asked: once the agent's turn is over and leaves nothing to be
    answered, its task has ended, and the conversation with it. An app with a checkpointer is given what is new, any
    other all messages so far.

    Args:
        app: Anything that is invoked with `{"messages": […]}`.
        user: Who talks to it; made for this conversation.
        limits: How far it may go; those of `Limits()` unless given.
        thread_id: Its thread, for an app that keeps threads; a new one unless given.
        operator: Decides on calls that wait for an operator.
        counter: Counts the app's calls; it should have the limit of `limits.calls`, as one that is made here has.
        stopped: Asked before each turn: whether nothing more is to be begun.
        watch: Called whenever there is something new.

    Raises:
        InputError: The app is async only.
    """
    if not callable(getattr(app, "invoke", None)):
        raise InputError("the app has no `invoke`: await `aconverse`")
    held, steps, call = _begun(app, user, limits, thread_id, operator, counter, stopped)
    step = call.asks(next(steps, None))
    while step is not None:
        try:
            if isinstance(step, AskUser):
                given: Any = user.speak(step.said)
            else:
                with call.counter.listening():
                    given = app.invoke(step.input, call.config, **call.settings)
        except BaseException as error:
            outlive(error)
            call.failed(error, _state(app, call))
            break
        step = call.taken(steps, given)
        watch(held)
    held.seconds = call.seconds
    return held


async def aconverse(
    app: App,
    user: User,
    *,
    limits: Limits | None = None,
    thread_id: str | None = None,
    operator: Operator = "approve",
    counter: CallCounter | None = None,
    stopped: Callable[[], bool] = lambda: False,
    watch: Watch = lambda _: None,
) -> Conversation:
    """Hold a conversation without blocking; see `converse`. An app that is not async runs in a thread."""
    before = _cancels()
    held, steps, call = _begun(app, user, limits, thread_id, operator, counter, stopped)
    # In a task of its own: an app that cancels the task it runs in cancels no other conversation. It is one task for
    # all turns, since between an answer and the next request no other conversation should have to be waited for.
    try:
        with sealed():
            await asyncio.create_task(_talk(app, user, held, steps, call, watch))
    except asyncio.CancelledError as error:
        if _cancels() > before:
            raise  # not by the app: it is this conversation that is to end
        call.failed(error, await _astate(app, call))
    if _cancels() > before:
        raise asyncio.CancelledError  # an app that makes another error of it keeps nobody from leaving
    held.seconds = call.seconds
    return held


async def _talk(app: App, user: User, held: Conversation, steps: Steps, call: _Call, watch: Watch) -> None:
    step = call.asks(next(steps, None))
    task = asyncio.current_task()
    while step is not None:
        try:
            async with asyncio.timeout(call.left) as patience:
                if isinstance(step, AskUser):
                    given: Any = await user.aspeak(step.said)
                else:
                    with call.counter.listening():
                        given = await _invoked(app, step.input, call)
                if _cancels():
                    await asyncio.sleep(0)  # an app may have cancelled its task and not have waited since
        except BaseException as raised:
            outlive(raised, task)
            timed_out = isinstance(raised, TimeoutError) and patience.expired()
            call.failed(_OutOfTime() if timed_out else raised, await _astate(app, call))
            return
        step = call.taken(steps, given)
        watch(held)


class _OutOfTime(Exception):
    pass


@dataclass
class _Call:
    """How the app is asked, and what becomes of what it gives."""

    held: Conversation
    limits: Limits
    counter: CallCounter
    config: dict[str, Any]
    settings: dict[str, Any]
    _started: float = field(default_factory=time.monotonic)
    _turn: int = 0
    _step: AskUser | AskApp | None = None
    _begun: float = 0.0

    @property
    def seconds(self) -> float:
        """Since the conversation began."""
        return time.monotonic() - self._started

    @property
    def left(self) -> float | None:
        """How many seconds it may still take; None for any."""
        limit = self.limits.seconds
        return None if limit is None else max(0.0, limit - self.seconds)

    def asks(self, step: AskUser | AskApp | None) -> AskUser | AskApp | None:
        """A step begins; the step itself."""
        self._step, self._begun = step, time.monotonic()
        return step

    def taken(self, steps: Steps, given: Any) -> AskUser | AskApp | None:
        """Hand on what was given; the next step, or None where it is over."""
        if isinstance(self._step, AskApp):
            self._spent()
        try:
            following = steps.send(given)
        except StopIteration:
            return None
        except BaseException as error:  # an operator may raise anything
            outlive(error)
            self._end(error)
            return None
        if self.left == 0.0:
            self.held.end("seconds")
            return None
        return self.asks(following)

    def failed(self, error: BaseException, state: Any) -> None:
        """Note why it is over, and what of the turn is known: of the app's own thread, where it keeps one."""
        if isinstance(self._step, AskApp):
            self._spent()
            self._keep(state)
        if isinstance(error, _OutOfTime):
            self.held.end("seconds")
        elif _is_limit(error):
            self.held.end("calls")
        else:
            self._end(error)

    def _end(self, error: BaseException) -> None:
        if isinstance(error, SystemExit):
            error = ProgramEnded.by(error)
        self.held.end("error", error, by_user=isinstance(self._step, AskUser))

    def _keep(self, state: Any) -> None:
        opening = self.held.messages[self.held.turn_begins - 1]
        values = getattr(state, "values", None)
        known = values.get("messages") if isinstance(values, dict) else None
        if isinstance(known, list) and any(getattr(each, "id", None) == opening.id for each in known):
            self.held.take(new_messages(known, cast(HumanMessage, opening)))

    def _spent(self) -> None:
        # What an operator or the user answers within a turn goes on with the same turn.
        seconds = time.monotonic() - self._begun
        times = self.held.turn_seconds
        if self._turn == self.held.turn_begins and times:
            times[-1] += seconds
        else:
            times.append(seconds)
        self._turn = self.held.turn_begins


def _begun(
    app: App,
    user: User,
    limits: Limits | None,
    thread_id: str | None,
    operator: Operator,
    counter: CallCounter | None,
    stopped: Callable[[], bool],
) -> tuple[Conversation, Steps, _Call]:
    limits = limits or Limits()
    held = Conversation(thread_id or str(uuid4()))
    counter = counter or CallCounter(limit=limits.calls)
    config = {"configurable": {"thread_id": held.thread_id}, "callbacks": [counter]}
    call = _Call(held, limits, counter, config, dict(settings_of(app)))
    guided = getattr(getattr(user, "spec", None), "role", None) == "guide"
    return held, _steps(held, remembers(app), guided, limits, operator, stopped), call


def _steps(
    held: Conversation,
    keeps_thread: bool,
    guided: bool,
    limits: Limits,
    operator: Operator,
    stopped: Callable[[], bool],
) -> Steps:
    while True:
        turn: UserTurn = yield AskUser(held.said)
        if turn.ends:
            held.end("user")
            return
        if stopped():
            held.end("budget")
            return
        if held.turns >= limits.turns:
            held.end("turns")
            return
        before = list(held.messages)
        opening = HumanMessage(clean(turn.text), id=str(uuid4()))
        held.begin(opening)
        given: Any = yield AskApp({"messages": [opening] if keeps_thread else [*before, opening]})
        held.take(new_messages(given, opening))
        yield from _interrupts(held, opening, given, limits, operator)
        if held.ended is not None:
            return
        if not any(message.type == "ai" for message in held.messages[held.turn_begins :]):
            raise InputError("the app answered the user with no message of its own")
        if guided and _task_has_ended(held):
            held.end("user")
            return


def _task_has_ended(held: Conversation) -> bool:
    """Whether an agent whose turn is over has no question left for its guide."""
    if held.asked_aside:
        return True  # what it asks, it asks within its turn
    return not asks_something(last_words(held.said))


def _interrupts(
    held: Conversation, opening: HumanMessage, given: Any, limits: Limits, operator: Operator
) -> Steps:
    """Answer what the app waits for within one turn, until it waits for nothing."""
    for _ in range(MOST_INTERRUPTS):
        waiting = waiting_in(given)
        if not waiting:
            return
        answers: list[tuple[Any, Any]] = []
        for each in waiting:
            if each.calls:
                answers.append((each, decided(operator, each.calls)))
            elif each.spoken is not None:
                held.ask(each.spoken)
                turn: UserTurn = yield AskUser(held.said)
                if turn.ends or held.turns >= limits.turns:
                    held.end("user" if turn.ends else "turns")
                    return
                held.answer(clean(turn.text))
                answers.append((each, clean(turn.text)))
            else:
                raise InputError(f"the app waits for what nobody here can answer: {str(each.value)[:200]}")
        given = yield AskApp(resuming(answers))
        held.take(new_messages(given, opening))
    raise InputError(f"the app waited for an answer {MOST_INTERRUPTS} times in one turn")


async def _invoked(app: App, input: Any, call: _Call) -> Any:
    ainvoke = getattr(app, "ainvoke", None)
    if not callable(ainvoke):
        return await in_thread(app.invoke, input, call.config, **call.settings)
    return await ainvoke(input, call.config, **call.settings)


def _cancels() -> int:
    """How often the task was asked to end."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def _is_limit(error: BaseException | None) -> bool:
    """Whether the limit of calls is what went wrong, however it was wrapped on its way."""
    return any(isinstance(each, CallLimitReached) for each in causes(error))


def _state(app: App, call: _Call) -> Any:
    try:
        return app.get_state(call.config) if call.settings else None
    except BaseException as error:
        outlive(error)
        return None  # what is known of the turn is lost; why it failed is not


async def _astate(app: App, call: _Call) -> Any:
    task = asyncio.current_task()
    try:
        return await app.aget_state(call.config) if call.settings else None
    except BaseException as error:
        outlive(error, task)
        return None  # as above
