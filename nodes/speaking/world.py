"""Acting in a world that is no set of tools: each action is a call of `act`, each observation its result."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig

from arq_graph.agent.environment import Environment, Observation
from arq_graph.agent.state import WorldStatus
from arq_graph.errors import StateError
from arq_graph.nodes.channels import Node, Reader, our_channels
from arq_graph.nodes.events import ToolCalled
from arq_graph.nodes.speaking.move_schema import ACT
from arq_graph.nodes.turns import pending_calls
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.sections import clean

MAX_SHOWN = 60
"""How many of a world's actions a refusal lists."""


class ActInWorld(Node):
    """Take the action that the last message calls for, and write its observation and `world`.

    The thread decides how the world stands: where the world was left otherwise (another thread acted in it, or this is
    another process), it begins anew and the thread's actions are repeated.

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
        self._taken: list[tuple[str, str]] | None = None
        self._beginning = ""
        self.name_channels({"messages": list[AnyMessage], **our_channels("world")})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """Act, or only look where no action waits."""
        state = Reader(input, agent=self.agent)
        messages = state.messages()
        calls = [call for call in pending_calls(messages) if call["name"] == ACT]
        with self._lock:
            self._stand_at([(action, shown) for action, shown, valid in _acted(messages) if valid])
            results = [self._result(call) for call in calls]
            status = self._status([*messages, *results])
        for call, result in zip(calls, results, strict=True):
            told = {"tool": ACT, "arguments": dict(call["args"]), "result": result.text}
            state.emit(ToolCalled(turn=status.turn, call_id=call["id"] or "", status=result.status, **told))
        return {"world": state.written("world", [status]), **({"messages": results} if results else {})}

    def _stand_at(self, taken: list[tuple[str, str]]) -> None:
        """Bring the world to where a thread has left it."""
        if self._taken == taken:
            return
        self._taken = None  # until all is repeated, it stands nowhere that is known
        self._beginning = clean(self.environment.reset())
        for number, (action, shown) in enumerate(taken, start=1):
            again = clean(self.environment.step(action).text)
            if again != shown:
                raise StateError(
                    f"the world does not repeat itself: action {number} ({action!r}) showed {shown[:80]!r}, and now "
                    f"{again[:80]!r}; give a world that does the same for the same actions"
                )
        self._taken = taken

    def _result(self, call: ToolCall) -> ToolMessage:
        action = str(call["args"].get("action", ""))
        allowed = () if self.environment.done else self.environment.actions()
        if allowed is not None and action not in allowed:
            why = f"this cannot be done now; what can: {', '.join(allowed[:MAX_SHOWN]) or 'nothing'}"
            seen = Observation(why, valid=False)
        else:
            taken, self._taken = self._taken or [], None
            seen = self.environment.step(action)
            # What was not possible has changed nothing.
            self._taken = [*taken, (action, clean(seen.text))] if seen.valid else taken
        return ToolMessage(
            clean(seen.text),
            name=ACT,
            tool_call_id=call["id"] or "",
            status="success" if seen.valid else "error",
            artifact={"action": action, "valid": seen.valid},
        )

    def _status(self, messages: Sequence[BaseMessage]) -> WorldStatus:
        world = self.environment
        allowed = None if world.done else world.actions()
        valid = [each for *_, each in _acted(messages)]
        return WorldStatus(
            turn=Conversation(messages).turn,
            beginning=self._beginning,
            actions=None if allowed is None else tuple(map(clean, allowed)),
            done=world.done,
            score=world.score,
            taken=valid.count(True),
            invalid=valid.count(False),
        )


def _acted(messages: Sequence[BaseMessage]) -> list[tuple[str, str, bool]]:
    """The actions of a thread in the world, what each showed, and whether it was possible."""
    # A call that was abandoned has a result, too, but no artifact.
    results = [
        each for each in messages if isinstance(each, ToolMessage) and each.name == ACT and each.artifact
    ]
    return [(each.artifact["action"], str(each.text), each.artifact["valid"]) for each in results]
