"""A desk that looks up how to care for coats, and a retriever that records what it is asked."""

from typing import Any

from langchain_core.documents import Document

from arq_graph import Agent, Guideline
from tests.order_tools import get_order

THREAD: Any = {"configurable": {"thread_id": "1"}}
CARE = Document("Wash it at 30 degrees.", metadata={"title": "Care", "source": "care.md", "page": 3})
QUESTION = "At how many degrees do I wash the coat of my order A-1, the red one?"


class Shelf:
    """A retriever that finds the same for every query."""

    def __init__(self, *found: Any) -> None:
        self.found = list(found) or [CARE]
        self.queries: list[str] = []

    def __call__(self, query: str) -> Any:
        self.queries.append(query)
        return self.found


def make_desk(*knowledge: Any, **fields: Any) -> Agent:
    guidelines = [Guideline("they ask about an order", "look it up", tools=[get_order])]
    return Agent("Desk", "You help.", **{"guidelines": guidelines, "knowledge": knowledge, **fields})


def make_input(*texts: str) -> dict[str, Any]:
    return {"messages": [("user", text) for text in texts]}
