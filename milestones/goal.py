"""A milestone as the goal of a conversation: End requires it beside what it depends on."""

from __future__ import annotations

from pathlib import Path

from arq_graph.milestones.findings import require_measurable
from arq_graph.milestones.fixpoints import is_avoidable
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import END, Milestone


def with_goal(graph: MilestoneGraph, goal: str) -> MilestoneGraph:
    """Return a copy of the graph in which End also requires the milestone `goal`.

    If every road to End leads over the milestone anyway, return the graph itself.

    Raises:
        KeyError: There is no such milestone.
        SpecError: Nothing can be measured on the graph.
    """
    indexed = require_measurable(graph)
    if goal == END or not is_avoidable(indexed, indexed.numbers[goal]):
        return graph
    end = graph.milestone(END)
    any_road = Milestone(
        name="End Of Some Road",
        type="Aggregator",
        requires=end.requires,
        dependencies=end.dependencies,
    )
    both = {"requires": "all", "dependencies": (any_road.name, goal)}
    milestones = [milestone for milestone in graph.milestones if milestone is not end]
    milestones += [any_road, end.model_copy(update=both)]
    copy = MilestoneGraph(
        milestones,
        failed_if=graph.failed_if,
        grounded=graph.grounded,
        forbidden=graph.forbidden,
        file=graph.file,
        generated_by=graph.generated_by,
        reviewed=graph.reviewed,
        vetoes=graph.vetoes,
    )
    graph_name = graph.name or Path(graph.file or "milestones").stem
    copy.name = f"{graph_name}: {goal}"
    return copy
