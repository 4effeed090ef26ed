"""The base class of nodes: they declare to LangGraph which channels of the state they read and write."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, TypeAlias, TypedDict, get_type_hints

from langchain_core.runnables import Runnable

from arq_graph.agent.state import AgentState

Update: TypeAlias = dict[str, Any]
"""The update that a node returns: new values of channels."""

# `variables` without its reducer: LangGraph raises if a node declares one for a channel that its graph has without.
_CHANNEL_TYPES = {**get_type_hints(AgentState, include_extras=True), "variables": dict[str, Any]}


def get_channel_types(*names: str) -> dict[str, Any]:
    """Return the types of these channels of `AgentState`, for a node that declares what it reads and writes."""
    return {name: _CHANNEL_TYPES[name] for name in names}


class Node(Runnable[Any, dict[str, Any]]):
    """A node that declares to LangGraph what it reads and writes, so that a graph that lacks a channel gets it."""

    def __call__(self, state: Any) -> dict[str, Any]:
        """Run the node on a state."""
        return self.invoke(state)

    def declare_channels(self, channels: Mapping[str, Any]) -> None:
        """Make LangGraph add these channels, given with their types, and pass them to the node."""
        # LangGraph infers a Runnable's input schema from the annotations of the instance's `__call__`. That must be a
        # bound method, and the class must define `__call__`, too. Without a schema, a write to a channel that the graph
        # lacks is silently lost.
        fields = dict(channels)
        schema = TypedDict(f"{type(self).__name__}State", fields, total=False)  # type: ignore[misc]

        def call(node: Node, state: Any) -> dict[str, Any]:
            return node.invoke(state)

        call.__annotations__ = {"state": schema, "return": dict[str, Any]}
        self.__call__ = types.MethodType(call, self)  # type: ignore[method-assign]
