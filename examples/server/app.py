"""The graph that `langgraph dev` serves: made once, when the server starts, without a checkpointer or a store.

The server attaches its own. Set MODEL to a model string such as openai:gpt-4o; without it the offline model answers.
"""

from __future__ import annotations

import os
from pathlib import Path

from arq_graph import Agent, create_guided_agent

DESK = Agent.from_yaml(Path(__file__).with_name("desk.yaml"))

graph = create_guided_agent(os.environ.get("MODEL", "offline"), DESK)
