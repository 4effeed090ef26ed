"""In a world that takes any text, the offline speaker says what its last action showed before it asks on."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from arq_graph.agent.environment import Observation
from arq_graph.apps.respact import create_respact_agent


class Cellar:
    """A dark cellar: the lamp has to be lit; anything else shows the same."""

    done = False
    score: float | None = None

    def reset(self, seed: int | None = None) -> str:
        return "It is dark."

    def actions(self) -> list[str] | None:
        return None

    def step(self, action: str) -> Observation:
        self.done = action == "light the lamp"
        return Observation("A lamp burns." if self.done else "Still dark. Who is there?", done=self.done)


def test_no_two_neighbouring_utterances_are_the_same_and_each_tells_what_was_seen():
    app = create_respact_agent("offline", environment=Cellar(), checkpointer=MemorySaver())
    thread: Any = {"configurable": {"thread_id": "t"}}
    state = app.invoke({"messages": [("user", "Bring light, please.")]}, thread)
    for action in ("walk", "walk", "walk", "shout", "light the lamp"):
        assert state["__interrupt__"], state["messages"][-1].text
        state = app.invoke(Command(resume=action), thread)
    said = [m.text for m in state["messages"] if isinstance(m, AIMessage) and m.text]
    assert all(one != other for one, other in pairwise(said)), said
    assert all("Still dark" in text for text in said[1:5])
    assert state["world"].done
