"""An app and a simulated user taking turns, within the limits of one conversation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Any, cast
from uuid import uuid4

from langchain_core.messages import HumanMessage

from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.app import (
    App,
    Operator,
    Waiting,
    decided,
    new_messages,
    resuming,
    waiting_in,
)
from arq_graph.milestones.evaluation.conversation import Conversation, causes
from arq_graph.milestones.evaluation.scenario import Limits
from arq_graph.milestones.transcript import Message
from arq_graph.milestones.users.hearing import asks_something
from arq_graph.milestones.users.user import User, UserTurn, last_words
from arq_graph.reasoning.sections import clean
from arq_graph.reasoning.usage import CallLimitReached, UsageTracker

MOST_INTERRUPTS = 25
"""So often may an app wait in one turn; more would be a circle."""

_SECONDS_FOR_STATE = 5.0


@dataclass(frozen=True)
class AskUser:
    """The user is to speak, who heard this."""

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
    stopped: Callable[[], bool] = lambda: False,
    watch: Watch = lambda _: None,
) -> Conversation:
    """Hold a conversation. What the app or the user raises ends it, and is told in it.

    A user who is a guide speaks only of what it is asked: once the agent's turn is over and asks nothing, the
    conversation has ended. An app with a checkpointer is given what is new, any other all messages so far. The time
    is looked at after each turn; `aconverse` leaves behind what takes longer.

    Args:
        app: Anything that is invoked with `{"messages": […]}`.
        user: Who talks to it; made for this conversation.
        limits: How far it may go; those of `Limits()` unless given.
        thread_id: Its thread, for an app that keeps threads; a new one unless given.
        operator: Decides on calls that wait for an operator.
        stopped: Asked before each turn: whether nothing more is to be begun.
        watch: Called whenever there is something new.

    Raises:
        InputError: The app is async only.
    """
    if not callable(getattr(app, "invoke", None)):
        raise InputError("the app has no `invoke`: await `aconverse`")
    talk = _Dialogue(app, user, limits or Limits(), thread_id, operator, stopped)
    while talk.step is not None:
        try:
            if isinstance(talk.step, AskUser):
                talk.go_on(user.speak(talk.step.said))
            else:
                with talk.held.usage.listening():
                    given = app.invoke(talk.step.input, talk.config, **talk.settings)
                talk.go_on(given)
        except (Exception, SystemExit) as error:
            with suppress(Exception):
                talk.keep(app.get_state(talk.config) if talk.settings else None)
            talk.fail(error)
        watch(talk.held)
    return talk.held


async def aconverse(
    app: App,
    user: User,
    *,
    limits: Limits | None = None,
    thread_id: str | None = None,
    operator: Operator = "approve",
    stopped: Callable[[], bool] = lambda: False,
    watch: Watch = lambda _: None,
) -> Conversation:
    """Hold a conversation without blocking; see `converse`. An app that is not async runs in a thread.

    What takes longer than the limit of seconds is cancelled and left behind, whether or not it can be stopped.
    """
    talk = _Dialogue(app, user, limits or Limits(), thread_id, operator, stopped)
    # In a task of its own: one that hangs is left behind, and one that is cancelled by its app ends alone.
    task = asyncio.create_task(_talk(app, user, talk, watch))
    try:
        await asyncio.wait({task}, timeout=talk.limits.seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    error: BaseException | None
    if not task.done():
        task.cancel()
        error = None
    elif task.cancelled():
        error = RuntimeError("the app cancelled the task that it ran in")
    elif (error := task.exception()) is None:
        return talk.held
    with suppress(Exception):
        state = app.aget_state(talk.config) if talk.settings else None
        talk.keep(None if state is None else await asyncio.wait_for(state, _SECONDS_FOR_STATE))
    talk.fail(error)
    watch(talk.held)
    return talk.held


async def _talk(app: App, user: User, talk: _Dialogue, watch: Watch) -> None:
    try:
        while talk.step is not None:
            if isinstance(talk.step, AskUser):
                talk.go_on(await user.aspeak(talk.step.said))
            else:
                with talk.held.usage.listening():
                    if callable(getattr(app, "ainvoke", None)):
                        given = await app.ainvoke(talk.step.input, talk.config, **talk.settings)
                    else:
                        given = await asyncio.to_thread(
                            app.invoke, talk.step.input, talk.config, **talk.settings
                        )
                talk.go_on(given)
            watch(talk.held)
    except SystemExit as error:  # past a task, it would end the program
        raise RuntimeError(f"it called sys.exit({error.code!r})") from error


class _Dialogue:
    """Whose turn it is (`step`; None once it is over), and what becomes of what is given (`held`)."""

    def __init__(
        self,
        app: App,
        user: User,
        limits: Limits,
        thread_id: str | None,
        operator: Operator,
        stopped: Callable[[], bool],
    ) -> None:
        self.limits = limits
        self.held = Conversation(thread_id or str(uuid4()), usage=UsageTracker(limits.calls))
        self.config = {"configurable": {"thread_id": self.held.thread_id}, "callbacks": [self.held.usage]}
        self._remembers = bool(getattr(app, "checkpointer", None))
        # A graph of LangGraph's with a checkpointer need not wait for each step to be written.
        is_graph = self._remembers and hasattr(app, "aget_state")
        self.settings: dict[str, Any] = {"durability": "exit"} if is_graph else {}
        self._is_guided = getattr(getattr(user, "spec", None), "role", None) == "guide"
        self._operator = operator
        self._stopped = stopped
        self._started = self._begun = time.monotonic()
        self._steps = self._turns()
        self.step: AskUser | AskApp | None = next(self._steps)

    def go_on(self, given: Any) -> None:
        """Take what was given, and find out who is next."""
        if self.held.ended is not None:
            return  # whoever was left behind has nothing more to say
        self._time()
        try:
            self.step = self._steps.send(given)
        except StopIteration:
            self.step = None
        if self.step is not None and self.held.seconds >= (self.limits.seconds or inf):
            self.held.end("seconds")
            self.step = None
        self._begun = time.monotonic()

    def keep(self, state: Any) -> None:
        """Keep what an app's own thread has of a turn that failed."""
        known = getattr(state, "values", None)
        messages = known.get("messages") if isinstance(known, dict) else None
        if not isinstance(self.step, AskApp) or not isinstance(messages, list):
            return
        opening = cast(HumanMessage, self.held.messages[self.held.turn_begins - 1])
        if any(getattr(each, "id", None) == opening.id for each in messages):
            self.held.take(new_messages(messages, opening))

    def fail(self, error: BaseException | None) -> None:
        """End it for what was raised; None: the time is over."""
        self._time()
        if error is None:
            self.held.end("seconds")
        elif any(isinstance(each, CallLimitReached) for each in causes(error)):
            self.held.end("calls")
        else:
            self.held.end("error", error, by_user=isinstance(self.step, AskUser))
        self.step = None

    def _time(self) -> None:
        """Count the time, for the turn only the app's."""
        now = time.monotonic()
        self.held.seconds = now - self._started
        if isinstance(self.step, AskApp):
            self.held.turn_seconds[-1] += now - self._begun

    def _turns(self) -> Steps:
        held = self.held
        while True:
            turn: UserTurn = yield AskUser(held.said)
            if turn.ends or self._stopped() or held.turns >= self.limits.turns:
                held.end("user" if turn.ends else "budget" if self._stopped() else "turns")
                return
            opening = HumanMessage(clean(turn.text), id=str(uuid4()))
            held.begin(opening)
            given: Any = yield AskApp({"messages": [opening] if self._remembers else list(held.messages)})
            held.take(new_messages(given, opening))
            yield from self._interrupts(opening, given)
            if held.ended is not None:
                return
            if not any(message.type == "ai" for message in held.messages[held.turn_begins :]):
                raise InputError("the app answered the user with no message of its own")
            # An agent that asks within its turn has nothing left to ask a guide once that is over.
            if self._is_guided and (held.asked_aside or not asks_something(last_words(held.said))):
                held.end("user")
                return

    def _interrupts(self, opening: HumanMessage, given: Any) -> Steps:
        """Answer what the app waits for within one turn, until it waits for nothing."""
        held = self.held
        for _ in range(MOST_INTERRUPTS):
            waiting = waiting_in(given)
            if not waiting:
                return
            answers: list[tuple[Waiting, Any]] = []
            for each in waiting:
                if each.calls:
                    answers.append((each, decided(self._operator, each.calls)))
                elif each.spoken is not None:
                    held.ask(each.spoken)
                    turn: UserTurn = yield AskUser(held.said)
                    if turn.ends or held.turns >= self.limits.turns:
                        held.end("user" if turn.ends else "turns")
                        return
                    held.answer(clean(turn.text))
                    answers.append((each, clean(turn.text)))
                else:
                    raise InputError(
                        f"the app waits for what nobody here can answer: {str(each.value)[:200]}"
                    )
            given = yield AskApp(resuming(answers))
            held.take(new_messages(given, opening))
        raise InputError(f"the app waited for an answer {MOST_INTERRUPTS} times in one turn")
