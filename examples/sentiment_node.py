"""A reasoning step of your own as a node: any blueprint, any template, any graph.

python examples/sentiment_node.py
"""

from __future__ import annotations

from typing import Literal

from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph

from arq_graph import ARQ, query, reinstate, respond
from arq_graph.nodes import BlueprintNode


class Mood(ARQ):
    """How does the customer feel?"""

    strongest_words: list[str] = reinstate("The customer's strongest words, word for word.")
    why: str = query("What do they tell about the mood, and what speaks against it?")
    mood: Literal["calm", "annoyed", "angry"] = respond("The customer's mood now.")


PROMPT = """
{% block head %}
Judge how the customer of a conversation feels at its end.
{% endblock %}
{% block tail %}
Judge the mood now.
{% endblock %}
"""


class State(MessagesState):
    """A graph of your own; the node's channel could be left out, LangGraph would add it."""

    mood: str


def build(model: str = "offline") -> CompiledStateGraph:
    """A graph of one node that writes the mood."""
    graph = StateGraph(State)
    graph.add_node(
        "mood", BlueprintNode(model, Mood, PROMPT, write={"mood": lambda answer: answer.value.mood})
    )
    graph.add_edge(START, "mood")
    graph.add_edge("mood", END)
    return graph.compile()


if __name__ == "__main__":
    print(build().invoke({"messages": [("user", "I am so angry! This is the third broken lamp!")]})["mood"])
