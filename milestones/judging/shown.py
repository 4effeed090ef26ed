"""The agent, its tools and the milestones as a judge's prompt shows them."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judging.bounds import SHORTEST_TEXT, Budget, cut
from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.observations import Observations
from arq_graph.milestones.tool_schemas import argument_schemas, tool_name
from arq_graph.reasoning.sections import as_json


def milestone_ids(graph: MilestoneGraph) -> dict[str, str]:
    """An id for each milestone, by its name: `M1`, `M2`, … in the graph's order, whatever is asked of them."""
    return {milestone.name: f"M{number}" for number, milestone in enumerate(graph.milestones, start=1)}


def shown_milestones(
    graph: MilestoneGraph, only: Collection[str] | None = None, limit: int | None = None
) -> list[dict[str, Any]]:
    """Milestones of a graph: what they mean and what comes before them.

    Args:
        graph: The milestones.
        only: The names of those that are shown; None: all.
        limit: Characters of a description that are shown at most; None: all.
    """
    ids = milestone_ids(graph)
    return [
        _shown(milestone, ids, limit)
        for milestone in graph.milestones
        if only is None or milestone.name in only
    ]


def _shown(milestone: Milestone, ids: Mapping[str, str], limit: int | None) -> dict[str, Any]:
    kind = "call" if milestone.type == "FC" else "state"
    record: dict[str, Any] = {
        "id": ids[milestone.name],
        "type": "join" if milestone.is_derived else kind,
        "name": milestone.name,
    }
    if milestone.description:
        record.update(cut("description", milestone.description, limit))
    if milestone.type == "FC":
        record["tool"] = milestone.called_tool
        if milestone.arguments:
            record["arguments"] = {name: rule.as_written() for name, rule in milestone.arguments.items()}
    if milestone.dependencies:
        record["dependencies"] = [ids.get(name, name) for name in milestone.dependencies]
    if len(milestone.dependencies) > 1:
        record["requires"] = milestone.requires
    if milestone.holds:
        record["holds"] = True
    return record


def seen_by_code(
    graph: MilestoneGraph, observations: Observations, only: Collection[str] | None = None
) -> dict[str, list[int]]:
    """The preliminary result: the steps at which code observed each milestone, by id.

    Args:
        graph: The milestones.
        observations: What code observed.
        only: The names of those that are shown; None: all.
    """
    ids = milestone_ids(graph)
    return {
        ids[milestone.name]: list(observations.events[milestone.name])
        for milestone in graph.milestones
        if observations.events.get(milestone.name) and (only is None or milestone.name in only)
    }


@dataclass(frozen=True)
class ShownGraph:
    """The milestones and what code saw of them, as one ask shows them.

    Args:
        milestones: The milestones.
        seen: The steps at which code observed them, by id.
    """

    milestones: list[dict[str, Any]]
    seen: dict[str, list[int]]


def shown_graph(graph: MilestoneGraph, observations: Observations, budget: Budget) -> ShownGraph | None:
    """All of a graph, for every ask the same; None where it has no room.

    Args:
        graph: The milestones.
        observations: What code observed.
        budget: That of each of the two.
    """
    whole = ShownGraph(shown_milestones(graph), seen_by_code(graph, observations))
    return whole if budget.has_room_for(whole.milestones) and budget.has_room_for(whole.seen) else None


def shown_part(
    graph: MilestoneGraph, observations: Observations, batch: Sequence[Milestone], budget: Budget
) -> ShownGraph:
    """What one ask shows of a graph that has no room: its milestones and what they depend on.

    Long descriptions are cut as far as the budget makes it necessary. Where that is not enough, what they
    depend on is left out; a milestone that is asked about never is.

    Args:
        graph: The milestones.
        observations: What code observed.
        batch: Those that are asked about.
        budget: That of the milestones.
    """
    asked = {milestone.name for milestone in batch}
    for names in (asked | _before(graph, batch), asked):
        if shown := budget.fitted(partial(shown_milestones, graph, names)):
            return ShownGraph(shown, seen_by_code(graph, observations, names))
    shortest = shown_milestones(graph, asked, SHORTEST_TEXT)
    return ShownGraph(shortest, seen_by_code(graph, observations, asked))


def _before(graph: MilestoneGraph, batch: Sequence[Milestone]) -> set[str]:
    """The dependencies of milestones, and those of joins among them: a join is observed nowhere itself."""
    found: set[str] = set()
    waiting = [name for milestone in batch for name in milestone.dependencies]
    while waiting:
        name = waiting.pop()
        if name not in found and name in graph:
            found.add(name)
            milestone = graph.milestone(name)
            waiting.extend(milestone.dependencies if milestone.is_derived else ())
    return found


def shown_instructions(text: str, budget: Budget) -> str | dict[str, Any]:
    """What the agent was told; where it has no room its two ends, and how long it is.

    Args:
        text: The instructions.
        budget: Theirs.
    """

    def render(limit: int | None) -> str | dict[str, Any]:
        return text if limit is None else cut("text", text, limit)

    shown = budget.fitted(render)
    return render(SHORTEST_TEXT) if shown is None else shown


def fitted_tools(tools: Sequence[dict[str, Any]], budget: Budget) -> list[dict[str, Any]]:
    """Tools whose long descriptions and schemas are cut as far as they have to be; none where that is too little.

    Args:
        tools: As `shown_tools` gives them.
        budget: That of all of them.
    """
    return budget.fitted(lambda limit: [_cut_tool(tool, limit) for tool in tools]) or []


def _cut_tool(tool: dict[str, Any], limit: int | None) -> dict[str, Any]:
    if limit is None:
        return tool
    record = {"name": tool["name"]}
    if "description" in tool:
        record.update(cut("description", tool["description"], limit))
    if "arguments" in tool:
        written = as_json(tool["arguments"])
        record["arguments"] = tool["arguments"] if len(written) <= limit else cut("text", written, limit)
    return record


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
