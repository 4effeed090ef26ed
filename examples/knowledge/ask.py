"""An agent that looks things up in a manual, and cites the page that its reply rests on.

python examples/knowledge/ask.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, create_guided_agent

QUESTIONS = [
    "How do I wash my rain jacket after a week in the mud?",
    "And my tent?",  # too short to search with alone: the question before it comes first
    "The sleeve of it is torn. Do you repair that, and is it free?",
]


def build(model: Any = "offline") -> Any:
    agent = Agent.from_yaml(Path(__file__).parent / "agent.yaml")
    return create_guided_agent(model, agent, checkpointer=MemorySaver())


if __name__ == "__main__":
    app = build()
    thread: RunnableConfig = {"configurable": {"thread_id": "1"}}
    for text in QUESTIONS:
        state = app.invoke({"messages": [("user", text)]}, thread)
        print("customer:", text, "\nagent:   ", state["messages"][-1].text)
        cited = state["revisions"][-1].get("cited", ())
        for passage in state["passages"]:
            mark = "cited" if passage["id"] in cited else "found"
            print(f"{mark}:    {passage['id']} {passage['title']} ({passage['source']})")
        print()
