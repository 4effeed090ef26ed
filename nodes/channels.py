"""The channels of any graph's state, read and named to LangGraph, and events for its stream."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, TypeVar, get_origin

from langchain_core.messages import AnyMessage, BaseMessage, convert_to_messages
from langchain_core.runnables import Runnable
from langgraph.config import get_stream_writer
from pydantic import BaseModel

from arq_graph.errors import StateError

T = TypeVar("T")


class Reader:
    """One node's view of a state, whatever the state is: a dict, a dataclass or a Pydantic model.

    Args:
        state: The state that the graph hands to the node.
        messages_key: The channel that holds the messages.
        channels: The node's other channels, with their types.
    """

    def __init__(
        self, state: Any, messages_key: str = "messages", channels: Mapping[str, Any] | None = None
    ) -> None:
        self.state = state
        self.messages_key = messages_key
        self._channels = channels or {}

    @property
    def given(self) -> Any:
        """The state as a function of the user's is given it.

        LangGraph leaves a channel out until something wrote it; a list or a dict of the node's is there, empty.
        """
        if not isinstance(self.state, Mapping):
            return self.state
        empty = {
            name: of()
            for name, kind in self._channels.items()
            if (of := get_origin(kind) or kind) in (list, dict)
        }
        return {**empty, **self.state}

    def get(self, channel: str) -> Any:
        """The channel's value, None where there is none."""
        if isinstance(self.state, Mapping):
            return self.state.get(channel)
        return getattr(self.state, channel, None)

    def messages(self) -> list[AnyMessage]:
        """The thread's messages.

        Raises:
            StateError: The channel is missing, or holds something that is no message.
        """
        value = self.get(self.messages_key)
        if value is None:
            raise StateError(
                f"the state has no channel {self.messages_key!r}: give the graph one that holds the messages, "
                "or name yours with messages_key="
            )
        if isinstance(value, list) and all(isinstance(message, BaseMessage) for message in value):
            return value
        try:
            return convert_to_messages(value)  # type: ignore[return-value]
        except (TypeError, ValueError, NotImplementedError) as error:
            raise StateError(
                f"channel {self.messages_key!r} holds something that is no message: {error}"
            ) from error

    def records(self, channel: str, kind: type[T]) -> list[T] | None:
        """The records of one of our channels; None where the channel was never written.

        Raises:
            StateError: The channel holds another type.
        """
        value = self.get(channel)
        if value is None:
            return None
        if (
            isinstance(value, Sequence)
            and not isinstance(value, str)
            and all(isinstance(v, kind) for v in value)
        ):
            return list(value)
        raise StateError(
            f"channel {channel!r} must hold a list of {kind.__name__}, not {_described(value)}: "
            "rename the channel of your graph, or leave it to arq_graph"
        )

    def mapping(self, channel: str) -> dict[str, Any]:
        """A channel that holds a dict; empty where it was never written.

        Raises:
            StateError: The channel holds another type.
        """
        value = self.get(channel)
        if value is None:
            return {}
        if isinstance(value, Mapping):
            return dict(value)
        raise StateError(f"channel {channel!r} must hold a dict of names and values, not {_described(value)}")


def _described(value: Any) -> str:
    if isinstance(value, list) and value:
        return f"a list with {type(value[0]).__name__}"
    return type(value).__name__


def name_channels(node: Runnable[Any, dict[str, Any]], channels: Mapping[str, Any]) -> None:
    """Name to LangGraph what a node reads and writes, so that a graph that lacks one of the channels gets it.

    Args:
        node: The node.
        channels: Channel names and their types, the messages' among them.
    """
    # LangGraph infers a node's channels from the annotation of a bound `__call__`; without it a write to
    # a channel that the graph lacks is lost without a word.
    named = dict(channels)
    schema = TypedDict(f"{type(node).__name__}State", named, total=False)  # type: ignore[misc]

    def call(self: Runnable[Any, dict[str, Any]], state: Any) -> dict[str, Any]:
        return self.invoke(state)

    call.__annotations__ = {"state": schema, "return": dict[str, Any]}
    node.__call__ = types.MethodType(call, node)  # type: ignore[operator]


def emit(event: BaseModel) -> None:
    """Write an event to `stream_mode="custom"`; outside a graph there is no stream, and it is dropped."""
    try:
        writer = get_stream_writer()
    except (RuntimeError, KeyError):
        return
    writer(event)
