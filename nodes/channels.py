"""The channels of any graph's state, read and named to LangGraph, and events for its stream."""

from __future__ import annotations

import json
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, TypeAlias, TypedDict, TypeVar, get_type_hints

from langchain_core.messages import AnyMessage, convert_to_messages
from langchain_core.runnables import Runnable
from langgraph.config import get_stream_writer
from pydantic import ValidationError

from arq_graph.agent.state import AgentState, Record
from arq_graph.errors import StateError
from arq_graph.nodes.events import Event
from arq_graph.reasoning.conversation import Conversation

R = TypeVar("R", bound=Record)
Update: TypeAlias = dict[str, Any]

# Without the reducer of `variables`: LangGraph refuses a node whose reducer another graph's channel lacks.
_OURS = {**get_type_hints(AgentState, include_extras=True), "variables": dict[str, Any]}


def our_channels(*names: str) -> dict[str, Any]:
    """Channels of `AgentState` with their types, for a node that names what it reads and writes."""
    return {name: _OURS[name] for name in names}


@dataclass(frozen=True)
class Reader:
    """One node's view of a state, whatever the state is: a dict, a dataclass or a Pydantic model.

    `ahead` says that other steps may still change the state, and that nothing which is told of it is told to anyone.
    """

    state: Any
    messages_key: str = "messages"
    channels: Mapping[str, Any] = field(default_factory=dict)
    agent: str = ""
    ahead: bool = False

    def get(self, channel: str) -> Any:
        """The channel's value, None where there is none."""
        if isinstance(self.state, Mapping):
            return self.state.get(channel)
        return getattr(self.state, channel, None)

    def emit(self, event: Event | None) -> None:
        """Write an event of the agent and the turn to `stream_mode="custom"`, unless the node is asked ahead."""
        if event is None or self.ahead:
            return
        try:
            writer = get_stream_writer()
        except (RuntimeError, KeyError):  # outside a graph there is no stream
            return
        writer(event.model_copy(update={"agent": self.agent, "turn": self.turn}))

    def messages(self) -> list[AnyMessage]:
        """The thread's messages."""
        value = self.get(self.messages_key)
        if value is None:
            raise StateError(
                f"the state has no channel {self.messages_key!r}: give the graph one that holds the messages, "
                "or name yours with messages_key="
            )
        try:
            return convert_to_messages(value)  # type: ignore[return-value]
        except (TypeError, ValueError, NotImplementedError) as error:
            raise StateError(
                f"channel {self.messages_key!r} holds something that is no message: {error}"
            ) from error

    def records(self, channel: str, kind: type[R]) -> list[R]:
        """The agent's own records of one of our channels."""
        return [self._read(channel, kind, raw) for raw in self._raw(channel) if raw["agent"] == self.agent]

    def of_turn(self, channel: str, kind: type[R], turn: str | None) -> list[R]:
        """The agent's own records of a turn, as far as its message still says what it said when they were made."""
        known = ("", self._said(turn or ""))
        return [
            each for each in self.records(channel, kind) if each.turn == turn and each.message_hash in known
        ]

    def record(self, channel: str, kind: type[R]) -> R | None:
        """The record of a channel that holds one for each agent: the agent's own, or else one that names no agent."""
        found = [raw for agent in ("", self.agent) for raw in self._raw(channel) if raw["agent"] == agent]
        return self._read(channel, kind, found[-1]) if found else None

    def written(self, channel: str, records: Iterable[Record]) -> list[dict[str, Any]]:
        """The update that puts these records in the place of the agent's own, and keeps those of other agents."""
        others, own = [dict(raw) for raw in self._raw(channel) if raw["agent"] != self.agent], [*records]
        said = {turn: self._said(turn) for turn in {each.turn for each in own}}
        about = [{"agent": self.agent, "message_hash": each.message_hash or said[each.turn]} for each in own]
        return [
            *others,
            *(each.model_dump(mode="json") | told for each, told in zip(own, about, strict=True)),
        ]

    @cached_property
    def _conversation(self) -> Conversation:
        return Conversation(self.messages())

    @property
    def turn(self) -> str:
        """What records of the current turn carry."""
        return self._conversation.turn

    def _said(self, turn: str) -> str:
        """A fingerprint of what the message says that began a turn; empty where the thread does not have it."""
        customers = (line for line in self._conversation.lines if line.speaker == "customer")
        words = [json.dumps(line.message.content, default=str) for line in customers if line.turn == turn]
        return blake2b(words[-1].encode(), digest_size=8).hexdigest() if words else ""

    def _raw(self, channel: str) -> Sequence[Mapping[str, Any]]:
        value = self.get(channel) or ()
        is_list = isinstance(value, Sequence) and all(isinstance(raw, Mapping) for raw in value)
        if not is_list or not all(isinstance(raw.get("agent"), str) for raw in value):
            raise _misfit(channel, "must hold a list of records as plain JSON, each with its agent")
        return value

    def _read(self, channel: str, kind: type[R], raw: Any) -> R:
        try:
            return kind.model_validate(raw)
        except ValidationError as error:
            what = f"must hold records of the form {kind.__name__}: {first_problem(error)}"
            raise _misfit(channel, what) from error

    def mapping(self, channel: str) -> dict[str, Any]:
        """A channel that holds a dict; empty where it was never written."""
        value = self.get(channel) or {}
        if not isinstance(value, Mapping):
            raise _misfit(channel, f"must hold a dict of names and values, not {type(value).__name__}")
        return dict(value)


def _misfit(channel: str, what: str) -> StateError:
    return StateError(
        f"channel {channel!r} {what}: rename the channel of your graph, or leave it to arq_graph; a thread that "
        "another version kept cannot be gone on with"
    )


def first_problem(error: ValidationError) -> str:
    """The first thing that Pydantic finds wrong, with its place."""
    first = error.errors(include_url=False)[0]
    where = "".join(f"{part}." for part in first["loc"]).removesuffix(".")
    message = str(first["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


class Node(Runnable[Any, dict[str, Any]]):
    """A node that names to LangGraph what it reads and writes, so that a graph that lacks a channel gets it."""

    def __call__(self, state: Any) -> dict[str, Any]:
        """Run the node on a state."""
        return self.invoke(state)

    def name_channels(self, channels: Mapping[str, Any]) -> None:
        """Name the channels, with their types."""
        # LangGraph looks for them in the annotation of a bound `__call__`, of a class that has one; without it a write
        # to a channel that the graph lacks is lost without a word.
        named = dict(channels)
        schema = TypedDict(f"{type(self).__name__}State", named, total=False)  # type: ignore[misc]

        def call(node: Node, state: Any) -> dict[str, Any]:
            return node.invoke(state)

        call.__annotations__ = {"state": schema, "return": dict[str, Any]}
        self.__call__ = types.MethodType(call, self)  # type: ignore[method-assign]
