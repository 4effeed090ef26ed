"""Scripted speakers, and conversations with them: what was said, what was done, what the model was asked.

    desk = Chat([think("It is late."), act("get_order", order_id="A-1"), say("It is late.")])
    desk.hear("Where is A-1?")

Each move is one answer of the model; the last one is given again and again.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from arq_graph import Agent, ReSpAct, ScriptedChatModel, create_respact_agent
from tests.brain import Asked, asked_by, call_of, filled, option_of

THREAD: Any = {"configurable": {"thread_id": "1"}}


@dataclasses.dataclass(frozen=True)
class Made:
    """One answer: its move, what a call's values rest on, and what is answered beside the move."""

    kind: str
    said: Mapping[str, Any]
    bases: Mapping[str, str] = dataclasses.field(default_factory=dict)
    beside: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def beside_it(self, **answers: Any) -> Made:
        """The same, with answers beside the move."""
        return dataclasses.replace(self, beside=answers)

    def resting_on(self, **bases: str) -> Made:
        """The same, with what its values rest on; `this_request` unless said."""
        return dataclasses.replace(self, bases=bases)


def think(text: str) -> Made:
    return Made("think", {"thought": text})


def say(text: str, **fields: Any) -> Made:
    return Made("speak", {"utterance": text, **fields})


def ask(text: str, **fields: Any) -> Made:
    return say(text, **{"asks": True, **fields})


def do(action: str) -> Made:
    """An action in a world."""
    return Made("act", {"action": action})


def act(tool: str, **arguments: Any) -> Made:
    """A tool call."""
    return Made(tool, arguments)


def speaker(script: Sequence[Any]) -> ScriptedChatModel:
    """A model that makes these moves."""
    left = list(script)

    def answer(call: Any) -> Any:
        made = left.pop(0) if len(left) > 1 else left[0]
        if not isinstance(made, Made):
            return made
        asked = Asked(call)
        answered = filled(asked.schema, asked.schema)
        if made.kind in ("think", "speak", "act"):
            move = filled(option_of(asked, "move", made.kind), asked.schema)
            assert made.said.keys() <= move[made.kind].keys(), f"not asked: {made.said}"
            move[made.kind].update(made.said)
        else:
            move = call_of(asked, "move", made.kind, made.said, bases=made.bases)
        assert made.beside.keys() <= answered.keys(), f"not asked: {made.beside}"
        return {**answered, **made.beside, "move": move}

    return ScriptedChatModel(answer)


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
    """A conversation with a speaker whose model makes the moves of a script; settings are those of `ReSpAct`."""

    def __init__(self, script: Sequence[Any], agent: Any = DESK, **settings: Any) -> None:
        names = {each.name for each in dataclasses.fields(ReSpAct)}
        strategy = ReSpAct(**{name: settings.pop(name) for name in list(settings) if name in names})
        settings = {"mode": "direct", "checkpointer": MemorySaver(), **settings}
        self.model = script if isinstance(script, ScriptedChatModel) else speaker(script)
        self.app = create_respact_agent(self.model, agent, strategy=strategy, **settings)
        self.waits: Any = None

    def hear(self, text: Any, thread: Any = THREAD, **channels: Any) -> str:
        """What the agent says, in a chat or to a new task."""
        return self._run({"messages": [HumanMessage(text, id=None)], **channels}, thread)

    def answer(self, text: Any, thread: Any = THREAD) -> str:
        """What the agent says to an answer that it waits for."""
        return self._run(Command(resume=text), thread)

    def _run(self, given: Any, thread: Any) -> str:
        state = self.app.invoke(given, thread)
        self.waits = state["__interrupt__"][0].value if "__interrupt__" in state else None
        return str(self.messages[-1].text)

    @property
    def state(self) -> dict[str, Any]:
        return dict(self.app.get_state(THREAD).values)

    @property
    def messages(self) -> list[Any]:
        return list(self.state["messages"])

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        made = [each for m in self.messages if isinstance(m, AIMessage) for each in m.tool_calls]
        return [(each["name"], each["args"]) for each in made]

    @property
    def results(self) -> list[str]:
        return [m.text for m in self.messages if isinstance(m, ToolMessage)]

    @property
    def moves(self) -> list[tuple[str, str]]:
        """The moves of the turn or task: what each was, and its words."""
        return [(move["kind"], move["text"]) for move in self.state["moves"]]

    @property
    def asked(self) -> list[Asked]:
        """What the model was asked."""
        return asked_by(self.model, "speaker")
