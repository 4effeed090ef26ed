"""Acting in a world that is no set of tools: each action is a call of `act`, each observation its result."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from threading import Lock
from typing import Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import run_in_executor

from arq_graph.agent.environment import Environment, Observation
from arq_graph.agent.state import WorldStatus
from arq_graph.errors import InputError, StateError
from arq_graph.nodes.channels import Reader, emit
from arq_graph.nodes.events import ToolCalled
from arq_graph.nodes.speaking.move_schema import ACT
from arq_graph.nodes.speaking.moves import MAX_SHOWN
from arq_graph.nodes.turns import pending_calls
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.sections import clean

STEPPED = "stepped"


class WorldState(TypedDict, total=False):
    """The channels that acting reads and writes."""

    messages: list[AnyMessage]
    world: list[dict[str, Any]]


class ActInWorld(Runnable[Any, dict[str, Any]]):
    """Take the action that the last message calls for, and write its observation and `world`.

    The thread decides how the world stands: where the world was left otherwise (another thread acted in it, or this is
    another process), it begins anew with the same seed and the thread's actions are repeated.

    Args:
        environment: The world.
        seed: What `reset` is given.
        agent: Name of the specification that the record carries.

    Raises:
        InputError: It is no environment.
        StateError: When run: repeating the thread's actions shows something else than it did.
    """

    name = ACT

    def __init__(self, environment: Environment, *, seed: int | None = None, agent: str = "") -> None:
        if isinstance(environment, type):
            raise InputError(f"environment is the class {environment.__name__}: give an instance of it")
        if not isinstance(environment, Environment):
            raise InputError(
                f"environment is a {type(environment).__name__}: it needs reset(seed), step(action), actions(), done "
                "and score"
            )
        self.environment = environment
        self.seed = seed
        self.agent = agent
        self._lock = Lock()
        self._taken: list[tuple[str, str]] | None = None
        self._beginning = ""

    def __call__(self, state: WorldState) -> dict[str, Any]:
        """Run the node on a state."""
        return self.invoke(state)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """Act, or only look where no action waits."""
        messages = Reader(input).messages()
        calls = [call for call in pending_calls(messages) if call["name"] == ACT]
        with self._lock:
            self._stand_at(actions_of(messages))
            results = [self._result(call) for call in calls]
            status = self._status([*messages, *results])
        for call, result in zip(calls, results, strict=True):
            _report(messages, call, result)
        return {
            "world": Reader(input, agent=self.agent).written("world", [status]),
            **({"messages": results} if results else {}),
        }

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        """Act in a thread of its own, as worlds are not asynchronous."""
        return await run_in_executor(config, self.invoke, input, config)

    def _stand_at(self, taken: Sequence[tuple[str, str]]) -> None:
        """Bring the world to where a thread has left it."""
        if self._taken == list(taken):
            return
        self._taken = None  # until all is repeated, it stands nowhere that is known
        beginning = self.environment.reset(self.seed)
        if not isinstance(beginning, str):
            raise self._misfit("reset()", "a text", beginning)
        self._beginning = clean(beginning)
        for number, (action, shown) in enumerate(taken, start=1):
            again = clean(self._step(action).text)
            if again != shown:
                raise StateError(
                    f"the world does not repeat itself: action {number} ({action!r}) showed {shown[:80]!r}, and now "
                    f"{again[:80]!r}; give `seed`, or a world that does the same for the same actions"
                )
        self._taken = list(taken)

    def _result(self, call: ToolCall) -> ToolMessage:
        action = str(call["args"].get("action", ""))
        allowed = self._allowed()
        if self.environment.done:
            return _message(
                call, Observation("the task has ended: nothing can be done any more", True, valid=False)
            )
        if allowed is not None and action not in allowed:
            why = f"this cannot be done now; what can: {', '.join(allowed[:MAX_SHOWN]) or 'nothing'}"
            return _message(call, Observation(why, valid=False))
        taken = self._taken or []
        self._taken = None
        seen = self._step(action)
        result = _message(call, seen, stepped=True)
        self._taken = [*taken, (action, str(result.text))]
        return result

    def _step(self, action: str) -> Observation:
        try:
            seen = self.environment.step(action)
        except Exception as error:
            error.add_note(f"raised by {type(self.environment).__name__}.step({action!r})")
            raise
        if not isinstance(seen, Observation) or not isinstance(seen.text, str):
            raise self._misfit("step()", "an Observation with a text", seen)
        return seen

    def _allowed(self) -> Sequence[str] | None:
        allowed = self.environment.actions()
        is_list = isinstance(allowed, Sequence) and not isinstance(allowed, str)
        if allowed is not None and not (is_list and all(isinstance(action, str) for action in allowed)):
            raise self._misfit("actions()", "a list of texts, or None", allowed)
        return allowed

    def _misfit(self, what: str, wanted: str, got: object) -> InputError:
        return InputError(f"{type(self.environment).__name__}: {what} must give {wanted}, not {got!r:.80}")

    def _status(self, messages: Sequence[BaseMessage]) -> WorldStatus:
        allowed = None if self.environment.done else self._allowed()
        acted = [m for m in messages if isinstance(m, ToolMessage) and isinstance(m.artifact, dict)]
        acted = [m for m in acted if STEPPED in m.artifact]
        score = self.environment.score
        is_number = isinstance(score, int | float) and not isinstance(score, bool)
        if score is not None and not (is_number and isfinite(score)):
            raise self._misfit("score", "a number or None", score)
        return WorldStatus(
            turn=Conversation(messages).turn,
            beginning=self._beginning,
            actions=None if allowed is None else tuple(map(clean, allowed)),
            done=bool(self.environment.done),
            score=None if score is None else float(score),
            taken=sum(m.artifact[STEPPED] for m in acted),
            invalid=sum(not m.artifact["valid"] for m in acted),
        )


def actions_of(messages: Sequence[BaseMessage]) -> list[tuple[str, str]]:
    """The actions that a thread has taken in the world, each with what it showed."""
    asked: dict[str, str] = {}
    found = []
    for message in messages:
        if isinstance(message, AIMessage):
            asked |= {
                call["id"] or "": str(call["args"].get("action", ""))
                for call in message.tool_calls
                if call["name"] == ACT
            }
        elif isinstance(message, ToolMessage) and message.tool_call_id in asked:
            kept = message.artifact
            if isinstance(kept, dict) and kept.get(STEPPED):
                found.append((asked[message.tool_call_id], str(message.text)))
    return found


def _message(call: ToolCall, seen: Observation, *, stepped: bool = False) -> ToolMessage:
    return ToolMessage(
        clean(seen.text),
        name=ACT,
        tool_call_id=call["id"] or "",
        status="success" if seen.valid else "error",
        artifact={STEPPED: stepped, "valid": seen.valid, "done": seen.done, "score": seen.score},
    )


def _report(messages: Sequence[AnyMessage], call: ToolCall, result: ToolMessage) -> None:
    emit(
        ToolCalled(
            turn=Conversation(messages).turn,
            tool=ACT,
            arguments=dict(call["args"]),
            call_id=call["id"] or "",
            status=result.status,
            result=result.text,
        )
    )
