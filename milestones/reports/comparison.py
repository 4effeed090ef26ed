"""How the figures of pairs of conversations differ, and whether one side is better: arms, or two reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from math import fsum
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from arq_graph.milestones.reports.figures import Fourfold
from arq_graph.milestones.reports.records import ConversationRecord, Record, grouped
from arq_graph.milestones.reports.statistics import (
    bootstrap_mean,
    holm,
    mcnemar,
    mean_within,
    sign_flip,
    wilson,
)

if TYPE_CHECKING:
    from arq_graph.milestones.reports.report import Report

K = TypeVar("K", bound=Hashable)
_Named = tuple[str | None, str, str]
_Key = tuple[_Named, int]

SIGNIFICANT = 0.05
Decision = Literal["a better", "b better", "no difference shown"]
_FIGURES = ("goal_reached", "goal_completion", "progress_rate")


class Difference(Record):
    """How one figure differs between A and B, over the pairs in which both know it.

    Args:
        left_out: Pairs in which it is undecided in A or in B, or where there is nothing to complete.
        tasks: How many independent groups the pairs make: tasks, whatever kinds of users they were tried with, or the
            pairs where each task was tried once.
        a: The mean over A's side of the pairs, 0 to 1; `b` is that over B's, and `difference` is b - a. None where
            there is no pair.
        low: Of the difference's 95% bootstrap interval to `high`; None where there are fewer than two tasks. Where all
            tasks are alike, it is as wide as the share of tasks that may differ, by Wilson.
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


class ComparedGroup(Record):
    """A group of pairs compared: the customer's own goal where a scenario names one, GC, and PR.

    `split` says in how many pairs the goal was completed by both, by one of the two alone, or by neither.
    """

    pairs: int
    goal_reached: Difference | None = None
    goal_completion: Difference
    split: Fourfold
    progress_rate: Difference


class ArmComparison(Record):
    """Two arms of an evaluation over the runs of scenarios that both finished; p is corrected for their number."""

    a: str
    b: str
    overall: ComparedGroup


class Pair(NamedTuple):
    """Two conversations about the same thing; pairs of one `cluster` are of one task, and depend on each other."""

    cluster: Hashable
    a: ConversationRecord
    b: ConversationRecord


def _compared(pairs: Sequence[Pair]) -> ComparedGroup:
    named = [pair for pair in pairs if pair.a.goal is not None or pair.b.goal is not None]
    return ComparedGroup(
        pairs=len(pairs),
        goal_reached=_difference(named, "goal_reached") if named else None,
        goal_completion=_difference(pairs, "goal_completed"),
        split=Fourfold.of((pair.a.goal_completed, pair.b.goal_completed) for pair in pairs),
        progress_rate=_difference(pairs, "progress_rate"),
    )


def _corrected(groups: Mapping[K, ComparedGroup]) -> dict[K, ComparedGroup]:
    found = dict(groups)
    for figure in _FIGURES:
        known = {name: each for name, group in groups.items() if (each := getattr(group, figure))}
        for name, p in holm({name: each.p for name, each in known.items() if each.p is not None}).items():
            update = {"p": p, "verdict": _decision(known[name].low, known[name].high, p)}
            found[name] = found[name].model_copy(update={figure: known[name].model_copy(update=update)})
    return found


def references(arms: Iterable[str]) -> dict[str, str]:
    """The arms that are another one but for something they leave out, as `arq -condition` is, each with that one."""
    names = list(arms)
    whole = {arm: arm.partition(" -")[0] for arm in names}
    return {arm: other for arm, other in whole.items() if other != arm and other in names}


def compare_arms(arms: Mapping[str, Sequence[ConversationRecord]]) -> tuple[ArmComparison, ...]:
    """Each arm with each one after it, over the runs of scenarios that both have: those alone are pairs.

    An arm that leaves something out of another is compared with that one alone: what is left out is the difference.
    """
    lacking = references(arms)
    compared = {}
    for a, b in [*combinations([arm for arm in arms if arm not in lacking], 2), *lacking.items()]:
        others = {(one.scenario, one.run): one for one in arms[b]}
        matched = ((one, others.get((one.scenario, one.run))) for one in arms[a])
        compared[a, b] = _compared(
            [Pair(one.independent_task or one.scenario, one, other) for one, other in matched if other]
        )
    return tuple(ArmComparison(a=a, b=b, overall=group) for (a, b), group in _corrected(compared).items())


