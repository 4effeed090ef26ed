"""The agent, its tools and the milestones as a judge's prompt shows them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.observations import Observations
from arq_graph.milestones.tool_schemas import argument_schemas, tool_name


def milestone_ids(graph: MilestoneGraph) -> dict[str, str]:
    """An id for each milestone, by its name: `M1`, `M2`, … in the graph's order, whatever is asked of them."""
    return {milestone.name: f"M{number}" for number, milestone in enumerate(graph.milestones, start=1)}


def shown_milestones(graph: MilestoneGraph) -> list[dict[str, Any]]:
    """All milestones of a graph: what they mean and what comes before them."""
    ids = milestone_ids(graph)
    return [_shown(milestone, ids) for milestone in graph.milestones]


def _shown(milestone: Milestone, ids: Mapping[str, str]) -> dict[str, Any]:
    kind = "call" if milestone.type == "FC" else "state"
    record: dict[str, Any] = {
        "id": ids[milestone.name],
        "type": "join" if milestone.is_derived else kind,
        "name": milestone.name,
    }
    if milestone.description:
        record["description"] = milestone.description
    if milestone.type == "FC":
        record["tool"] = milestone.called_tool
        if milestone.arguments:
            record["arguments"] = {name: rule.as_written() for name, rule in milestone.arguments.items()}
    if milestone.dependencies:
        record["dependencies"] = [ids.get(name, name) for name in milestone.dependencies]
    if len(milestone.dependencies) > 1:
        record["requires"] = "all" if milestone.type == "Aggregator" else milestone.requires
    if milestone.holds:
        record["holds"] = True
    return record


def seen_by_code(graph: MilestoneGraph, observations: Observations) -> dict[str, list[int]]:
    """The preliminary result: the steps at which code observed each milestone, by id."""
    ids = milestone_ids(graph)
    return {
        ids[milestone.name]: list(observations.events[milestone.name])
        for milestone in graph.milestones
        if observations.events.get(milestone.name)
    }


def shown_tools(tools: Any) -> list[dict[str, Any]]:
    """Tools with what their own definitions say: name, description, and the schema of the arguments.

    Args:
        tools: OpenAI tool definitions, LangChain tools or names; or schemas by name.

    Raises:
        ToolError: A tool has no name.
    """
    schemas = argument_schemas(tools)
    if isinstance(tools, Mapping):
        named: Iterable[tuple[str, Any]] = tools.items()
    else:
        named = [(tool_name(tool), tool) for tool in tools]
    shown = []
    for name, tool in named:
        record: dict[str, Any] = {"name": name}
        if description := _description(tool):
            record["description"] = description
        if name in schemas:
            record["arguments"] = schemas[name]
        shown.append(record)
    return shown


def _description(tool: Any) -> str:
    if isinstance(tool, str):
        return ""
    if isinstance(tool, Mapping):
        definition = tool.get("function", tool)
        said = definition.get("description") if isinstance(definition, Mapping) else None
    else:
        said = getattr(tool, "description", None) or inspect.getdoc(tool)
    return said if isinstance(said, str) else ""


def listed(tools: Any) -> Any:
    """Tools as something that can be read more than once."""
    return tools if tools is None or isinstance(tools, Mapping | Sequence) else list(tools)
