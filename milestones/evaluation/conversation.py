"""Run a conversation of an app with a simulated user."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.types import Command

from arq_graph.errors import InputError, describe_error
from arq_graph.milestones.evaluation.app_turn import AppTurn, parse_app_output
from arq_graph.milestones.evaluation.arms import App
from arq_graph.milestones.evaluation.scenario import Limits
from arq_graph.milestones.evaluation.turn_notes import note_turn
from arq_graph.milestones.event_loop import is_cancelled_from_outside, make_sync
from arq_graph.milestones.reports.records import Ended
from arq_graph.milestones.transcript import Event, Message
from arq_graph.milestones.transcripts.messages import parse_messages
from arq_graph.milestones.users.agenda import AgendaUser
from arq_graph.milestones.users.agent_message import has_question
from arq_graph.milestones.users.user_spec import ScriptedUser, User, UserSpec, join_agent_texts
from arq_graph.reasoning.failures import list_causes_and_contexts
from arq_graph.reasoning.sections import clean
from arq_graph.reasoning.usage import CallLimitReached, UsageTracker

if TYPE_CHECKING:
    from arq_graph.agent.spec import Agent

_MAX_INTERRUPTS = 25
"""An app that raises so many interrupts in one turn is in a loop."""

_STATE_TIMEOUT = 5.0


@dataclass
class SimulatedConversation:
    """The messages of a conversation, and how it ended.

    Attributes:
        thread_id: The id of its thread.
        messages: All messages, including those of its history. Each `HumanMessage` after the history is one that the
            user has said: those that an app makes itself are left out.
        ended: Why it ended; None until then.
        failure: The exception that ended it.
        is_user_failure: Whether the user raised that exception, not the app.
        turn_seconds: The seconds that the app took for each turn. A turn begins with a message of the user, unless that
            answers an interrupt within a turn; `Limits.turns` counts such answers, too.
        app_usage: The app's calls to its models.
        history_length: The number of messages before it began.
        moves: The entries of the app's channel `moves`, if it has one, by the id of the user's message.
    """

    thread_id: str
    messages: list[BaseMessage] = field(default_factory=list)
    ended: Ended | None = None
    failure: BaseException | None = None
    is_user_failure: bool = False
    turn_seconds: list[float] = field(default_factory=list)
    app_usage: UsageTracker = field(default_factory=UsageTracker)
    history_length: int = 0
    moves: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def error(self) -> str | None:
        """The message of the exception that ended it."""
        if self.failure is None:
            return None
        # The line of code shows where the bug of an app is, but not the cause of a model's error.
        is_model_error = self.failure in self.app_usage.failures
        return clean(describe_error(self.failure, with_location=not is_model_error))

    def parse_events(self) -> list[Event]:
        """Return the messages as events of a transcript."""
        return parse_messages(self.messages)[0]

    def parse_spoken_messages(self) -> tuple[Message, ...]:
        """Return the texts of user and agent."""
        return tuple(event for event in self.parse_events() if isinstance(event, Message))

    @property
    def user_message_count(self) -> int:
        """The number of messages of the user after the history, including answers within a turn."""
        return sum(message.type == "human" for message in self.messages[self.history_length :])


async def aconverse(
    app: App,
    user: User,
    *,
    limits: Limits | None = None,
    thread_id: str | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    on_change: Callable[[SimulatedConversation], None] = lambda _: None,
    history: Sequence[BaseMessage] = (),
    variables: Mapping[str, Any] | None = None,
    agent: Agent | None = None,
) -> SimulatedConversation:
    """Run a conversation. An exception of the app or the user ends it, and is stored in it.

    A guide is a user that only answers the agent's questions: the conversation with it ends with the first turn in
    which the agent doesn't ask anything. In each turn, an app with a checkpointer gets only the new messages; any other
    app gets all messages. An app that isn't async runs in a thread. An async app is cancelled at the limit of seconds,
    but a thread can't be stopped. Calls that wait for an operator are approved.

    Args:
        app: Anything that is invoked with `{"messages": […]}`.
        user: The user, made for this conversation.
        limits: The limits of the conversation; None: those of `Limits()`.
        thread_id: The id of the thread, for an app that has threads; None: a new one.
        should_stop: Called before each turn and before a user's model; the conversation ends if it returns True.
        on_change: Called whenever messages have been added.
        history: The messages before the conversation; the app gets them with the first message.
        variables: Values of the agent's variables. The app gets them with the first message, or with each one
            if it has no checkpointer.
        agent: The specification that the app was made from; the notes of its turns then say what tools were unlocked.
    """
    limits = limits or Limits()
    conversation = SimulatedConversation(
        thread_id or str(uuid4()),
        messages=list(history),
        app_usage=UsageTracker(limits.calls),
        history_length=len(history),
    )
    dialogue = _Dialogue(app, user, limits, conversation, should_stop, on_change, variables, agent)
    timer = asyncio.timeout(limits.seconds)
    try:
        async with timer:
            await dialogue.take_turns()
    except _ConversationEnded as end:
        conversation.ended = end.reason
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        if is_cancelled_from_outside(error):
            raise
        await dialogue.recover_messages()
        if is_over_call_limit(error):
            conversation.ended = "calls"
        elif timer.expired():
            conversation.ended = "seconds"
        else:
            conversation.ended = "error"
            conversation.failure = error
            conversation.is_user_failure = dialogue.is_user_failure
    on_change(conversation)
    return conversation


converse = make_sync(aconverse, "converse")


def is_over_call_limit(error: BaseException) -> bool:
    """Return whether an error comes from a model call that a limit of calls refused."""
    return any(isinstance(cause, CallLimitReached) for cause in list_causes_and_contexts(error))


class _ConversationEnded(Exception):
    """Ends the conversation normally, also from inside a turn, where the app waits for an answer."""

    def __init__(self, reason: Ended) -> None:
        self.reason = reason


@dataclass
class _Dialogue:
    """Lets the app and the user of a conversation take turns; the arguments are those of `aconverse`."""

    app: Any  # a LangGraph app has more methods than those of `App`
    user: User
    limits: Limits
    conversation: SimulatedConversation
    should_stop: Callable[[], bool]
    on_change: Callable[[SimulatedConversation], None]
    variables: Mapping[str, Any] | None
    agent: Agent | None
    is_user_failure: bool = False
    turn: AppTurn | None = None

    def __post_init__(self) -> None:
        self.config = {
            "configurable": {"thread_id": self.conversation.thread_id},
            "callbacks": [self.conversation.app_usage],
        }
        self.has_checkpointer = bool(getattr(self.app, "checkpointer", None))
        self.has_state = self.has_checkpointer and hasattr(self.app, "aget_state")
        self.invoke_options: dict[str, Any] = {}
        if self.has_state:
            self.invoke_options["durability"] = "exit"  # LangGraph needn't wait until each step is saved

    async def take_turns(self) -> None:
        """Let user and app take turns until `_ConversationEnded` is raised."""
        spec = getattr(self.user, "spec", None)
        is_guide = isinstance(spec, UserSpec) and spec.role == "guide"
        has_model = not isinstance(self.user, AgendaUser | ScriptedUser)
        while True:
            # Don't pay for a user's message if the run must stop. A user without a model is free: ask it even then,
            # because it may end the conversation, which then counts as complete.
            if has_model:
                self._end_if_stopped()
            text = await self._ask_user()
            self._end_if_stopped()
            user_message = HumanMessage(text, id=str(uuid4()))
            self.conversation.messages.append(user_message)
            self.turn = AppTurn(self.conversation.messages, user_message)
            await self._run_turn(self.turn)
            # A guide only answers: after a turn without an open question it has nothing more to say. An app that asks
            # by interrupts has had its answers by now.
            if is_guide and (self.turn.has_questions or not self._ends_with_question()):
                raise _ConversationEnded("user")

    async def recover_messages(self) -> None:
        """Add the messages of a turn that failed, as far as the app's thread has them."""
        if self.turn is None or self.is_user_failure or not self.has_state:
            return
        with suppress(Exception):
            snapshot = await asyncio.wait_for(self.app.aget_state(self.config), _STATE_TIMEOUT)
            messages = snapshot.values["messages"]
            self._store_moves(snapshot.values)
            if any(message.id == self.turn.user_message.id for message in messages):
                self.turn.add_app_messages(messages)
                self._note_turn(self.turn, snapshot.values)

    def _end_if_stopped(self) -> None:
        if self.should_stop():
            raise _ConversationEnded("budget")

    def _ends_with_question(self) -> bool:
        return has_question(join_agent_texts(self.conversation.parse_spoken_messages()))

    async def _ask_user(self) -> str:
        try:
            text = await self.user.aspeak(self.conversation.parse_spoken_messages())
            if text is not None:
                text = clean(text)
        except BaseException:
            self.is_user_failure = True
            raise
        if text is None:
            raise _ConversationEnded("user")
        # Only now, because a conversation whose user has nothing more to say hasn't ended at its limit.
        if self.conversation.user_message_count >= self.limits.turns:
            raise _ConversationEnded("turns")
        return text

    async def _run_turn(self, turn: AppTurn) -> None:
        conversation = self.conversation
        conversation.turn_seconds.append(0.0)
        length_before = len(conversation.messages)
        app_input = self._make_input(turn)
        for _ in range(_MAX_INTERRUPTS):
            self.on_change(conversation)
            output = await self._invoke_app(app_input)
            self._store_moves(output)
            turn.add_app_messages(parse_app_output(output))
            self.on_change(conversation)
            interrupts = output.get("__interrupt__") if isinstance(output, Mapping) else None
            if not interrupts:
                break
            app_input = await self._answer_interrupts(turn, interrupts)
        else:
            raise InputError(f"the app waited for an answer {_MAX_INTERRUPTS} times in one turn")
        if not any(message.type == "ai" for message in conversation.messages[length_before:]):
            raise InputError("the app returned no AI message for this turn")
        self._note_turn(turn, output)
        if isinstance(output, Mapping) and output.get("takeover"):
            raise _ConversationEnded("takeover")  # nobody answers any more

    def _make_input(self, turn: AppTurn) -> dict[str, Any]:
        is_first_turn = self.conversation.user_message_count == 1
        if self.has_checkpointer and not is_first_turn:
            return {"messages": [turn.user_message]}
        app_input: dict[str, Any] = {"messages": list(self.conversation.messages)}
        if self.variables:
            app_input["variables"] = dict(self.variables)
        return app_input

    async def _invoke_app(self, app_input: Any) -> Any:
        await asyncio.sleep(0)  # else an app that never waits could not be cancelled at the limit of seconds
        started = time.monotonic()
        try:
            with self.conversation.app_usage.listen():
                if callable(getattr(self.app, "ainvoke", None)):
                    return await self.app.ainvoke(app_input, self.config, **self.invoke_options)
                return await asyncio.to_thread(self.app.invoke, app_input, self.config, **self.invoke_options)
        finally:
            self.conversation.turn_seconds[-1] += time.monotonic() - started

    async def _answer_interrupts(self, turn: AppTurn, interrupts: Sequence[Any]) -> Any:
        """Return the command that resumes the app with an answer to each interrupt."""
        answers = {}
        for interrupt in interrupts:
            answers[interrupt.id] = await self._answer_interrupt(turn, interrupt.value)
        return Command(resume=answers)

    async def _answer_interrupt(self, turn: AppTurn, value: Any) -> Any:
        """Approve the calls that wait for an operator, or let the user answer a question."""
        question = value
        if isinstance(value, Mapping):
            if calls := value.get("action_requests"):
                return {"decisions": [{"type": "approve"}] * len(calls)}
            question = value.get("text") if value.get("type") == "speak" else None
        if not isinstance(question, str):
            raise InputError(
                f"the app raised an interrupt that the evaluation cannot answer: {str(value)[:200]}"
            )
        turn.add_question(question)
        text = await self._ask_user()
        self.conversation.messages.append(HumanMessage(text))
        return text

    def _note_turn(self, turn: AppTurn, state: Any) -> None:
        note_turn(self.conversation.messages, state, str(turn.user_message.id), self.agent)

    def _store_moves(self, state: Any) -> None:
        if self.turn is None or not isinstance(state, Mapping):
            return
        moves = state.get("moves")
        if not isinstance(moves, list):
            return
        turn_id = str(self.turn.user_message.id)
        current_turn_moves = []
        for move in moves:
            if isinstance(move, Mapping) and move.get("turn") == turn_id:
                current_turn_moves.append(move)
        self.conversation.moves[turn_id] = current_turn_moves