def _difference(pairs: Sequence[Pair], figure: str) -> Difference:
    sides = [(pair.cluster, getattr(pair.a, figure), getattr(pair.b, figure)) for pair in pairs]
    known = [(cluster, float(a), float(b)) for cluster, a, b in sides if a is not None and b is not None]
    n = len(known)
    clusters = [cluster for cluster, _, _ in known]
    tasks = len(set(clusters))
    by_mcnemar = figure != "progress_rate" and tasks == n
    differences = [b - a for _, a, b in known]
    low, high = bootstrap_mean(differences, clusters) or (None, None)
    if low is not None and high is not None and low == high:
        # Resamples of tasks that are all alike do not vary. A share of other tasks, up to -1 and 1, is still possible.
        _, others = wilson(0, tasks)
        low, high = low - others * (1 + low), high + others * (1 - high)
    p = None
    if known:
        one_sided = differences.count(-1), differences.count(1)
        p = mcnemar(*one_sided) if by_mcnemar else sign_flip(differences, clusters)
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
    # An interval alone would find differences in very few pairs: three that are alike leave 0 out, but p does not.
    if low is None or high is None or p is None or p >= SIGNIFICANT or low <= 0 <= high:
        return "no difference shown"
    return "b better" if low > 0 else "a better"


class Comparison(Record):
    """Two reports, compared over the conversations that both hold.

    Args:
        conversations_a: How many conversations A has; the same of B.
        only_a: What names those of A that B has no counterpart of; the same of B.
        broken_a: How many records of A could not be scored; the same of B.
        different_graphs: Graphs that are not the same in A and in B: those conversations were measured differently.
        use_cases: By use case, in alphabetical order.
        stand_ins: What a stand-in did in one of the two, as in `Report.stand_ins`.
    """

    conversations_a: int
    conversations_b: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    broken_a: int
    broken_b: int
    different_graphs: tuple[str, ...]
    overall: ComparedGroup
    use_cases: Mapping[str, ComparedGroup]
    stand_ins: tuple[str, ...] = ()


def compare(a: Report, b: Report) -> Comparison:
    """Compare two reports over the same conversations.

    The nth run of a task in A is paired with its nth run in B, a conversation without a task with the nth of the
    same id; both within a use case. Where each task has one pair, yes-or-no figures are tested by McNemar's exact
    test and PR by turning signs (`sign_flip`). Several runs of one task depend on each other, as do those with several
    kinds of users: then whole tasks are drawn for the intervals, and the signs of whole tasks are turned. Among
    use cases p is corrected by Holm. Cost O(n), and a bounded number of draws a group.

    Args:
        a: The report that the differences are taken from: each is B's figure minus A's.
        b: The other one, of the same conversations; what only one of them has is left out.
    """
    of_a, of_b = _by_key(a.conversations), _by_key(b.conversations)
    pairs = [Pair(one.independent_task or key[0], one, of_b[key]) for key, one in of_a.items() if key in of_b]
    use_cases = grouped(pairs, lambda pair: pair.a.use_case)
    return Comparison(
        conversations_a=len(a.conversations),
        conversations_b=len(b.conversations),
        only_a=tuple(_told(key) for key in of_a if key not in of_b),
        only_b=tuple(_told(key) for key in of_b if key not in of_a),
        broken_a=len(a.failed),
        broken_b=len(b.failed),
        different_graphs=_different_graphs(a, b, pairs),
        overall=_compared(pairs),
        use_cases=_corrected({name: _compared(use_cases[name]) for name in sorted(use_cases)}),
        stand_ins=tuple(dict.fromkeys([*a.stand_ins, *b.stand_ins])),
    )


def _by_key(records: Sequence[ConversationRecord]) -> dict[_Key, ConversationRecord]:
    runs: Counter[_Named] = Counter()
    keyed: dict[_Key, ConversationRecord] = {}
    for record in records:
        is_task = record.task is not None
        named = (record.use_case, "task" if is_task else "conversation", record.task or record.id)
        runs[named] += 1
        keyed[named, runs[named]] = record
    return keyed


def _told(key: _Key) -> str:
    (use_case, kind, name), run = key
    place = f"{use_case}: " if use_case is not None else ""
    return f"{place}{kind} {name}" + (f" (run {run})" if run > 1 else "")


def _different_graphs(a: Report, b: Report, pairs: Sequence[Pair]) -> tuple[str, ...]:
    different = []
    for one, other in dict.fromkeys((pair.a.graph, pair.b.graph) for pair in pairs):
        if one != other:
            different.append(f"{one} / {other}")
        elif one in a.graphs and one in b.graphs and a.graphs[one].milestones != b.graphs[one].milestones:
            different.append(one)
    return tuple(different)
