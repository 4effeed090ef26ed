"""Which milestones can be reached without anything forbidden: rules with `before` may contradict the dependencies."""

from __future__ import annotations

from collections.abc import Iterator

from arq_graph.milestones.fixpoints import NEVER, IndexedGraph
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import START, Forbidden, Milestone


def find_attainable(graph: MilestoneGraph) -> set[str]:
    """Return the milestones that can be reached without a forbidden call.

    A call that is forbidden before M has to follow M, or to reach M itself. The rules' `before` must be milestones.
    Where that can't be told without the values of arguments, a milestone counts as attainable.
    """
    milestones: list[Milestone] = []
    for milestone in graph.milestones:
        gates = list(_find_gates(graph, milestone))
        if gates:
            milestones.append(_make_join(milestone))
            gates.append(_name_join(milestone))
            milestone = milestone.model_copy(update={"requires": "all", "dependencies": tuple(gates)})
        milestones.append(milestone)
    return _find_reachable(MilestoneGraph(milestones)).intersection(graph)


def find_reachable_before_end_states(graph: MilestoneGraph) -> set[str]:
    """Return the milestones that can be reached before the last event: those that don't need an end state."""
    milestones = []
    for milestone in graph.milestones:
        if milestone.state is not None and not milestone.optional:
            milestone = milestone.model_copy(update={"dependencies": (milestone.name,)})
        milestones.append(milestone)
    reachable = _find_reachable(MilestoneGraph(milestones))
    return {name for name in reachable if graph.get_milestone(name).state is None}


def _find_reachable(graph: MilestoneGraph) -> set[str]:
    indexed = IndexedGraph(graph)
    return {name for name, depth in zip(indexed.names, indexed.depths, strict=True) if depth < NEVER}


def _find_gates(graph: MilestoneGraph, milestone: Milestone) -> Iterator[str]:
    """Yield the milestones that an FC has to wait for, by the rules that surely forbid its calls before them.

    One that may be skipped keeps nothing waiting.
    """
    for rule in graph.forbidden:
        before = rule.before
        if before is None or before == milestone.name or not _forbids_calls_of(rule, milestone):
            continue
        other = graph.get_milestone(before)
        # One call may observe both milestones, unless one of them depends on the other.
        may_share_call = other.type == "FC" and other.tool_name == milestone.tool_name
        if may_share_call and milestone.name in graph.pred[before]:
            yield before
        if not may_share_call and milestone.name not in _find_last_steps(graph, other):
            yield before


def _forbids_calls_of(rule: Forbidden, milestone: Milestone) -> bool:
    is_needed_of_agent = milestone.type == "FC" and milestone.by == "agent" and not milestone.optional
    if not is_needed_of_agent or rule.tool != milestone.tool_name or rule.unless:
        return False
    return rule.arguments.items() <= milestone.arguments.items()


def _find_last_steps(graph: MilestoneGraph, milestone: Milestone) -> set[str]:
    """Return what may reach a join or End by its own event, since no other event has to follow."""
    found: set[str] = set()
    stack = [milestone.name] if milestone.is_derived else []
    while stack:
        for name in graph.pred[stack.pop()]:
            dependency = graph.get_milestone(name)
            is_passed_at_once = dependency.is_derived or dependency.optional
            if is_passed_at_once and name not in found and name != START:
                stack.append(name)
            found.add(name)
    return found


def _name_join(milestone: Milestone) -> str:
    return f"the dependencies\nof {milestone.name}"


def _make_join(milestone: Milestone) -> Milestone:
    return Milestone(
        name=_name_join(milestone),
        type="Aggregator",
        requires=milestone.requires,
        dependencies=milestone.dependencies,
    )
