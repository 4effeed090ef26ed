"""The measure: what was reached, whether the goal was, and how much of the way to it.

Source: Pre-Act, 4.3 and Appendices F to H, made exact. All that depends on the graph alone is computed once.

Every function raises `SpecError` where nothing can be measured on the graph.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from arq_graph.milestones.findings import require_measurable
from arq_graph.milestones.fixpoints import NEVER, Structure, find_reach_events, needs, progress
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.matching import Observations


def reach(graph: MilestoneGraph, observations: Observations, *, optimistic: bool = False) -> dict[str, int]:
    """Which milestones were reached, and at which event, in the order in which they were.

    Start is reached at event 0. A milestone is reached at the first event at which it was observed and which
    is strictly later than the one that satisfied its dependencies: the earliest of them for alternatives, the
    latest where all are required. Joins and End take that event itself. One event may serve several
    independent milestones. The least fixpoint, so a cycle cannot reach itself. Pre-Act 4.3: "achieved
    successfully in the correct sequence". `optimistic`: what is undecided is observed at every event.
    Cost O(E log V + observations).
    """
    structure = require_measurable(graph)
    observed = {structure.number[name]: events for name, events in observations.events.items()}
    undecided = [structure.number[name] for name in observations.undecided if optimistic]
    time = find_reach_events(structure, observed, observations.length, undecided)
    order = sorted((event, number) for number, event in enumerate(time) if event < NEVER)
    return {structure.names[number]: int(event) for event, number in order}


def is_goal_completed(
    graph: MilestoneGraph, reached: Collection[str], forbidden: Collection[Any] = ()
) -> bool | None:
    """Goal completion (GC): End is reached and no forbidden event happened. Cost O(1).

    None where there is nothing to complete: End follows from Start alone (an empty gold list), and the graph
    forbids nothing either.
    """
    structure = require_measurable(graph)
    if structure.end_is_given and not graph.forbidden:
        return None
    return structure.names[structure.end] in reached and not forbidden


def compute_progress_rate(graph: MilestoneGraph, reached: Collection[str]) -> float | None:
    """Progress rate (PR): on the best road to End that was taken, the share of the distance covered.

    1 if End is reached. Otherwise the maximum, over the milestones x, of

        (depth(x) - need(x | R)) / (depth(x) + left(x | R))

    where need(x | R) is what has still to be done to reach x once the milestones in R are reached
    (`fixpoints.needs`), depth(x) is the same from Start alone, and left(x | R) is the way on from x to End
    (`fixpoints.left`); 0 if no x has finite terms. It depends on R alone, never falls as R grows, and is 1 only
    where End is reached. Pre-Act 4.3: "the ratio of the distance covered to the total distance from start to
    end". None as for `is_goal_completed`. Cost O(E log V).
    """
    structure = require_measurable(graph)
    if structure.end_is_given and not graph.forbidden:
        return None
    return progress(structure, _numbers(structure, reached))[0]


def find_path_taken(graph: MilestoneGraph, reached: Mapping[str, int]) -> tuple[str, ...]:
    """The reached milestones on the road that the progress rate is about, in the order in which they were.

    From End, or from the milestone at which the progress rate has its maximum, back along the dependencies
    that satisfied each (see `find_satisfying_dependencies`); from one that is not reached yet, along those
    that it needs. Cost O(E log V).
    """
    structure = require_measurable(graph)
    done = _numbers(structure, reached)
    need = needs(structure, done)
    behind = find_satisfying_dependencies(graph, reached)
    stack = [structure.names[progress(structure, done)[1]]]
    seen = set(stack)
    while stack:
        name = stack.pop()
        before = behind.get(name) or tuple(graph.pred[name])
        if name not in reached and graph.milestone(name).requires == "any":
            before = (min(before, key=lambda each: need[structure.number[each]]),)
        stack += [each for each in before if each not in seen]
        seen.update(before)
    return tuple(name for name in reached if name in seen)


def find_satisfying_dependencies(
    graph: MilestoneGraph, reached: Mapping[str, int]
) -> dict[str, tuple[str, ...]]:
    """For each reached milestone, the dependencies that let it be reached: the edges that were travelled.

    The earliest reached of alternatives (of several at one event, the first listed); all where all are
    required. Cost O(V + E).
    """
    behind: dict[str, tuple[str, ...]] = {}
    for name in reached:
        before = tuple(graph.pred[name])
        if graph.milestone(name).requires == "any":
            before = tuple(sorted((one for one in before if one in reached), key=reached.__getitem__)[:1])
        behind[name] = before
    return behind


def _numbers(structure: Structure, reached: Collection[str]) -> set[int]:
    return {structure.start, *(structure.number[name] for name in reached)}
