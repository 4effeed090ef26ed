"""Which conversation of one report is the counterpart of which of another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from arq_graph.milestones.reports.records import ConversationRecord


@dataclass(frozen=True, slots=True)
class PairKey:
    """What the two conversations of a pair have in common.

    Args:
        use_case: What kind of conversation they are.
        kind: Whether `name` is a task, or the conversation's own id.
        name: The task or id.
        run: Which of the runs of it, from 1.
    """

    use_case: str | None
    kind: Literal["task", "conversation"]
    name: str
    run: int = 1

    def __str__(self) -> str:
        place = f"{self.use_case}: " if self.use_case is not None else ""
        run = f" (run {self.run})" if self.run > 1 else ""
        return f"{place}{self.kind} {self.name}{run}"

    @property
    def cluster(self) -> Hashable:
        """What the runs of one thing have in common; they depend on each other."""
        return self.use_case, self.kind, self.name


@dataclass(frozen=True, slots=True)
class Pair:
    """A conversation of A and its counterpart in B."""

    key: PairKey
    a: ConversationRecord
    b: ConversationRecord


class Pairing(NamedTuple):
    """The pairs, and what has no counterpart.

    Args:
        pairs: In the order of A.
        only_a: Conversations of A alone.
        only_b: Conversations of B alone.
    """

    pairs: tuple[Pair, ...]
    only_a: tuple[PairKey, ...]
    only_b: tuple[PairKey, ...]


def paired(a: Iterable[ConversationRecord], b: Iterable[ConversationRecord]) -> Pairing:
    """Pair the nth run of a task in A with its nth run in B, and what has no task by its id; within use cases.

    An id that stands in several files, as positions do, is an id within its file. Cost O(n).

    Args:
        a: The conversations of the one report.
        b: Those of the other.
    """
    a, b = tuple(a), tuple(b)
    several = _in_several_files(a) | _in_several_files(b)
    of_a, of_b = _by_key(a, several), _by_key(b, several)
    return Pairing(
        tuple(Pair(key, one, of_b[key]) for key, one in of_a.items() if key in of_b),
        tuple(key for key in of_a if key not in of_b),
        tuple(key for key in of_b if key not in of_a),
    )


def _in_several_files(records: Iterable[ConversationRecord]) -> set[Hashable]:
    files: dict[Hashable, set[str | None]] = {}
    for record in records:
        if record.task is None:
            files.setdefault((record.use_case, record.id), set()).add(record.source)
    return {name for name, found in files.items() if len(found) > 1}


def _by_key(
    records: Iterable[ConversationRecord], several: set[Hashable]
) -> dict[PairKey, ConversationRecord]:
    runs: Counter[Hashable] = Counter()
    keyed: dict[PairKey, ConversationRecord] = {}
    for record in records:
        if record.task is not None:
            key = PairKey(record.use_case, "task", record.task)
        else:
            of = f" of {record.source}" if (record.use_case, record.id) in several else ""
            key = PairKey(record.use_case, "conversation", f"{record.id}{of}")
        runs[key.cluster] += 1
        keyed[replace(key, run=runs[key.cluster])] = record
    return keyed
