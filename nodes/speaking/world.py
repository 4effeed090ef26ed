"""Acting in a world that isn't a set of tools: each action is a call of `act`, each observation its result."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

from langchain_core.messages import AnyMessage, ToolCall
from langchain_core.runnables import RunnableConfig

from arq_graph.agent.environment import Environment, Observation
from arq_graph.agent.modules import describe_location
from arq_graph.agent.state import WorldStatus
from arq_graph.errors import StateError, require_type
from arq_graph.nodes.channels import Node, StateView, Update, get_channel_types
from arq_graph.nodes.events import ToolCalled
from arq_graph.nodes.messages import answer_abandoned_calls, find_unanswered_calls, make_tool_message
from arq_graph.nodes.speaking.move_schema import ACT
from arq_graph.reasoning.sections import clean

MAX_SHOWN_ACTIONS = 60
"""How many of a world's actions a refusal lists."""

History = tuple[tuple[str, str], ...]
"""The actions that were possible, each with what it showed."""


class WorldActor(Node):
    """Take the action that the last message calls for, and write its observation and `world`.

    The record in `world` decides the state of the world. If the world was left in another state (by another thread, or
    because this is another process), it is reset and the thread's actions are repeated. Put `look` before the first
    move.

    Args:
        environment: The world.
        agent: Name of the specification that the record carries.

    Raises:
        StateError: When run: repeating the thread's actions shows something else than it did.
    """

    name = ACT

    def __init__(self, environment: Environment, *, agent: str = "") -> None:
        self.environment = environment
        self.agent = agent
        self._lock = Lock()
        self._steps: History | None = None  # None while the state of the world isn't known
        self._beginning = ""
        self.declare_channels({"messages": list[AnyMessage], **get_channel_types("world")})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Take the actions that the last message calls for."""
        state = StateView(input, agent=self.agent)
        calls = [call for call in find_unanswered_calls(state.messages) if call["name"] == ACT]
        return self._act(state, calls)

    def look(self, state: Any) -> Update:
        """Write the state of the world before the first move; actions that come with the input aren't taken."""
        state_view = StateView(state, agent=self.agent)
        update = self._act(state_view, ())
        if refused := answer_abandoned_calls(state_view.messages, (ACT,)):
            update["messages"] = refused
        return update

    def _act(self, state: StateView, calls: Sequence[ToolCall]) -> Update:
        steps: History = ()
        refused_count = 0
        if previous := state.read_record("world", WorldStatus):
            steps, refused_count = previous.steps, previous.invalid
        with self._lock:
            self._restore(steps)
            observations = [self._take_action(str(call["args"].get("action", ""))) for call in calls]
            refused_count += sum(not observation.valid for observation in observations)
            status = self._describe_world(state.turn_id, refused_count)
        update: Update = {"world": state.replace_records("world", [status])}
        results = []
        for call, observation in zip(calls, observations, strict=True):
            outcome: Any = "success" if observation.valid else "error"
            result = make_tool_message(call, clean(observation.text), outcome)
            results.append(result)
            event = ToolCalled(
                tool=ACT,
                arguments=dict(call["args"]),
                call_id=call["id"] or "",
                status=result.status,
                result=result.text,
            )
            state.emit(event)
        if results:
            update["messages"] = results
        return update

    def _restore(self, steps: History) -> None:
        """Bring the world into the state that these steps lead to."""
        if self._steps == steps:
            return
        self._steps = None
        self._beginning = clean(self._call_world("reset", str))
        for number, (action, expected) in enumerate(steps, start=1):
            observed = clean(self._call_world("step", Observation, action).text)
            if observed != expected:
                raise StateError(
                    f"the world does not repeat itself: action {number} ({action!r}) showed {expected[:80]!r}, and now "
                    f"{observed[:80]!r}; give a world that does the same for the same actions"
                )
        self._steps = steps

    def _take_action(self, action: str) -> Observation:
        """Take an action if it is possible; one that isn't changes nothing."""
        allowed = () if self.environment.done else self.environment.actions()
        if allowed is not None and action not in allowed:
            possible = ", ".join(allowed[:MAX_SHOWN_ACTIONS]) or "nothing"
            return Observation(f"this cannot be done now; what can: {possible}", valid=False)
        steps = self._steps or ()
        self._steps = None
        observation: Observation = self._call_world("step", Observation, action)
        if observation.valid:
            steps = (*steps, (clean(action), clean(observation.text)))
        self._steps = steps
        return observation

    def _describe_world(self, turn: str, invalid: int) -> WorldStatus:
        world = self.environment
        actions = None if world.done else world.actions()
        return WorldStatus(
            turn=turn,
            beginning=self._beginning,
            actions=None if actions is None else tuple(map(clean, actions)),
            done=world.done,
            score=world.score,
            steps=self._steps or (),
            invalid=invalid,
        )

    def _call_world(self, name: str, result_type: type[Any], *arguments: str) -> Any:
        method = getattr(self.environment, name)
        world = type(self.environment).__qualname__
        description = f"what {world}.{name}() returned{describe_location(method)}"
        return require_type(
            description, method(*arguments), result_type, f"it must be of the type {result_type.__name__}"
        )
