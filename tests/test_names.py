"""The doors: what they offer loads when it is first used, and says what it is."""

import importlib
import subprocess
import sys

import pytest

DOORS = [
    "arq_graph",
    "arq_graph.nodes",
    "arq_graph.milestones",
    "arq_graph.middleware",
    "arq_graph.agui",
    "arq_graph.testing",
]


@pytest.mark.parametrize("door", DOORS)
def test_a_door_offers_its_names_and_nothing_else(door: str) -> None:
    if door == "arq_graph.agui":
        pytest.importorskip("ag_ui")
    module = importlib.import_module(door)
    assert len(set(module.__all__)) == len(module.__all__)
    names: dict[str, object] = {}
    exec(f"from {door} import *", names)
    assert set(names) - {"__builtins__"} == set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="NoSuchName"):
        module.NoSuchName  # noqa: B018


@pytest.mark.slow
def test_no_agent_needs_a_providers_client_or_a_graph_library_to_be_made() -> None:
    code = """
import sys
from arq_graph import Agent, Guideline, ScriptedChatModel, create_guided_agent
agent = Agent("Desk", "You help.", [Guideline("they greet", "greet back")])
create_guided_agent(ScriptedChatModel([]), agent)
print([name for name in ("langchain_openai", "openai", "networkx", "typer") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.slow
def test_no_recorded_conversation_needs_langchain_to_be_measured() -> None:
    code = """
import sys
import arq_graph.cli.score  # the command
from arq_graph.milestones import MilestoneGraph, read_transcript, score
graph = MilestoneGraph.from_actions([{"name": "get_order", "arguments": {"id": 17}}])
score(graph, read_transcript([{"role": "user", "content": "Where is order 17?"}]))
print([name for name in ("langgraph", "langchain_core.messages") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
