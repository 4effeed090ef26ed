"""Two reports over the same conversations: which pairs there are, and whether one of the two is better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum

from arq_graph.milestones.reports.compared import ComparedGroup as ComparedGroup
from arq_graph.milestones.reports.compared import Comparison as Comparison
from arq_graph.milestones.reports.compared import Difference as Difference
from arq_graph.milestones.reports.compared import SplitPairs as SplitPairs
from arq_graph.milestones.reports.compared import Verdict
from arq_graph.milestones.reports.pairing import Pair, PairKey, paired
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.resampling import paired_bootstrap
from arq_graph.milestones.reports.statistics import holm, mcnemar

SIGNIFICANT = 0.05


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
        broken_a=len(a.failed),
        broken_b=len(b.failed),
        runs=max(Counter(pair.key.cluster for pair in pairs).values(), default=0),
        different_graphs=_different_graphs(a, b, pairs),
        overall=_compared(pairs),
        use_cases=corrected({name: _compared(groups[name]) for name in sorted(groups)}),
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


def corrected(groups: Mapping[str, ComparedGroup]) -> dict[str, ComparedGroup]:
    """The groups with each p corrected for how many groups are looked at, and verdicts to go with it.

    Args:
        groups: Groups that are looked at side by side, by name.
    """
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
