"""Two reports, or the arms of one, compared: the differences over paired conversations, and which side is better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any, Literal, NamedTuple, TypeVar

from arq_graph.milestones.reports.records import ConversationRecord, Record, group_by
from arq_graph.milestones.reports.report import Report
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


class GraphPair(Record):
    """The names of the graphs on which the two sides of some pairs were measured; one name may mean two graphs."""

    a: str
    b: str


class Comparison(Record):
    """Two reports, compared over the conversations that both hold.

    Args:
        conversations_a: The number of conversations in A; the same of B.
        only_a: The names of those of A that have no counterpart in B; the same of B.
        broken_a: The number of records of A that could not be scored; the same of B.
        different_graphs: Graphs that are not the same in A and in B: those conversations were measured differently.
        use_cases: By use case, in alphabetical order.
        stand_ins: The parts that fakes played in one of the two, as in `Report.stand_ins`.
    """

    conversations_a: int
    conversations_b: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    broken_a: int
    broken_b: int
    different_graphs: tuple[GraphPair, ...]
    overall: ComparedGroup
    use_cases: Mapping[str, ComparedGroup]
    stand_ins: tuple[str, ...] = ()

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        yield "pairs", self.overall.pairs
        yield "goal_completion", self.overall.goal_completion.verdict
        yield "progress_rate", self.overall.progress_rate.verdict


class Pair(NamedTuple):
    """Two conversations about the same thing; pairs of one `cluster` are of one task, and depend on each other."""

    cluster: Hashable
    a: ConversationRecord
    b: ConversationRecord


def compare(a: Report, b: Report) -> Comparison:
    """Compare two reports over the same conversations.

    The nth run of a task in A is paired with its nth run in B, a conversation without a task with the nth of the
    same id; both within a use case. Where records have no ids, conversations of the same content are pairs, and of the
    others those that the user opens in the same words, if there are as many in A as in B. If each task has one pair,
    yes-or-no figures are tested by McNemar's exact test and PR by flipping signs (`sign_flip_p`). Several runs of one
    task depend on each other, as do those with several kinds of users: intervals are over tasks, and the signs of whole
    tasks are flipped. Among use cases p is corrected by Holm. Cost O(n), and a bounded number of draws a group.

    Args:
        a: The report that the differences are taken from: each is B's figure minus A's.
        b: The other one, of the same conversations; what only one of them has is left out.
    """
    partners = _find_partners(a.conversations, b.conversations)
    names_a, names_b = _name_runs(a.conversations), _name_runs(b.conversations)
    pairs, only_a = [], []
    for index, record in enumerate(a.conversations):
        if index in partners:
            cluster = record.independent_task or (record.use_case, _get_name(record))
            pairs.append(Pair(cluster, record, b.conversations[partners[index]]))
        else:
            only_a.append(names_a[index])
    paired_b = set(partners.values())
    return Comparison(
        conversations_a=len(a.conversations),
        conversations_b=len(b.conversations),
        only_a=tuple(only_a),
        only_b=tuple(name for index, name in enumerate(names_b) if index not in paired_b),
        broken_a=len(a.failed),
        broken_b=len(b.failed),
        different_graphs=_find_different_graphs(a, b, pairs),
        overall=compare_pairs(pairs),
        use_cases=compare_use_cases(pairs),
        stand_ins=tuple(dict.fromkeys(a.stand_ins + b.stand_ins)),
    )


def _find_partners(a: Sequence[ConversationRecord], b: Sequence[ConversationRecord]) -> dict[int, int]:
    """Return the index in B of the counterpart of each conversation of A that has one, by the index in A."""
    partners: dict[int, int] = {}
    for get_key in (_get_own_name, _get_content, _get_opening):
        paired_b = set(partners.values())
        indexes_a = _index_by_key([index for index in range(len(a)) if index not in partners], a, get_key)
        indexes_b = _index_by_key([index for index in range(len(b)) if index not in paired_b], b, get_key)
        for key, indexes in indexes_a.items():
            candidates = indexes_b.get(key, [])
            # Which of several with the same opening is missing, nobody knows.
            if get_key is not _get_opening or len(indexes) == len(candidates):
                partners.update(zip(indexes, candidates, strict=False))
    return partners


def _index_by_key(
    indexes: Iterable[int], records: Sequence[ConversationRecord], get_key: Callable[..., str | None]
) -> dict[Hashable, list[int]]:
    by_key: dict[Hashable, list[int]] = {}
    for index in indexes:
        key = get_key(records[index])
        if key is not None:
            by_key.setdefault((records[index].use_case, key), []).append(index)
    return by_key


def _get_own_name(record: ConversationRecord) -> str | None:
    return _get_name(record) if record.content is None else None


def _get_content(record: ConversationRecord) -> str | None:
    return record.content


def _get_opening(record: ConversationRecord) -> str | None:
    return record.opening


def _get_name(record: ConversationRecord) -> str:
    if record.task is None:
        return f"conversation {record.id}"
    return f"task {record.task or record.id}"


def _name_runs(records: Sequence[ConversationRecord]) -> list[str]:
    """Return a name of each conversation, with the number of the run if it is not the first of its name."""
    counts: Counter[str] = Counter()
    names = []
    for record in records:
        name = _get_name(record)
        if record.use_case is not None:
            name = f"{record.use_case}: {name}"
        counts[name] += 1
        names.append(name if counts[name] == 1 else f"{name} (run {counts[name]})")
    return names


def _find_different_graphs(a: Report, b: Report, pairs: Sequence[Pair]) -> tuple[GraphPair, ...]:
    different = []
    names = {(pair.a.graph, pair.b.graph): None for pair in pairs}
    for name_a, name_b in names:
        graph_a, graph_b = a.graphs.get(name_a), b.graphs.get(name_b)
        has_changed = graph_a and graph_b and graph_a.milestones != graph_b.milestones
        if name_a != name_b or has_changed:
            different.append(GraphPair(a=name_a, b=name_b))
    return tuple(different)


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
