"""The agent that is played with: read from its file, and read again when something beside the file changes."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

from watchfiles import Change, DefaultFilter, awatch

from arq_graph.agent.modules import load_object
from arq_graph.agent.spec import Agent
from arq_graph.errors import InputError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.graph_file import read_milestones
from arq_graph.milestones.reports.graph_layout import compute_layout

_SUFFIXES = {".py", ".yaml", ".yml", ".md", ".json", ".txt"}


class AgentSource:
    """An agent's YAML file, or `module:object` with an `Agent`, and a file of milestones, if there is one.

    `folder` is that of the agent's file, or the current one, where modules are searched for first. `written_files` are
    no part of the agent: the playground has written them.
    """

    def __init__(self, name: str, milestones_file: Path | None = None) -> None:
        is_file = Path(name).exists() or ":" not in name
        self.file = Path(name).resolve() if is_file else None
        self.folder = (self.file.parent if self.file else Path.cwd()).resolve()
        self.milestones_file = milestones_file
        self.written_files: set[Path] = set()
        self._name = name
        self._own_modules: list[str] = []

    def load(self) -> tuple[Agent, MilestoneGraph | None]:
        """Read the agent and the milestones, and import anew the modules of the folder that they name."""
        for name in self._own_modules:
            sys.modules.pop(name, None)
        other_modules = set(sys.modules)
        try:
            milestones = read_milestones(self.milestones_file) if self.milestones_file else None
            return self._read_agent(), milestones
        finally:
            self._own_modules = list(filter(self._is_own_module, sys.modules.keys() - other_modules))

    async def watch(self) -> AsyncIterator[None]:
        """Yield each time that files of the folder have changed which may be part of the agent."""
        is_usual_file = DefaultFilter()  # none of an environment, a cache or version control

        def is_source(change: Change, path: str) -> bool:
            is_written = Path(path) in self.written_files
            return Path(path).suffix in _SUFFIXES and not is_written and is_usual_file(change, path)

        async for _ in awatch(self.folder, watch_filter=is_source):
            yield

    async def watch_milestones(self) -> AsyncIterator[None]:
        """Yield each time that the file of milestones has changed, if it is in another folder."""
        file = self.milestones_file.resolve() if self.milestones_file else self.folder
        if not file.is_relative_to(self.folder):
            is_milestones = partial(_is_file, file)
            async for _ in awatch(file.parent, watch_filter=is_milestones, recursive=False):
                yield

    def _read_agent(self) -> Agent:
        if self.file:
            return Agent.from_yaml(self._name)
        agent = load_object(self._name, self.folder)
        if not isinstance(agent, Agent):
            message = "not an Agent: name an agent's YAML file, or the Agent itself as module:object"
            raise InputError(f"{self._name} is a {type(agent).__name__}, {message}")
        return agent

    def _is_own_module(self, name: str) -> bool:
        path = Path(getattr(sys.modules[name], "__file__", None) or "")
        is_installed = "site-packages" in path.parts or name.startswith("arq_graph.")
        return path.is_relative_to(self.folder) and not is_installed


def _is_file(file: Path, _: Change, path: str) -> bool:
    return Path(path) == file


def describe_agent(agent: Agent, milestones: MilestoneGraph | None, model: str) -> dict[str, Any]:
    """Return what the page shows of an agent: its guidelines, tools and graphs, as JSON."""
    guidelines = {}
    for rule in agent.rules:
        guidelines[rule.id] = {"condition": rule.condition_text, "action": rule.action}
    graphs = {journey.id: MilestoneGraph.from_journey(agent, journey.id) for journey in agent.journeys}
    if milestones is not None:
        graphs[""] = milestones
    return {
        "name": agent.name,
        "model": model,
        "profile": agent.profile.strip(),
        "guidelines": guidelines,
        "tools": {name: tool.description for name, tool in agent.toolbox.items()},
        "graphs": [_describe_graph(journey, graph) for journey, graph in graphs.items()],
    }


def _describe_graph(journey: str, graph: MilestoneGraph) -> dict[str, Any]:
    node_points, edge_points = compute_layout(graph)
    nodes = []
    for milestone in graph.milestones:
        node = milestone.model_dump(mode="json", include={"name", "type", "description"})
        nodes.append(node | {"at": node_points[milestone.name]})
    edges = [(*edge, bends) for edge, bends in edge_points.items()]
    return {"journey": journey, "nodes": nodes, "edges": edges}
