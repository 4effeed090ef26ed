"""Figures over many conversations by formula: Wilson's interval, pass^k, McNemar's test, Holm's correction."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb, fsum, sqrt
from statistics import NormalDist
from typing import Any

from arq_graph.errors import InputError

CONFIDENCE = 0.95


def wilson(count: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The score interval of a share: the shares p for which count / n is within z standard errors of p.

    With z the normal quantile, its ends are

        (count + z²/2 ± z sqrt(count (n - count) / n + z²/4)) / (n + z²)

    Wilson, "Probable inference, the law of succession, and statistical inference", 1927. Cost O(1).

    Args:
        count: Of how many it is true, 0 to n.
        n: Of how many, 1 or more.
        confidence: Between 0 and 1.

    Raises:
        InputError: A number is out of its range.
    """
    if not 0 <= count <= n or n < 1:
        raise InputError(f"{count} of {n} is no share: it takes 0 to n of n, and n of at least 1")
    z = NormalDist().inv_cdf((1 + checked_confidence(confidence)) / 2)
    half = z * sqrt(count * (n - count) / n + z * z / 4)
    low, high = ((count + z * z / 2 + side * half) / (n + z * z) for side in (-1, 1))
    return (0.0 if count == 0 else low, 1.0 if count == n else high)


def mcnemar(only_a: int, only_b: int) -> float:
    """How likely so uneven a split of the pairs that differ is, where A and B are alike: exact, two-sided p.

    Pairs in which both succeed or both fail say nothing. Of the other n, each is A's or B's with probability
    1/2, so p = 2 P(X ≤ min(only_a, only_b)) with X binomial (n, 1/2), at most 1. McNemar, "Note on the
    sampling error of the difference between correlated proportions or percentages", 1947, in its exact form.
    Pairs have to be independent: for several runs of one task see `sign_flip`. Cost O(n).

    Args:
        only_a: Pairs in which A alone succeeds.
        only_b: Pairs in which B alone succeeds.

    Raises:
        InputError: A number is negative.
    """
    if min(only_a, only_b) < 0:
        raise InputError(f"{min(only_a, only_b)} pairs cannot be counted")
    n = only_a + only_b
    tail, ways = 0, 1
    for i in range(min(only_a, only_b) + 1):
        tail += ways
        ways = ways * (n - i) // (i + 1)
    return min(1.0, float(2 * tail / 2**n))


def pass_hat_k(runs: Mapping[Any, tuple[int, int]], k: int) -> float | None:
    """pass^k: how likely k runs of a task all succeed; the mean over tasks of C(c, k) / C(n, k).

    Of n runs of which c succeed, it is the share of the choices of k runs that hold successes alone, an
    estimate without bias. Yao et al., "τ-bench: A Benchmark for Tool-Agent-User Interaction in Real-World
    Domains", 2024. A task with fewer than k runs says nothing about k, and is left out. Give
    only tasks of which every run is decided: the decided runs of the others are no fair sample.

    Args:
        runs: Successes and runs, by task.
        k: How many runs, 1 or more.

    Returns:
        None where no task has k runs.

    Raises:
        InputError: k is below 1, or a task has more successes than runs.
    """
    if k < 1:
        raise InputError(f"pass^{k} is not defined; k is 1 or more")
    for task, (successes, n) in runs.items():
        if not 0 <= successes <= n:
            raise InputError(f"{successes} successes of {n} runs are not possible (task {task!r})")
    shares = [comb(successes, k) / comb(n, k) for successes, n in runs.values() if n >= k]
    return fsum(shares) / len(shares) if shares else None


def holm(ps: Mapping[str, float]) -> dict[str, float]:
    """Each p, corrected for how many are looked at: chance alone makes any of them small no more often than one.

    The smallest is multiplied by their number, the next by one less, and so on, never falling, at most 1.
    Holm, "A simple sequentially rejective multiple test procedure", 1979.

    Args:
        ps: The p values, by name.
    """
    corrected: dict[str, float] = {}
    least = 0.0
    for rank, name in enumerate(sorted(ps, key=lambda one: ps[one])):
        least = max(least, min(1.0, (len(ps) - rank) * ps[name]))
        corrected[name] = least
    return {name: corrected[name] for name in ps}


def checked_confidence(confidence: float) -> float:
    """The confidence itself, if it is one.

    Raises:
        InputError: It does not lie between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise InputError(f"a confidence of {confidence} is none; it lies between 0 and 1, such as 0.95")
    return confidence
