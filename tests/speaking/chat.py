"""Conversations with a speaker whose model makes the moves of a script.

    chat = Chat([think("It is late."), act("get_order", A1), say("It is late.")])
    chat.send("Where is A-1?")

Each move is one answer of the model; the last one is repeated.
"""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from arq_graph import Agent, ReSpAct, create_respact_agent
from tests.brain import Prompt, brain, get_prompts

THREAD: Any = {"configurable": {"thread_id": "1"}}
A1 = {"order_id": "A-1"}


def get_order(order_id: str) -> str:
    """Look up an order.

    Args:
        order_id: The order's number.
    """
    return '{"error": "the books are locked"}' if order_id == "A-0" else f"{order_id} is late"


def cancel_order(order_id: str) -> str:
    """Cancel an order. It cannot be undone.

    Args:
        order_id: The order's number.
    """
    return f"{order_id} is cancelled"


def find_table(food: str, area: Literal["north", "south", "any"] = "any", guests: int = 2) -> str:
    """Find a table.

    Args:
        food: The cuisine, or `whatever`.
        area: Which part of the town.
        guests: How many.
    """
    return json.dumps({"thai": ["1", "2", "3", "4", "5", "6"], "greek": ["The Owl"]}.get(food, []))


DESK = Agent(
    "Desk", "You help.", tools=[get_order, cancel_order, find_table], confirm={"cancel_order": "customer"}
)


class Chat:
    """A conversation; the settings are those of `ReSpAct` and of `create_respact_agent`.

    `points` are those of a summary, if it becomes long.
    """

    def __init__(
        self, script: Sequence[Any], agent: Any = DESK, *, points: Any = (), **settings: Any
    ) -> None:
        fields = {field.name for field in dataclasses.fields(ReSpAct)}
        strategy = ReSpAct(**{name: settings.pop(name) for name in list(settings) if name in fields})
        settings = {"mode": "direct", "checkpointer": MemorySaver(), **settings}
        self.model = brain(moves=script, summary=points)
        self.app = create_respact_agent(self.model, agent, strategy=strategy, **settings)
        self.interrupt: Any = None

    def send(self, text: Any, **channels: Any) -> str:
        """Send a message, which begins a new task; return the reply."""
        return self._run({"messages": [HumanMessage(text)], **channels})

    def answer(self, text: Any) -> str:
        """Answer an utterance that waits; return the reply."""
        return self._run(Command(resume=text))

    def _run(self, input: Any) -> str:
        state = self.app.invoke(input, THREAD)
        self.interrupt = state["__interrupt__"][0].value if "__interrupt__" in state else None
        return str(self.messages[-1].text)

    @property
    def state(self) -> dict[str, Any]:
        return dict(self.app.get_state(THREAD).values)

    @property
    def messages(self) -> list[Any]:
        return list(self.state["messages"])

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        calls = []
        for message in self.messages:
            if isinstance(message, AIMessage):
                calls += [(call["name"], call["args"]) for call in message.tool_calls]
        return calls

    @property
    def results(self) -> list[str]:
        return [message.text for message in self.messages if isinstance(message, ToolMessage)]

    @property
    def moves(self) -> list[tuple[str, str]]:
        """The kind and the text of each move of the turn or task."""
        return [(move["kind"], move["text"]) for move in self.state["moves"]]

    @property
    def prompts(self) -> list[Prompt]:
        """What the model was asked."""
        return get_prompts(self.model, "speaker")
