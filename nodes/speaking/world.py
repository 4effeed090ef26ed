"""Acting in a world that is no set of tools: each action is a call of `act`, each observation its result."""

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
from arq_graph.nodes.messages import answer_abandoned_calls, make_tool_message, unanswered_calls
from arq_graph.nodes.speaking.move_schema import ACT
from arq_graph.reasoning.sections import clean

MAX_SHOWN = 60
"""How many of a world's actions a refusal lists."""


class ActInWorld(Node):
    """Take the action that the last message calls for, and write its observation and `world`.

    The record in `world` decides how the world stands: where it was left otherwise (another thread acted in it, or this
    is another process), it begins anew and the thread's actions are repeated. Put `look` before the first move.

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
        self._taken: tuple[tuple[str, str], ...] | None = None
        self._beginning = ""
        self.declare_channels({"messages": list[AnyMessage], **get_channel_types("world")})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Take the action that waits."""
        state = StateView(input, agent=self.agent)
        return self._acted(state, [call for call in unanswered_calls(state.messages) if call["name"] == ACT])

    def look(self, state: Any) -> Update:
        """Write how the world stands before the first move; an action that comes with the input is not taken."""
        reader = StateView(state, agent=self.agent)
        refused = answer_abandoned_calls(reader.messages, (ACT,))
        return {**self._acted(reader, ()), **({"messages": refused} if refused else {})}

    def _acted(self, state: StateView, calls: Sequence[ToolCall]) -> Update:
        world, before = self.environment, state.read_record("world", WorldStatus)
        with self._lock:
            self._stand_at(before.steps if before else ())
            seen = [self._step(str(call["args"].get("action", ""))) for call in calls]
            allowed = None if world.done else world.actions()
            status = WorldStatus(
                turn=state.turn,
                beginning=self._beginning,
                actions=None if allowed is None else tuple(map(clean, allowed)),
                done=world.done,
                score=world.score,
                steps=self._taken or (),
                invalid=sum(not each.valid for each in seen) + (before.invalid if before else 0),
            )
        results = []
        for call, each in zip(calls, seen, strict=True):
            result = make_tool_message(call, clean(each.text), "success" if each.valid else "error")
            results.append(result)
            told = {"tool": ACT, "arguments": dict(call["args"]), "result": result.text}
            state.emit(ToolCalled(call_id=call["id"] or "", status=result.status, **told))
        return {
            "world": state.replace_records("world", [status]),
            **({"messages": results} if results else {}),
        }

    def _stand_at(self, taken: tuple[tuple[str, str], ...]) -> None:
        if self._taken == taken:
            return
        self._taken = None  # until all is repeated, it stands nowhere that is known
        self._beginning = clean(self._given("reset", str))
        for number, (action, shown) in enumerate(taken, start=1):
            again = clean(self._given("step", Observation, action).text)
            if again != shown:
                raise StateError(
                    f"the world does not repeat itself: action {number} ({action!r}) showed {shown[:80]!r}, and now "
                    f"{again[:80]!r}; give a world that does the same for the same actions"
                )
        self._taken = taken

    def _given(self, name: str, wanted: type[Any], *action: str) -> Any:
        method = getattr(self.environment, name)
        what = f"what {type(self.environment).__qualname__}.{name}() returned{describe_location(method)}"
        return require_type(what, method(*action), wanted, f"it must be of the type {wanted.__name__}")

    def _step(self, action: str) -> Observation:
        """Take an action if it is possible; what was not possible has changed nothing."""
        allowed = () if self.environment.done else self.environment.actions()
        if allowed is not None and action not in allowed:
            why = f"this cannot be done now; what can: {', '.join(allowed[:MAX_SHOWN]) or 'nothing'}"
            return Observation(why, valid=False)
        taken, self._taken = self._taken or (), None
        seen: Observation = self._given("step", Observation, action)
        self._taken = (*taken, (clean(action), clean(seen.text))) if seen.valid else taken
        return seen
