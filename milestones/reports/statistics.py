"""Figures over many conversations by formula: Wilson's interval, pass^k, McNemar's test, Holm's correction."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb, fsum, sqrt
from statistics import NormalDist
from typing import Any

_Z = NormalDist().inv_cdf(0.975)


def wilson(count: int, n: int) -> tuple[float, float]:
    """The 95% score interval of a share: the shares p for which count / n is within z standard errors of p.

    Its ends are (count + z²/2 ± z sqrt(count (n - count) / n + z²/4)) / (n + z²). Wilson, "Probable inference, the
    law of succession, and statistical inference", 1927. `count` is 0 to n, and n 1 or more. Cost O(1).
    """
    half = _Z * sqrt(count * (n - count) / n + _Z * _Z / 4)
    low, high = ((count + _Z * _Z / 2 + side * half) / (n + _Z * _Z) for side in (-1, 1))
    return (0.0 if count == 0 else low, 1.0 if count == n else high)


def mcnemar(only_a: int, only_b: int) -> float:
    """How likely so uneven a split of the pairs that differ is, where A and B are alike: exact, two-sided p.

    Pairs in which both succeed or both fail say nothing. Each of the other n is A's or B's with probability 1/2, so
    p = 2 P(X ≤ min(only_a, only_b)) with X binomial (n, 1/2), at most 1. McNemar, "Note on the sampling error of the
    difference between correlated proportions or percentages", 1947, in its exact form. Pairs have to be
    independent: for several runs of one task see `sign_flip`. Cost O(n).

    """
    n = only_a + only_b
    tail, ways = 0, 1
    for i in range(min(only_a, only_b) + 1):
        tail += ways
        ways = ways * (n - i) // (i + 1)
    return min(1.0, float(2 * tail / 2**n))


def pass_hat_k(runs: Mapping[Any, tuple[int, int]], k: int) -> float | None:
    """pass^k: how likely k runs of a task all succeed; the mean over tasks of C(c, k) / C(n, k).

    Of n runs of which c succeed, this is the share of the choices of k runs that hold successes alone, an estimate
    without bias. Yao et al., "τ-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains", 2024.
    A task with fewer than k runs says nothing about k and is left out; where no task has k runs, it is None. Give
    only tasks of which every run is decided: the decided runs of the others are no fair sample.

    Args:
        runs: Successes and runs, by task.
        k: How many runs, 1 or more.
    """
    shares = [comb(successes, k) / comb(n, k) for successes, n in runs.values() if n >= k]
    return fsum(shares) / len(shares) if shares else None


def holm(ps: Mapping[str, float]) -> dict[str, float]:
    """Each p, corrected for how many are looked at: chance alone makes any of them small no more often than one.

    The smallest is multiplied by their number, the next by one less, and so on, never falling, at most 1.
    Holm, "A simple sequentially rejective multiple test procedure", 1979.
    """
    corrected: dict[str, float] = {}
    least = 0.0
    for rank, name in enumerate(sorted(ps, key=lambda one: ps[one])):
        least = max(least, min(1.0, (len(ps) - rank) * ps[name]))
        corrected[name] = least
    return {name: corrected[name] for name in ps}
