"""A conversation with an app under test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
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
        config: The config that names the thread.
        state: The app's state after the last turn.
    """

    def __init__(self, app: Any) -> None:
        self.app = app
        self.config: RunnableConfig = {"configurable": {"thread_id": str(uuid4())}}
        self.state: dict[str, Any] = {"messages": []}

    def say(self, text: str, **channels: Any) -> str:
        """Send a message of the customer, with values of other channels, and return the text of the last message."""
        self.state = self.app.invoke({"messages": [("user", text)], **channels}, self.config)
        return str(self.messages[-1].text)

    async def asay(self, text: str, **channels: Any) -> str:
        """Do the same without blocking."""
        self.state = await self.app.ainvoke({"messages": [("user", text)], **channels}, self.config)
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
