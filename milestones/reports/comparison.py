"""Two reports, or the arms of one, compared: the differences over paired conversations, and which side is better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from arq_graph.milestones.reports.paired import ComparedGroup, Pair, compare_pairs, compare_use_cases
from arq_graph.milestones.reports.records import ConversationRecord, Record
from arq_graph.milestones.reports.report import Report


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


def compare(a: Report, b: Report) -> Comparison:
    """Compare two reports over the same conversations.

    The nth run of a task in A is paired with its nth run in B, a conversation without a task with the nth of the
    same id; both within a use case, and within an arm if the reports share one. Where records have no ids,
    conversations of the same content are pairs, and of the others those that the user opens in the same words, if there
    are as many in A as in B. If each task has one pair, yes-or-no figures are tested by McNemar's exact test and PR by
    flipping signs (`sign_flip_p`). Several runs of one task depend on each other, as do those with several kinds of
    users: intervals are over tasks, and the signs of whole tasks are flipped. Among use cases p is corrected by Holm.
    Cost O(n), and a bounded number of draws a group.

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
    shared_arms = {record.arm for record in a} & {record.arm for record in b}
    partners: dict[int, int] = {}
    for get_key in (_get_own_name, _get_content, _get_opening):
        paired_b = set(partners.values())
        unpaired_a = [index for index in range(len(a)) if index not in partners]
        unpaired_b = [index for index in range(len(b)) if index not in paired_b]
        indexes_a = _index_by_key(unpaired_a, a, get_key, bool(shared_arms))
        indexes_b = _index_by_key(unpaired_b, b, get_key, bool(shared_arms))
        for key, indexes in indexes_a.items():
            candidates = indexes_b.get(key, [])
            # Which of several with the same opening is missing, nobody knows.
            if get_key is not _get_opening or len(indexes) == len(candidates):
                partners.update(zip(indexes, candidates, strict=False))
    return partners


def _index_by_key(
    indexes: Iterable[int],
    records: Sequence[ConversationRecord],
    get_key: Callable[..., str | None],
    within_arms: bool,
) -> dict[Hashable, list[int]]:
    by_key: dict[Hashable, list[int]] = {}
    for index in indexes:
        key = get_key(records[index])
        if key is not None:
            arm = records[index].arm if within_arms else None
            by_key.setdefault((records[index].use_case, arm, key), []).append(index)
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
    has_arms = len({record.arm for record in records}) > 1
    counts: Counter[str] = Counter()
    names = []
    for record in records:
        name = _get_name(record)
        if record.use_case is not None:
            name = f"{record.use_case}: {name}"
        if has_arms:
            name += f", {record.arm}"
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
