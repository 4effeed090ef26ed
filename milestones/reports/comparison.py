"""Two reports over the same conversations: which pairs there are, and whether one of the two is better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum
from typing import Literal

from arq_graph.milestones.reports.pairing import Pair, PairKey, paired
from arq_graph.milestones.reports.records import Record
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.resampling import paired_bootstrap
from arq_graph.milestones.reports.statistics import holm, mcnemar

SIGNIFICANT = 0.05
Verdict = Literal["a better", "b better", "no difference shown"]


class Difference(Record):
    """How one figure differs between A and B, over the pairs in which both know it.

    Args:
        pairs: Over how many pairs.
        left_out: Pairs in which it is undecided in A or in B, or where there is nothing to complete.
        tasks: How many independent groups the pairs make: tasks, or the pairs where each task was run once.
        a: The mean over A's side of the pairs, 0 to 1; None where there is no pair.
        b: The mean over B's side.
        difference: b - a, -1 to 1.
        low: The lower end of its 95% bootstrap interval; None where there are fewer than two tasks.
        high: Its upper end.
        p: How likely so large a difference is by chance alone, two-sided; among use cases, corrected for how
            many there are. None where there is no pair.
        test: Where p comes from.
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
    verdict: Verdict


class SplitPairs(Record):
    """In how many pairs the goal was completed.

    Args:
        both: By both.
        only_a: By A alone.
        only_b: By B alone.
        neither: By neither.
    """

    both: int
    only_a: int
    only_b: int
    neither: int


class ComparedGroup(Record):
    """A group of pairs compared.

    Args:
        pairs: How many.
        goal_completion: How GC differs.
        split: In how many pairs which of the two completed the goal.
        progress_rate: How PR differs.
    """

    pairs: int
    goal_completion: Difference
    split: SplitPairs
    progress_rate: Difference


class Comparison(Record):
    """Two reports, compared over the conversations that both hold.

    Args:
        conversations_a: How many conversations A has.
        conversations_b: How many B has.
        only_a: What names those of A that B has no counterpart of.
        only_b: The same of B.
        broken_a: How many records of A could not be scored.
        broken_b: How many of B.
        runs: How many runs the most often run task has among the pairs.
        different_graphs: Graphs that are not the same in A and in B: those conversations were measured differently.
        overall: All pairs.
        use_cases: By use case, in alphabetical order.
    """

    conversations_a: int
    conversations_b: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    broken_a: int
    broken_b: int
    runs: int
    different_graphs: tuple[str, ...]
    overall: ComparedGroup
    use_cases: Mapping[str, ComparedGroup]


def compare(a: Report, b: Report) -> Comparison:
    """Compare two reports over the same conversations.

    The nth run of a task in A is paired with its nth run in B, a conversation without a task with the nth of
    the same id; both within a use case. Where each task has one pair, GC is tested by McNemar's exact test and
    PR by turning signs (`sign_flip`). Several runs of one task depend on each other, and which run goes with
    which is arbitrary: then whole tasks are drawn for the intervals, and the signs of whole tasks are turned
    for both p. Among use cases p is corrected by Holm. Cost O(n), and a bounded number of draws a group.

    Args:
        a: The one.
        b: The other.
    """
    pairs, only_a, only_b = paired(a.conversations, b.conversations)
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.key.use_case is not None:
            groups.setdefault(pair.key.use_case, []).append(pair)
    return Comparison(
        conversations_a=len(a.conversations),
        conversations_b=len(b.conversations),
        only_a=tuple(map(str, only_a)),
        only_b=tuple(map(str, only_b)),
        broken_a=len(a.broken),
        broken_b=len(b.broken),
        runs=max(Counter(pair.key.cluster for pair in pairs).values(), default=0),
        different_graphs=_different_graphs(a, b, pairs),
        overall=_compared(pairs),
        use_cases=_corrected({name: _compared(groups[name]) for name in sorted(groups)}),
    )


def _compared(pairs: Sequence[Pair]) -> ComparedGroup:
    goals = [
        (pair.key, float(pair.a.goal_completed), float(pair.b.goal_completed))
        for pair in pairs
        if pair.a.goal_completed is not None and pair.b.goal_completed is not None
    ]
    rates = [
        (pair.key, pair.a.progress_rate, pair.b.progress_rate)
        for pair in pairs
        if pair.a.progress_rate is not None and pair.b.progress_rate is not None
    ]
    of = Counter((one, other) for _, one, other in goals)
    split = SplitPairs(both=of[1, 1], only_a=of[1, 0], only_b=of[0, 1], neither=of[0, 0])
    return ComparedGroup(
        pairs=len(pairs),
        goal_completion=_difference(goals, len(pairs) - len(goals), split),
        split=split,
        progress_rate=_difference(rates, len(pairs) - len(rates), None),
    )


def _difference(
    pairs: Sequence[tuple[PairKey, float, float]], left_out: int, split: SplitPairs | None
) -> Difference:
    """How a figure differs; `split` is given where it is a matter of yes or no."""
    n = len(pairs)
    clusters = [key.cluster for key, _, _ in pairs]
    tasks = len(set(clusters))
    by_mcnemar = split is not None and tasks == n
    if not pairs:
        mean = low = high = p = None
    else:
        mean, low, high, p = paired_bootstrap([b - a for _, a, b in pairs], clusters=clusters)
        if split is not None and by_mcnemar:
            p = mcnemar(split.only_a, split.only_b)
    return Difference(
        pairs=n,
        left_out=left_out,
        tasks=tasks,
        a=fsum(a for _, a, _ in pairs) / n if n else None,
        b=fsum(b for _, _, b in pairs) / n if n else None,
        difference=mean,
        low=low,
        high=high,
        p=p,
        test="McNemar" if by_mcnemar else "sign flip",
        verdict=_verdict(low, high, p),
    )


def _verdict(low: float | None, high: float | None, p: float | None) -> Verdict:
    if low is None or high is None or p is None or p >= SIGNIFICANT or low <= 0 <= high:
        return "no difference shown"
    return "b better" if low > 0 else "a better"


def _corrected(groups: Mapping[str, ComparedGroup]) -> dict[str, ComparedGroup]:
    """The groups with each p corrected for how many groups are looked at, and verdicts to go with it."""
    goals = _holm({name: group.goal_completion for name, group in groups.items()})
    rates = _holm({name: group.progress_rate for name, group in groups.items()})
    return {
        name: group.model_copy(update={"goal_completion": goals[name], "progress_rate": rates[name]})
        for name, group in groups.items()
    }


def _holm(differences: Mapping[str, Difference]) -> dict[str, Difference]:
    ps = holm({name: each.p for name, each in differences.items() if each.p is not None})
    return {
        name: each.model_copy(
            update={"p": ps.get(name), "verdict": _verdict(each.low, each.high, ps.get(name))}
        )
        for name, each in differences.items()
    }


def _different_graphs(a: Report, b: Report, pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Graphs of the pairs that have another name on the other side, or other milestones, as far as reports tell."""
    different: dict[str, None] = {}
    for one, other in dict.fromkeys((pair.a.graph, pair.b.graph) for pair in pairs):
        if one != other:
            different[f"{one} / {other}"] = None
        elif one in a.graphs and one in b.graphs and a.graphs[one].milestones != b.graphs[one].milestones:
            different[one] = None
    return tuple(different)
