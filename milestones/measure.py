"""The measure: what was reached, whether the goal was, and how much of the way to it.

Source: Pre-Act, 4.3 and Appendices F to H, made exact. All that depends on the graph alone is computed once.

Every function raises `SpecError` if nothing can be measured on the graph.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from arq_graph.milestones.findings import require_measurable
from arq_graph.milestones.fixpoints import (
    NEVER,
    IndexedGraph,
    Whole,
    compute_needs,
    compute_progress,
    find_passing_events,
    find_reach_events,
    is_avoidable,
)
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.matching import ForbiddenEvent, Observations
from arq_graph.milestones.milestone import END, Milestone


def reach(graph: MilestoneGraph, observations: Observations, *, optimistic: bool = False) -> dict[str, int]:
    """Return the event at which each reached milestone was reached, in the order of the events.

    Start is reached at event 0. A milestone is reached at the first event at which it was observed and which
    is strictly later than the one that satisfied its dependencies: the earliest of them for alternatives, the
    latest where all are required. Joins and End take that event itself, and what depends on an optional milestone may
    follow it. One event may serve several independent milestones. The least fixpoint, so a cycle cannot reach itself.
    Pre-Act 4.3: "achieved successfully in the correct sequence". `optimistic`: what is undecided is observed at every
    event. Cost O(E log V + observations).
    """
    indexed = require_measurable(graph)
    observed = {indexed.numbers[name]: events for name, events in observations.events.items()}
    undecided_names = observations.undecided if optimistic else ()
    undecided = []
    for name in undecided_names:
        if graph.get_milestone(name).state is None:
            undecided.append(indexed.numbers[name])
        else:
            observed[indexed.numbers[name]] = (observations.length + 1,)
    reach_events = find_reach_events(indexed, observed, observations.length, undecided)
    order = sorted((event, number) for number, event in enumerate(reach_events) if event < NEVER)
    return {indexed.names[number]: int(event) for event, number in order}


def is_goal_completed(
    graph: MilestoneGraph, reached: Collection[str], forbidden: Collection[Any] = ()
) -> bool | None:
    """Return goal completion (GC): whether End is reached and no forbidden event happened. Cost O(1).

    None if there is nothing to complete: End follows from Start alone (an empty gold list), and the graph
    forbids nothing either.
    """
    indexed = require_measurable(graph)
    if indexed.end_needs_nothing and not graph.forbidden:
        return None
    return indexed.names[indexed.end] in reached and not forbidden


def select_forbidden(observations: Observations, reached: Mapping[str, int]) -> tuple[ForbiddenEvent, ...]:
    """Return the events that were forbidden when they happened, given what was reached.

    An event is forbidden `before` a milestone if the milestone was not reached, or by a later event. So the more is
    reached, and the earlier, the fewer events are forbidden: goal completion never falls with what is observed.
    """
    selected: list[ForbiddenEvent] = []
    for forbidden in observations.forbidden:
        before = forbidden.rule.before
        if before is None or forbidden.event < reached.get(before, NEVER):
            selected.append(forbidden)
    return tuple(selected)


def compute_progress_rate(graph: MilestoneGraph, reached: Collection[str]) -> float | None:
    """Return the progress rate (PR): on the best road to End that was taken, the share of the distance covered.

    1 if End is reached. Otherwise the maximum, over the milestones x, of

        (depth(x) - need(x | R)) / (depth(x) + left(x | R))

    where need(x | R) is what has still to be done to pass x once the milestones in R are reached
    (`fixpoints.compute_needs`), depth(x) is the same from Start alone, but with the weights of the optional milestones
    in R, and left(x | R) is the way on from x to End (`fixpoints.compute_left`); 0 if no x has finite terms. As R
    grows, no depth falls and no need or left grows, so with what is covered, depth - need, the share covered grows.
    It depends on R alone, never falls as R grows, and is 1 only
    where End is reached. Pre-Act 4.3: "the ratio of the distance covered to the total distance from start to
    end". None as for `is_goal_completed`. Cost O(E log V).
    """
    indexed = require_measurable(graph)
    if indexed.end_needs_nothing and not graph.forbidden:
        return None
    rate, _ = compute_progress(indexed, _number_reached(indexed, reached))
    return rate


def find_path_taken(graph: MilestoneGraph, reached: Mapping[str, int]) -> tuple[str, ...]:
    """Return the reached milestones on the road that the progress rate is about, in the order of their events.

    From End, or from the milestone at which the progress rate has its maximum, back along the dependencies
    that satisfied each (see `find_satisfying_dependencies`); from one that is not reached yet, along those
    that it needs. Cost O(E log V).
    """
    indexed = require_measurable(graph)
    numbers = _number_reached(indexed, reached)
    needs: list[Whole] = []
    satisfying = find_satisfying_dependencies(graph, reached)
    _, best = compute_progress(indexed, numbers)
    stack = [indexed.names[best]]
    visited = set(stack)
    while stack:
        name = stack.pop()
        dependencies = satisfying.get(name) or tuple(graph.predecessors(name))
        if name not in reached and graph.get_milestone(name).requires == "any":
            needs = needs or compute_needs(indexed, numbers)
            nearest = min(dependencies, key=lambda dependency: needs[indexed.numbers[dependency]])
            dependencies = (nearest,)
        stack += [dependency for dependency in dependencies if dependency not in visited]
        visited.update(dependencies)
    return tuple(name for name in reached if name in visited)


def find_satisfying_dependencies(
    graph: MilestoneGraph, reached: Mapping[str, int]
) -> dict[str, tuple[str, ...]]:
    """Return, for each reached or skipped milestone, the dependencies that let it be: the edges that were travelled.

    The earliest passed of alternatives (of several at one event, the first listed); all where all are
    required. Cost O(V + E), and O(E log V) if some are optional.
    """
    passed = find_passed(graph, reached)
    satisfying: dict[str, tuple[str, ...]] = {}
    for name in passed:
        dependencies = tuple(graph.predecessors(name))
        if graph.get_milestone(name).requires == "any":
            passed_dependencies = filter(passed.__contains__, dependencies)
            dependencies = tuple(sorted(passed_dependencies, key=passed.__getitem__)[:1])
        satisfying[name] = dependencies
    return satisfying


def find_passed(graph: MilestoneGraph, reached: Mapping[str, int]) -> Mapping[str, int]:
    """Return the milestones that let their dependents be reached, with the event from which they do.

    They are the reached ones, and the optional ones that may be skipped.
    """
    indexed = graph.compute_once(IndexedGraph)
    if not indexed.optional_lengths:
        return reached
    reach_events = {indexed.numbers[name]: event for name, event in reached.items()}
    events = find_passing_events(indexed, reach_events)
    return {name: int(event) for name, event in zip(indexed.names, events, strict=True) if event < NEVER}


def with_goal(graph: MilestoneGraph, goal: str) -> MilestoneGraph:
    """Return a copy of the graph in which End also requires the milestone `goal`, which is then not optional.

    If every road to End leads over the milestone anyway, return the graph itself.

    Raises:
        KeyError: There is no such milestone.
        SpecError: Nothing can be measured on the graph.
    """
    indexed = require_measurable(graph)
    if goal == END or not is_avoidable(indexed, indexed.numbers[goal]):
        return graph
    end = graph.get_milestone(END)
    any_road = Milestone(
        name="End Of Some Road", type="Aggregator", requires=end.requires, dependencies=end.dependencies
    )
    both = {"requires": "all", "dependencies": (any_road.name, goal)}
    required_goal = graph.get_milestone(goal).model_copy(update={"optional": False})
    milestones = []
    for milestone in graph.milestones:
        if milestone is not end:
            milestones.append(required_goal if milestone.name == goal else milestone)
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


def _number_reached(indexed: IndexedGraph, reached: Collection[str]) -> set[int]:
    """Return the numbers of the reached milestones, Start always among them."""
    numbers = {indexed.numbers[name] for name in reached}
    numbers.add(indexed.start)
    return numbers
