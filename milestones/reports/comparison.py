"""Two reports over the same conversations: which pairs there are, and whether one of the two is better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import fsum
from typing import NamedTuple

from arq_graph.milestones.reports.figures import (
    ComparedGroup,
    Comparison,
    Decision,
    Difference,
    SplitPairs,
)
from arq_graph.milestones.reports.records import ConversationRecord
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.resampling import bootstrap_mean, mean_within, sign_flip
from arq_graph.milestones.reports.statistics import holm, mcnemar

SIGNIFICANT = 0.05


def compare(a: Report, b: Report) -> Comparison:
    """Compare two reports over the same conversations.

    The nth run of a task in A is paired with its nth run in B, a conversation without a task with the nth of the
    same id; both within a use case. Where each task has one pair, yes-or-no figures are tested by McNemar's exact
    test and PR by turning signs (`sign_flip`). Several runs of one task depend on each other, and which run goes with
    which is arbitrary: then whole tasks are drawn for the intervals, and the signs of whole tasks are turned. Among
    use cases p is corrected by Holm. Cost O(n), and a bounded number of draws a group.

    Args:
        a: The one.
        b: The other.
    """
    of_a, of_b = _by_key(a.conversations, b.conversations), _by_key(b.conversations, a.conversations)
    pairs = [_Pair(key, one, of_b[key]) for key, one in of_a.items() if key in of_b]
    use_cases = sorted({pair.key.use_case for pair in pairs if pair.key.use_case is not None})
    return Comparison(
        conversations_a=len(a.conversations),
        conversations_b=len(b.conversations),
        only_a=tuple(str(key) for key in of_a if key not in of_b),
        only_b=tuple(str(key) for key in of_b if key not in of_a),
        broken_a=len(a.failed),
        broken_b=len(b.failed),
        runs=max(Counter(pair.key.cluster for pair in pairs).values(), default=0),
        different_graphs=_different_graphs(a, b, pairs),
        overall=_compared(pairs),
        use_cases=corrected(
            {name: _compared([pair for pair in pairs if pair.key.use_case == name]) for name in use_cases}
        ),
        stand_ins=tuple(dict.fromkeys([*a.stand_ins, *b.stand_ins])),
    )


def corrected(groups: Mapping[str, ComparedGroup]) -> dict[str, ComparedGroup]:
    """The groups with each p corrected for how many groups are looked at, and verdicts to go with it."""
    found = dict(groups)
    for figure in ("goal_reached", "goal_completion", "progress_rate"):
        known: dict[str, Difference] = {
            name: each for name, group in groups.items() if (each := getattr(group, figure)) is not None
        }
        ps = holm({name: each.p for name, each in known.items() if each.p is not None})
        for name, each in known.items():
            p = ps.get(name)
            update = {"p": p, "verdict": _decision(each.low, each.high, p)}
            found[name] = found[name].model_copy(update={figure: each.model_copy(update=update)})
    return found


class _Key(NamedTuple):
    """What the two conversations of a pair have in common: the run of a task, or of a conversation's own id."""

    use_case: str | None
    kind: str
    name: str
    run: int = 1

    def __str__(self) -> str:
        place = f"{self.use_case}: " if self.use_case is not None else ""
        run = f" (run {self.run})" if self.run > 1 else ""
        return f"{place}{self.kind} {self.name}{run}"

    @property
    def cluster(self) -> Hashable:
        """What the runs of one thing have in common; they depend on each other."""
        return self[:3]


class _Pair(NamedTuple):
    key: _Key
    a: ConversationRecord
    b: ConversationRecord


def _by_key(
    records: Sequence[ConversationRecord], others: Sequence[ConversationRecord]
) -> dict[_Key, ConversationRecord]:
    """The records by what they are paired by; an id that stands in several files is an id within its file."""
    several = _in_several_files(records) | _in_several_files(others)
    runs: Counter[Hashable] = Counter()
    keyed: dict[_Key, ConversationRecord] = {}
    for record in records:
        if record.task is not None:
            key = _Key(record.use_case, "task", record.task)
        else:
            of = f" of {record.source}" if (record.use_case, record.id) in several else ""
            key = _Key(record.use_case, "conversation", f"{record.id}{of}")
        runs[key.cluster] += 1
        keyed[key._replace(run=runs[key.cluster])] = record
    return keyed


def _in_several_files(records: Iterable[ConversationRecord]) -> set[Hashable]:
    files: dict[Hashable, set[str | None]] = {}
    for record in records:
        if record.task is None:
            files.setdefault((record.use_case, record.id), set()).add(record.source)
    return {name for name, found in files.items() if len(found) > 1}


def _compared(pairs: Sequence[_Pair]) -> ComparedGroup:
    completed = _known(pairs, "goal_completed")
    of = Counter((one, other) for _, one, other in completed)
    named = [pair for pair in pairs if pair.a.goal is not None or pair.b.goal is not None]
    return ComparedGroup(
        pairs=len(pairs),
        goal_reached=_difference(named, "goal_reached", is_yes_or_no=True) if named else None,
        goal_completion=_difference(pairs, "goal_completed", is_yes_or_no=True),
        split=SplitPairs(both=of[1, 1], only_a=of[1, 0], only_b=of[0, 1], neither=of[0, 0]),
        progress_rate=_difference(pairs, "progress_rate", is_yes_or_no=False),
    )


def _known(pairs: Sequence[_Pair], figure: str) -> list[tuple[_Key, float, float]]:
    """The figure on both sides of the pairs in which both know it."""
    found = [(pair.key, getattr(pair.a, figure), getattr(pair.b, figure)) for pair in pairs]
    return [(key, float(a), float(b)) for key, a, b in found if a is not None and b is not None]


def _difference(pairs: Sequence[_Pair], figure: str, *, is_yes_or_no: bool) -> Difference:
    known = _known(pairs, figure)
    n = len(known)
    clusters = [key.cluster for key, _, _ in known]
    tasks = len(set(clusters))
    by_mcnemar = is_yes_or_no and tasks == n
    differences = [b - a for _, a, b in known]
    mean = low = high = p = None
    if known:
        mean = mean_within(differences)
        low, high = bootstrap_mean(differences, clusters=clusters) or (None, None)
        # The interval alone finds differences where there are a few pairs only (three that are alike are three
        # whose interval leaves 0 out); p does not.
        p = (
            mcnemar(differences.count(-1), differences.count(1))
            if by_mcnemar
            else sign_flip(differences, clusters=clusters)
        )
    return Difference(
        pairs=n,
        left_out=len(pairs) - n,
        tasks=tasks,
        a=fsum(a for _, a, _ in known) / n if n else None,
        b=fsum(b for _, _, b in known) / n if n else None,
        difference=mean,
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


def _different_graphs(a: Report, b: Report, pairs: Sequence[_Pair]) -> tuple[str, ...]:
    """Graphs of the pairs that have another name on the other side, or other milestones, as far as reports tell."""
    different: dict[str, None] = {}
    for one, other in dict.fromkeys((pair.a.graph, pair.b.graph) for pair in pairs):
        if one != other:
            different[f"{one} / {other}"] = None
        elif one in a.graphs and one in b.graphs and a.graphs[one].milestones != b.graphs[one].milestones:
            different[one] = None
    return tuple(different)
