"""Find the milestones that can be reached at all: a rule with `before` may forbid what its own milestone needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from arq_graph.milestones.fixpoints import NEVER, IndexedGraph
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import START, Forbidden, Milestone


def find_attainable(graph: MilestoneGraph) -> set[str]:
    """Return the milestones that can be reached without a forbidden call. Cost O(E log V + rules * E).

    A call that is forbidden before M has to follow M, or to reach M itself. If only the values of arguments could tell
    whether a rule forbids a call, the call counts as allowed. Every `before` must name a milestone.
    """
    added_dependencies = _find_added_dependencies(graph)
    milestones: list[Milestone] = []
    for milestone in graph.milestones:
        added = added_dependencies.get(milestone.name)
        if added is None:
            milestones.append(milestone)
            continue
        own = Milestone(
            name=f"the dependencies\nof {milestone.name}",
            type="Aggregator",
            requires=milestone.requires,
            dependencies=milestone.dependencies,
        )
        milestones.append(own)
        changes = {"requires": "all", "dependencies": (own.name, *added)}
        milestones.append(milestone.model_copy(update=changes))
    return _find_reachable(MilestoneGraph(milestones)).intersection(graph)


def find_reachable_before_end_states(graph: MilestoneGraph) -> set[str]:
    """Return the milestones that can be reached before the last event: those that don't need an end state."""
    milestones: list[Milestone] = []
    for milestone in graph.milestones:
        if milestone.state is not None and not milestone.optional:
            milestone = milestone.model_copy(update={"dependencies": (milestone.name,)})  # never reached
        milestones.append(milestone)
    reachable = _find_reachable(MilestoneGraph(milestones))
    return {name for name in reachable if graph.get_milestone(name).state is None}


def _find_reachable(graph: MilestoneGraph) -> set[str]:
    indexed = IndexedGraph(graph)
    return {name for name, depth in zip(indexed.names, indexed.depths, strict=True) if depth < NEVER}


def _find_added_dependencies(graph: MilestoneGraph) -> Mapping[str, Sequence[str]]:
    """Return, by FC, the milestones that it has to wait for because its calls are forbidden before them."""
    added_dependencies: dict[str, list[str]] = defaultdict(list)
    for rule in graph.forbidden:
        if rule.before is None:
            continue
        before = graph.get_milestone(rule.before)
        last_steps = _find_last_steps(graph, before)
        for milestone in graph.milestones:
            if milestone.name == before.name or not _forbids_calls(rule, milestone):
                continue
            # One call may observe both milestones, unless one of them depends on the other.
            if before.type == "FC" and before.tool_name == milestone.tool_name:
                has_to_wait = milestone.name in graph.pred[before.name]
            else:
                has_to_wait = milestone.name not in last_steps
            if has_to_wait:
                added_dependencies[milestone.name].append(before.name)
    return added_dependencies


def _forbids_calls(rule: Forbidden, milestone: Milestone) -> bool:
    """Return whether a rule surely forbids the calls that observe an FC, and nothing can do without this FC."""
    is_needed_of_agent = milestone.type == "FC" and milestone.by == "agent" and not milestone.optional
    if not is_needed_of_agent or rule.tool != milestone.tool_name or rule.unless:
        return False
    return rule.arguments.items() <= milestone.arguments.items()


def _find_last_steps(graph: MilestoneGraph, milestone: Milestone) -> set[str]:
    """Return the milestones whose own event may reach a join or End; there are none for other milestones.

    Between them and the join are only joins and optional milestones, so that no other event has to follow.
    """
    last_steps: set[str] = set()
    stack = [milestone.name] if milestone.is_derived or milestone.may_share_event else []
    while stack:
        for name in graph.pred[stack.pop()]:
            dependency = graph.get_milestone(name)
            is_passed_at_once = dependency.is_derived or dependency.optional or dependency.may_share_event
            if is_passed_at_once and name not in last_steps and name != START:
                stack.append(name)
            last_steps.add(name)
    return last_steps
