"""Two reports over the same conversations: which pairs there are, and whether one of the two is better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from arq_graph.milestones.reports.differences import ComparedGroup, Pair, compare_pairs, corrected
from arq_graph.milestones.reports.records import ConversationRecord, Record
from arq_graph.milestones.reports.report import Report


class Comparison(Record):
    """Two reports, compared over the conversations that both hold.

    Args:
        conversations_a: How many conversations A has; the same of B.
        only_a: What names those of A that B has no counterpart of; the same of B.
        broken_a: How many records of A could not be scored; the same of B.
        runs: How many runs the most often run task has among the pairs.
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
    runs: int
    different_graphs: tuple[str, ...]
    overall: ComparedGroup
    use_cases: Mapping[str, ComparedGroup]
    stand_ins: tuple[str, ...] = ()


def compare(a: Report, b: Report) -> Comparison:
    """Compare two reports over the same conversations.

    The nth run of a task in A is paired with its nth run in B, a conversation without a task with the nth of the
    same id; both within a use case. Where each task has one pair, yes-or-no figures are tested by McNemar's exact
    test and PR by turning signs (`sign_flip`). Several runs of one task depend on each other, and which run goes with
    which is arbitrary: then whole tasks are drawn for the intervals, and the signs of whole tasks are turned. Among
    use cases p is corrected by Holm. Cost O(n), and a bounded number of draws a group.
    """
    of_a, of_b = _by_key(a.conversations), _by_key(b.conversations)
    pairs = {key: Pair(key.cluster, one, of_b[key]) for key, one in of_a.items() if key in of_b}
    use_cases: dict[str, list[Pair]] = {}
    for key, pair in pairs.items():
        if key.use_case is not None:
            use_cases.setdefault(key.use_case, []).append(pair)
    return Comparison(
        conversations_a=len(a.conversations),
        conversations_b=len(b.conversations),
        only_a=tuple(str(key) for key in of_a if key not in of_b),
        only_b=tuple(str(key) for key in of_b if key not in of_a),
        broken_a=len(a.failed),
        broken_b=len(b.failed),
        runs=max(Counter(key.cluster for key in pairs).values(), default=0),
        different_graphs=_different_graphs(a, b, list(pairs.values())),
        overall=compare_pairs(list(pairs.values())),
        use_cases=corrected({name: compare_pairs(use_cases[name]) for name in sorted(use_cases)}),
        stand_ins=tuple(dict.fromkeys([*a.stand_ins, *b.stand_ins])),
    )


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


def _by_key(records: Sequence[ConversationRecord]) -> dict[_Key, ConversationRecord]:
    """The records by what they are paired by."""
    runs: Counter[Hashable] = Counter()
    keyed: dict[_Key, ConversationRecord] = {}
    for record in records:
        named = ("conversation", record.id) if record.task is None else ("task", record.task)
        key = _Key(record.use_case, *named)
        runs[key.cluster] += 1
        keyed[key._replace(run=runs[key.cluster])] = record
    return keyed


def _different_graphs(a: Report, b: Report, pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Graphs of the pairs that have another name on the other side, or other milestones, as far as reports tell."""
    different = []
    for one, other in dict.fromkeys((pair.a.graph, pair.b.graph) for pair in pairs):
        if one != other:
            different.append(f"{one} / {other}")
        elif one in a.graphs and one in b.graphs and a.graphs[one].milestones != b.graphs[one].milestones:
            different.append(one)
    return tuple(different)
