"""How the figures of pairs of conversations differ, and whether one side is better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from math import fsum
from typing import Literal, NamedTuple

from arq_graph.milestones.reports.records import ConversationRecord, Record
from arq_graph.milestones.reports.statistics import bootstrap_mean, holm, mcnemar, mean_within, sign_flip

SIGNIFICANT = 0.05
Decision = Literal["a better", "b better", "no difference shown"]
_FIGURES = ("goal_reached", "goal_completion", "progress_rate")


class Difference(Record):
    """How one figure differs between A and B, over the pairs in which both know it.

    Args:
        left_out: Pairs in which it is undecided in A or in B, or where there is nothing to complete.
        tasks: How many independent groups the pairs make: tasks, or the pairs where each task was run once.
        a: The mean over A's side of the pairs, 0 to 1; `b` is that over B's, and `difference` is b - a. None where
            there is no pair.
        low: Of the difference's 95% bootstrap interval to `high`; None where there are fewer than two tasks.
        p: How likely so large a difference is by chance alone, two-sided; among use cases, corrected for how many
            there are. None where there is no pair.
        verdict: `a better` or `b better` where p is below 0.05 and the interval leaves 0 out.
    """

    pairs: int
    left_out: int
    tasks: int
    a: float | None
    b: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    test: Literal["McNemar", "sign flip"]
    verdict: Decision


class SplitPairs(Record):
    """In how many pairs the goal was completed by both, by one of the two alone, or by neither."""

    both: int
    only_a: int
    only_b: int
    neither: int


class ComparedGroup(Record):
    """A group of pairs compared: the customer's own goal where a scenario names one, GC, and PR."""

    pairs: int
    goal_reached: Difference | None = None
    goal_completion: Difference
    split: SplitPairs
    progress_rate: Difference


class ArmComparison(Record):
    """Two arms of an evaluation over the runs of scenarios that both finished; p is corrected for their number."""

    a: str
    b: str
    overall: ComparedGroup


class Pair(NamedTuple):
    """Two conversations about the same thing; pairs of one `cluster` are runs of one task, and depend on each other."""

    cluster: Hashable
    a: ConversationRecord
    b: ConversationRecord


def compare_pairs(pairs: Sequence[Pair]) -> ComparedGroup:
    """Compare two sides. Cost O(n), and a bounded number of draws."""
    of = Counter((pair.a.goal_completed, pair.b.goal_completed) for pair in pairs)
    named = [pair for pair in pairs if pair.a.goal is not None or pair.b.goal is not None]
    return ComparedGroup(
        pairs=len(pairs),
        goal_reached=_difference(named, "goal_reached", is_yes_or_no=True) if named else None,
        goal_completion=_difference(pairs, "goal_completed", is_yes_or_no=True),
        split=SplitPairs(
            both=of[True, True], only_a=of[True, False], only_b=of[False, True], neither=of[False, False]
        ),
        progress_rate=_difference(pairs, "progress_rate", is_yes_or_no=False),
    )


def corrected(groups: Mapping[str, ComparedGroup]) -> dict[str, ComparedGroup]:
    """The groups with each p corrected for how many groups are looked at, and verdicts to go with it."""
    found = dict(groups)
    for figure in _FIGURES:
        known: dict[str, Difference] = {
            name: each for name, group in groups.items() if (each := getattr(group, figure)) is not None
        }
        ps = holm({name: each.p for name, each in known.items() if each.p is not None})
        for name, each in known.items():
            p = ps.get(name)
            update = {"p": p, "verdict": _decision(each.low, each.high, p)}
            found[name] = found[name].model_copy(update={figure: each.model_copy(update=update)})
    return found


def compare_arms(arms: Mapping[str, Sequence[ConversationRecord]]) -> tuple[ArmComparison, ...]:
    """Each arm with each one after it, over the runs of scenarios that both have: those alone are pairs."""
    runs = {
        name: {(one.scenario, one.run): one for one in group if one.scenario is not None}
        for name, group in arms.items()
    }
    compared = {}
    for number, (a, b) in enumerate(combinations(runs.values(), 2)):
        pairs = [Pair(one.task or one.scenario, one, b[key]) for key, one in a.items() if key in b]
        compared[str(number)] = compare_pairs(pairs)
    names = combinations(arms, 2)
    return tuple(
        ArmComparison(a=a, b=b, overall=group)
        for (a, b), group in zip(names, corrected(compared).values(), strict=True)
    )


def _difference(pairs: Sequence[Pair], figure: str, *, is_yes_or_no: bool) -> Difference:
    sides = [(pair.cluster, getattr(pair.a, figure), getattr(pair.b, figure)) for pair in pairs]
    known = [(cluster, float(a), float(b)) for cluster, a, b in sides if a is not None and b is not None]
    n = len(known)
    clusters = [cluster for cluster, _, _ in known]
    tasks = len(set(clusters))
    by_mcnemar = is_yes_or_no and tasks == n
    differences = [b - a for _, a, b in known]
    low, high = bootstrap_mean(differences, clusters=clusters) or (None, None)
    # The interval alone finds differences where there are a few pairs only (three that are alike are three
    # whose interval leaves 0 out); p does not.
    p = None
    if by_mcnemar and known:
        p = mcnemar(differences.count(-1), differences.count(1))
    elif known:
        p = sign_flip(differences, clusters=clusters)
    return Difference(
        pairs=n,
        left_out=len(pairs) - n,
        tasks=tasks,
        a=fsum(a for _, a, _ in known) / n if n else None,
        b=fsum(b for _, _, b in known) / n if n else None,
        difference=mean_within(differences) if n else None,
        low=low,
        high=high,
        p=p,
        test="McNemar" if by_mcnemar else "sign flip",
        verdict=_decision(low, high, p),
    )


def _decision(low: float | None, high: float | None, p: float | None) -> Decision:
    if low is None or high is None or p is None or p >= SIGNIFICANT or low <= 0 <= high:
        return "no difference shown"
    return "b better" if low > 0 else "a better"
