"""Two reports over the same conversations, compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

from arq_graph.milestones.reports.comparison import ComparedGroup, Pair, compare_pairs, compare_use_cases
from arq_graph.milestones.reports.records import ConversationRecord, Record
from arq_graph.milestones.reports.report import Report

_Name = tuple[str | None, str, str]
_Key = tuple[_Name, int]


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
    different_graphs: tuple[str, ...]
    overall: ComparedGroup
    use_cases: Mapping[str, ComparedGroup]
    stand_ins: tuple[str, ...] = ()


def compare(a: Report, b: Report) -> Comparison:
    """Compare two reports over the same conversations.

    The nth run of a task in A is paired with its nth run in B, a conversation without a task with the nth of the
    same id; both within a use case. If each task has one pair, yes-or-no figures are tested by McNemar's exact test
    and PR by flipping signs (`sign_flip_p`). Several runs of one task depend on each other, as do those with several
    kinds of users: then whole tasks are drawn for the intervals, and the signs of whole tasks are flipped. Among use
    cases p is corrected by Holm. Cost O(n), and a bounded number of draws a group.

    Args:
        a: The report that the differences are taken from: each is B's figure minus A's.
        b: The other one, of the same conversations; what only one of them has is left out.
    """
    records_a, records_b = _key_by_run(a.conversations), _key_by_run(b.conversations)
    pairs = []
    for key, record in records_a.items():
        if key in records_b:
            pairs.append(Pair(record.independent_task or key[0], record, records_b[key]))
    return Comparison(
        conversations_a=len(a.conversations),
        conversations_b=len(b.conversations),
        only_a=_name_unpaired(records_a, records_b),
        only_b=_name_unpaired(records_b, records_a),
        broken_a=len(a.failed),
        broken_b=len(b.failed),
        different_graphs=_find_different_graphs(a, b, pairs),
        overall=compare_pairs(pairs),
        use_cases=compare_use_cases(pairs),
        stand_ins=tuple(dict.fromkeys(a.stand_ins + b.stand_ins)),
    )


def _key_by_run(records: Sequence[ConversationRecord]) -> dict[_Key, ConversationRecord]:
    runs: Counter[_Name] = Counter()
    keyed: dict[_Key, ConversationRecord] = {}
    for record in records:
        if record.task is None:
            name = (record.use_case, "conversation", record.id)
        else:
            name = (record.use_case, "task", record.task or record.id)
        runs[name] += 1
        keyed[name, runs[name]] = record
    return keyed


def _name_unpaired(records: Iterable[_Key], counterparts: Container[_Key]) -> tuple[str, ...]:
    names = []
    for key in records:
        if key not in counterparts:
            (use_case, kind, name), run = key
            prefix = f"{use_case}: " if use_case is not None else ""
            suffix = f" (run {run})" if run > 1 else ""
            names.append(f"{prefix}{kind} {name}{suffix}")
    return tuple(names)


def _find_different_graphs(a: Report, b: Report, pairs: Sequence[Pair]) -> tuple[str, ...]:
    different = []
    names = {(pair.a.graph, pair.b.graph): None for pair in pairs}
    for name_a, name_b in names:
        if name_a != name_b:
            different.append(f"{name_a} / {name_b}")
            continue
        graph_a, graph_b = a.graphs.get(name_a), b.graphs.get(name_a)
        if graph_a and graph_b and graph_a.milestones != graph_b.milestones:
            different.append(name_a)
    return tuple(different)
