"""Paired conversations: the differences between two sides of them, and which side is better."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import fsum
from typing import Literal, NamedTuple, TypeVar

from arq_graph.milestones.reports.records import ConversationRecord, Record, group_by
from arq_graph.milestones.reports.statistics import (
    clipped_mean,
    difference_interval,
    holm_correction,
    mcnemar_p,
    sign_flip_p,
)
from arq_graph.milestones.reports.summary import Fourfold

K = TypeVar("K", bound=Hashable)

SIGNIFICANT = 0.05
Decision = Literal["a better", "b better", "no difference shown"]
_FIGURES = ("goal_reached", "goal_completion", "progress_rate")


class Difference(Record):
    """The difference of one figure between A and B, over the pairs in which it is known in both.

    Args:
        left_out: Pairs in which it is undecided in A or in B, or in which there is nothing to complete.
        tasks: The number of independent groups of pairs: tasks, whatever kinds of users they were tried with, or the
            pairs themselves if each task was tried once.
        a: The mean over A's side of the pairs, 0 to 1; `b` is that over B's, and `difference` is b - a. None if there
            are no pairs.
        low: Of the difference's 95% interval over tasks to `high`; None if there are fewer than two tasks. If all tasks
            are alike, it is as wide as the share of tasks that may differ (`statistics.difference_interval`).
        p: The probability of so large a difference by chance alone, two-sided; among use cases, corrected for their
            number. None if there are no pairs.
        verdict: `a better` or `b better` if p is below 0.05 and the interval leaves 0 out.
    """

    pairs: int
    left_out: int
    tasks: int
    a: float | None = None
    b: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    test: Literal["McNemar", "sign flip"]
    verdict: Decision = "no difference shown"


class ComparedGroup(Record):
    """The differences in a group of pairs: of the customer's own goal if a scenario names one, of GC, and of PR.

    `split` counts the pairs in which the goal was completed by both, by one of the two alone, or by neither.
    """

    pairs: int
    goal_reached: Difference | None = None
    goal_completion: Difference
    split: Fourfold
    progress_rate: Difference


class Pair(NamedTuple):
    """Two conversations about the same thing; pairs of one `cluster` are of one task, and depend on each other."""

    cluster: Hashable
    a: ConversationRecord
    b: ConversationRecord


def compare_pairs(pairs: Sequence[Pair]) -> ComparedGroup:
    """Return the differences over some pairs; p is not corrected."""
    pairs_with_goal, completions = [], []
    for pair in pairs:
        completions.append((pair.a.goal_completed, pair.b.goal_completed))
        if pair.a.goal is not None or pair.b.goal is not None:
            pairs_with_goal.append(pair)
    goal_reached = None
    if pairs_with_goal:
        goal_reached = _compute_difference(pairs_with_goal, "goal_reached")
    return ComparedGroup(
        pairs=len(pairs),
        goal_reached=goal_reached,
        goal_completion=_compute_difference(pairs, "goal_completed"),
        split=Fourfold.count(completions),
        progress_rate=_compute_difference(pairs, "progress_rate"),
    )


def compare_groups(pairs_by_group: Mapping[K, Sequence[Pair]]) -> dict[K, ComparedGroup]:
    """Return the differences in each group of pairs; p of each figure is corrected for the number of groups (Holm)."""
    groups: dict[K, ComparedGroup] = {}
    for name, pairs in pairs_by_group.items():
        groups[name] = compare_pairs(pairs)
    for figure in _FIGURES:
        ps: dict[K, float] = {}
        for name, group in groups.items():
            difference = getattr(group, figure)
            if difference is not None and difference.p is not None:
                ps[name] = difference.p
        for name, p in holm_correction(ps).items():
            difference = getattr(groups[name], figure)
            verdict = _decide(difference.low, difference.high, p)
            corrected = difference.model_copy(update={"p": p, "verdict": verdict})
            groups[name] = groups[name].model_copy(update={figure: corrected})
    return groups


def compare_use_cases(pairs: Sequence[Pair]) -> dict[str, ComparedGroup]:
    """Return the differences by use case, in alphabetical order; p is corrected for their number."""
    pairs_by_use_case = group_by(pairs, lambda pair: pair.a.use_case)
    return compare_groups(dict(sorted(pairs_by_use_case.items())))


def compare_arms(
    arms: Mapping[str, Sequence[ConversationRecord]], compared: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], ComparedGroup]:
    """Compare pairs of arms over the runs of scenarios that both have; p is corrected for the number of pairs."""
    pairs_by_arms = {}
    for a, b in compared:
        pairs_by_arms[a, b] = pair_runs(arms[a], arms[b])
    return compare_groups(pairs_by_arms)


def find_reference_arms(arms: Iterable[str]) -> dict[str, str]:
    """Return, for each ablation such as `arq -condition`, the arm that it is otherwise, if that is among the arms."""
    names = list(arms)
    reference_arms = {}
    for arm in names:
        reference = arm.partition(" -")[0]
        if reference != arm and reference in names:
            reference_arms[arm] = reference
    return reference_arms


def pair_runs(records_a: Iterable[ConversationRecord], records_b: Iterable[ConversationRecord]) -> list[Pair]:
    """Return the runs of scenarios that two arms both have, as pairs."""
    runs_b = {(record.scenario, record.run): record for record in records_b}
    pairs = []
    for record in records_a:
        counterpart = runs_b.get((record.scenario, record.run))
        if counterpart is not None:
            pairs.append(Pair(record.independent_task or record.scenario, record, counterpart))
    return pairs


def _compute_difference(pairs: Sequence[Pair], figure: str) -> Difference:
    clusters: list[Hashable] = []
    values_a: list[float] = []
    values_b: list[float] = []
    differences: list[float] = []
    for pair in pairs:
        a, b = getattr(pair.a, figure), getattr(pair.b, figure)
        if a is not None and b is not None:
            clusters.append(pair.cluster)
            values_a.append(float(a))
            values_b.append(float(b))
            differences.append(float(b) - float(a))
    n, tasks = len(clusters), len(set(clusters))
    test: Literal["McNemar", "sign flip"]
    test = "McNemar" if figure != "progress_rate" and tasks == n else "sign flip"
    if not n:
        return Difference(pairs=0, left_out=len(pairs), tasks=0, test=test)
    low, high = difference_interval(differences, clusters) or (None, None)
    if test == "McNemar":
        p = mcnemar_p(differences.count(-1), differences.count(1))
    else:
        p = sign_flip_p(differences, clusters)
    return Difference(
        pairs=n,
        left_out=len(pairs) - n,
        tasks=tasks,
        a=fsum(values_a) / n,
        b=fsum(values_b) / n,
        difference=clipped_mean(differences),
        low=low,
        high=high,
        p=p,
        test=test,
        verdict=_decide(low, high, p),
    )


def _decide(low: float | None, high: float | None, p: float) -> Decision:
    # An interval alone would find differences in very few pairs: three that are alike leave 0 out, but p does not.
    if low is None or high is None or p >= SIGNIFICANT or low <= 0 <= high:
        return "no difference shown"
    return "b better" if low > 0 else "a better"
