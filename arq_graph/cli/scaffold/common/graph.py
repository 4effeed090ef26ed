"""The graph that the LangGraph server and Studio run. It is made once; the server brings its own checkpointer."""

from __future__ import annotations

import os
from pathlib import Path

from arq_graph import Agent, create_guided_agent

MODEL = os.environ.get("ARQ_GRAPH_MODEL") or "XX_MODEL_XX"
AGENT = Agent.from_yaml(Path(__file__).with_name("agent.yaml"))

graph = create_guided_agent(MODEL, AGENT)
