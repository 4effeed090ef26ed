from __future__ import annotations

import subprocess
import sys

import arq_graph.milestones as milestones


def test_importing_the_package_loads_nothing_heavy():
    code = (
        "import sys, arq_graph.milestones\n"
        "heavy = {'networkx', 'yaml', 'regex', 'langchain_core', 'langgraph', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_scoring_needs_neither_nodes_nor_langgraph_nor_langchain():
    code = (
        "import sys\n"
        "from arq_graph.milestones import MilestoneGraph, read_transcript, score\n"
        "graph = MilestoneGraph.from_actions([{'name': 'get'}])\n"
        "call = {'id': 'c', 'function': {'name': 'get', 'arguments': '{}'}}\n"
        "talk = read_transcript([{'role': 'assistant', 'tool_calls': [call]},"
        " {'role': 'tool', 'tool_call_id': 'c', 'content': 'ok'}])\n"
        "assert score(graph, talk).goal_completed\n"
        "heavy = {'langgraph', 'langchain_core', 'openai', 'arq_graph.nodes'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there():
    for name in milestones.__all__:
        assert getattr(milestones, name) is not None
    assert set(milestones.__all__) <= set(dir(milestones))
