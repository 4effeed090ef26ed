"""A conversation with an app under test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph

from arq_graph.agent.spec import Agent
from arq_graph.apps.agents import create_guided_agent
from arq_graph.testing.script import Script
from arq_graph.testing.scripted_model import scripted_model


def scripted_app(
    agent: Agent, scripts: Sequence[Script], **settings: Any
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile an agent whose model answers from scripts; `settings` are those of `create_guided_agent`.

    Raises:
        InputError: As `scripted_model` and `create_guided_agent`.
    """
    settings.setdefault("checkpointer", InMemorySaver())
    return create_guided_agent(scripted_model(agent, scripts), agent, **settings)


class Chat:
    """A conversation with an app that has a checkpointer, in a thread of its own.

    Attributes:
        app: The app.
        thread_id: The id of the thread.
        state: The app's state after the last turn.
    """

    def __init__(self, app: Any) -> None:
        self.app = app
        self.thread_id = str(uuid4())
        self.state: dict[str, Any] = {"messages": []}
        self._config = {"configurable": {"thread_id": self.thread_id}}

    def say(self, text: str) -> str:
        """Send a message of the customer, and return the text of the last message after it."""
        self.state = self.app.invoke({"messages": [("user", text)]}, self._config)
        return str(self.messages[-1].text)

    async def asay(self, text: str) -> str:
        """Do the same without blocking."""
        self.state = await self.app.ainvoke({"messages": [("user", text)]}, self._config)
        return str(self.messages[-1].text)

    @property
    def messages(self) -> list[BaseMessage]:
        """All messages so far."""
        return list(self.state["messages"])

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """The calls that were made so far, each with its tool and its arguments."""
        calls: list[tuple[str, dict[str, Any]]] = []
        for message in self.messages:
            for call in getattr(message, "tool_calls", ()):
                calls.append((call["name"], call["args"]))
        return calls
