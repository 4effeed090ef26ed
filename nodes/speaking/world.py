"""Acting in a world that isn't a set of tools: each action is a call of `act`, each observation its result."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any, Literal

from langchain_core.messages import AnyMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig

from arq_graph.agent.environment import Environment, Observation
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import WorldStatus
from arq_graph.errors import StateError, describe_location, require_type
from arq_graph.nodes.events import ToolCalled
from arq_graph.nodes.messages import find_unanswered_calls, make_history_repair, make_tool_message
from arq_graph.nodes.node import Node, Update, get_channel_types
from arq_graph.nodes.speaking.move_schema import WORLD_CALL
from arq_graph.nodes.state_view import StateView, view_state
from arq_graph.reasoning.sections import clean

MAX_SHOWN_ACTIONS = 60
"""The most actions of a world that a refusal lists."""

History = tuple[tuple[str, str], ...]
"""The valid actions so far, each with its observation."""


class WorldActor(Node):
    """Take the action that the last message calls for, and write its observation and `world`.

    The record in `world` says which state the world is in. If the world itself is in another state (another thread has
    used it, or this is another process), it is reset, and the thread's actions are repeated. Run `look` before the
    first move.

    Args:
        environment: The world.
        agent: The agent whose record it is, if it is one's.
        messages_key: Channel of the messages.

    Raises:
        StateError: When run: repeating the thread's actions gives other observations than before.
    """

    name = WORLD_CALL

    def __init__(
        self, environment: Environment, *, agent: Agent | None = None, messages_key: str = "messages"
    ) -> None:
        self.environment = environment
        self.agent = agent
        self.messages_key = messages_key
        self._lock = Lock()
        self._history: History | None = None  # None while the state of the world isn't known
        self._beginning = ""
        self.declare_channels({messages_key: list[AnyMessage]} | get_channel_types("world"))

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Take the actions that the last message calls for."""
        state = view_state(self.agent, input, self.messages_key)
        calls: list[ToolCall] = []
        for placed_call in find_unanswered_calls(state.messages):
            if placed_call.call["name"] == WORLD_CALL:
                calls.append(placed_call.call)
        return self._act(state, calls)

    def look(self, state: Any) -> Update:
        """Write the state of the world before the first move; actions in the input aren't taken."""
        state_view = view_state(self.agent, state, self.messages_key)
        update = self._act(state_view, ())
        if repair := make_history_repair(state_view.history, (WORLD_CALL,)):
            update[self.messages_key] = repair
        return update

    def _act(self, state: StateView, calls: Sequence[ToolCall]) -> Update:
        history: History = ()
        invalid_count = 0
        if previous := state.read_record("world", WorldStatus):
            history, invalid_count = previous.steps, previous.invalid
        with self._lock:
            self._restore(history)
            observations: list[Observation] = []
            for call in calls:
                observation = self._take_action(str(call["args"].get("action", "")))
                observations.append(observation)
                if not observation.valid:
                    invalid_count += 1
            record = self._describe_world(state.turn_id, invalid_count)
        update: Update = {"world": state.build_channel_value("world", [record])}
        results: list[ToolMessage] = []
        for call, observation in zip(calls, observations, strict=True):
            status: Literal["success", "error"] = "success" if observation.valid else "error"
            result = make_tool_message(call, clean(observation.text), status)
            results.append(result)
            event = ToolCalled(
                tool=WORLD_CALL,
                arguments=dict(call["args"]),
                call_id=call["id"] or "",
                status=result.status,
                result=result.text,
            )
            state.emit(event)
        if results:
            update[self.messages_key] = results
        return update

    def _restore(self, history: History) -> None:
        """Put the world into the state after these actions: reset it and repeat them, if it is in another one."""
        if self._history == history:
            return
        self._history = None
        beginning = self.environment.reset()
        self._beginning = clean(self._check_returned("reset", beginning, str))
        for number, (action, expected) in enumerate(history, start=1):
            observed = clean(self._perform(action).text)
            if observed != expected:
                raise StateError(
                    f"replaying the actions gave another result: action {number} ({action!r}) showed "
                    f"{expected[:80]!r}, and now {observed[:80]!r}. Use a deterministic environment."
                )
        self._history = history

    def _take_action(self, action: str) -> Observation:
        """Take an action if it is possible; one that isn't changes nothing."""
        allowed = () if self.environment.done else self.environment.actions()
        if allowed is not None and action not in allowed:
            possible = ", ".join(allowed[:MAX_SHOWN_ACTIONS]) or "nothing"
            return Observation(f"this cannot be done now; what can: {possible}", valid=False)
        history = self._history or ()
        self._history = None  # if the action raises, the world's state isn't known
        observation = self._perform(action)
        if observation.valid:
            history = (*history, (clean(action), clean(observation.text)))
        self._history = history
        return observation

    def _describe_world(self, turn_id: str, invalid_count: int) -> WorldStatus:
        actions: tuple[str, ...] | None = None
        possible_actions = None if self.environment.done else self.environment.actions()
        if possible_actions is not None:
            actions = tuple(map(clean, possible_actions))
        return WorldStatus(
            turn=turn_id,
            beginning=self._beginning,
            actions=actions,
            done=self.environment.done,
            score=self.environment.score,
            steps=self._history or (),
            invalid=invalid_count,
        )

    def _perform(self, action: str) -> Observation:
        observation: Observation = self._check_returned("step", self.environment.step(action), Observation)
        return observation

    def _check_returned(self, name: str, value: Any, expected: type[Any]) -> Any:
        method = f"{type(self.environment).__qualname__}.{name}()"
        location = describe_location(getattr(self.environment, name))
        return require_type(
            f"what {method} returned{location}",
            value,
            expected,
            f"it must be of the type {expected.__name__}",
        )
