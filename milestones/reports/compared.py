"""What comes of comparing two reports, or two arms of one: how each figure differs, and over which pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from arq_graph.milestones.reports.records import Record

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
