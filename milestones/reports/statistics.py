"""Figures over many conversations: intervals, pass^k, and how likely a difference is by chance alone.

The bootstrap and the sign test deal more than 256 values into 256 heaps at random and resample the heaps: the sums
vary as much, the width of an interval is known to 1 / sqrt(512), 4%, and the cost is bounded. The same values give the
same figures.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import comb, fsum, sqrt
from operator import mul
from random import Random
from statistics import NormalDist
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)

_Z = NormalDist().inv_cdf(0.975)
_HEAPS = 256
_RESAMPLES = 1_000
# Up to here all ways to turn the signs are counted (2^14 sums); above, a sample of them.
_COUNTED = 14
_FLIPS = 10_000

_Heap = tuple[float, int]
"""A sum, and of how many values it is."""


def wilson(count: float, n: int) -> tuple[float, float]:
    """The 95% score interval of a share: the shares p for which count / n is within z standard errors of p.

    Wilson, "Probable inference, the law of succession, and statistical inference", 1927. `count` is 0 to n, and n 1 or
    more. A sum of values from 0 to 1 is a `count`, too: they vary at most as much as yes and no with the same mean.
    """
    half = _Z * sqrt(count * (n - count) / n + _Z * _Z / 4)
    low, high = ((count + _Z * _Z / 2 + side * half) / (n + _Z * _Z) for side in (-1, 1))
    return (0.0 if count == 0 else low, 1.0 if count == n else high)


def mcnemar(only_a: int, only_b: int) -> float:
    """How likely so uneven a split of the pairs that differ is, where A and B are alike: exact, two-sided p.

    Pairs in which both succeed or both fail say nothing. Each of the other n is A's or B's with probability 1/2, so
    p = 2 P(X ≤ min(only_a, only_b)) with X binomial (n, 1/2), at most 1. McNemar, "Note on the sampling error of the
    difference between correlated proportions or percentages", 1947, in its exact form. Pairs have to be
    independent: for several runs of one task see `sign_flip`.
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
    A task with fewer than k runs is left out; where no task has k runs, it is None.

    Args:
        runs: Successes and runs, by task; of tasks alone of which every run is decided: others are no fair sample.
        k: How many runs, 1 or more.
    """
    shares = [comb(successes, k) / comb(n, k) for successes, n in runs.values() if n >= k]
    return fsum(shares) / len(shares) if shares else None


def holm(ps: Mapping[K, float]) -> dict[K, float]:
    """Each p, corrected for how many are looked at: chance alone makes any of them small no more often than one.

    The smallest is multiplied by their number, the next by one less, and so on, never falling, at most 1.
    Holm, "A simple sequentially rejective multiple test procedure", 1979.
    """
    corrected: dict[K, float] = {}
    least = 0.0
    for rank, name in enumerate(sorted(ps, key=lambda one: ps[one])):
        least = max(least, min(1.0, (len(ps) - rank) * ps[name]))
        corrected[name] = least
    return corrected


def mean_within(values: Sequence[float]) -> float:
    """The mean of at least one value; rounding does not take it out of the values."""
    return min(max(fsum(values) / len(values), min(values)), max(values))


def bootstrap_mean(values: Sequence[float], clusters: Sequence[Hashable]) -> tuple[float, float] | None:
    """The 95% percentile bootstrap interval of a mean: where the means of resamples lie.

    Efron, "Bootstrap methods: another look at the jackknife", 1979. Where it would leave the mean itself out (values
    that lie very unevenly, the rounding of equal values), it reaches to the mean. Over the differences of pairs it
    is the paired bootstrap. Fewer than two values or clusters say nothing of their spread: None. Cost O(n), and
    256,000 draws at most.

    Args:
        values: What the mean is over.
        clusters: What each value belongs to; values of one cluster depend on each other, as the runs of one task do,
            and are drawn together.
    """
    chance = Random(0)
    heaps = _heaps(_clustered(values, clusters), chance)
    if len(heaps) < 2:
        return None
    mean, least, most = mean_within(values), min(values), max(values)
    if least == most:
        return least, most  # as every resample would say
    means = []
    for _ in range(_RESAMPLES):
        totals, sizes = zip(*chance.choices(heaps, k=len(heaps)), strict=True)
        means.append(sum(totals) / sum(sizes))
    means.sort()
    outside = _RESAMPLES // 40
    return max(least, min(mean, means[outside])), min(most, max(mean, means[-1 - outside]))


def interval_of_shares(values: Sequence[float], clusters: Sequence[Hashable]) -> tuple[float, float]:
    """The 95% interval of the mean of at least one value from 0 to 1: a bootstrap's, or Wilson's.

    Wilson's, for as many clusters as there are, says how sure a mean is in which resamples show no spread.
    """
    drawn, tasks = bootstrap_mean(values, clusters), len(set(clusters))
    return drawn if drawn and drawn[0] < drawn[1] else wilson(mean_within(values) * tasks, tasks)


def sign_flip(differences: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """How likely so large a sum of differences is, in either direction, where A and B are alike: two-sided p.

    If they are, each pair could as well have come the other way round: all ways to turn the signs are equally likely,
    and p is the share of them whose sum is at least as far from 0. Fisher's randomisation test, "The Design of
    Experiments", 1935, section 21. For differences of -1, 0 and 1 it is McNemar's exact test. With clusters, the sign
    of a whole cluster turns. All 2^n ways are counted up to n = 14, above that a seeded sample of them and the
    observed one. Cost O(n), and 2,560,000 coins at most.

    Args:
        differences: One a pair.
        clusters: What each pair belongs to; see `bootstrap_mean`.
    """
    chance = Random(0)
    differing = [each for each in _clustered(differences, clusters) if each[0]]
    sums = [total for total, _ in _heaps(differing, chance)]
    # Equal sums may differ in their last digits, depending on the order of the addition.
    enough = abs(fsum(sums)) - 1e-9 * fsum(map(abs, sums))
    if len(sums) <= _COUNTED:
        turned = [0.0]
        for one in sums:
            turned = [total + side for total in turned for side in (one, -one)]
        return sum(abs(total) >= enough for total in turned) / len(turned)
    throws = (chance.choices((-1, 1), k=len(sums)) for _ in range(_FLIPS))
    hits: int = sum(abs(sum(map(mul, sums, signs))) >= enough for signs in throws)
    return (1 + hits) / (1 + _FLIPS)


def _clustered(values: Sequence[float], clusters: Sequence[Hashable]) -> list[_Heap]:
    members: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        members.setdefault(cluster, []).append(value)
    return [(fsum(each), len(each)) for each in members.values()]


def _heaps(clusters: list[_Heap], chance: Random) -> list[_Heap]:
    if len(clusters) <= _HEAPS:
        return clusters
    chance.shuffle(clusters)
    dealt = [clusters[first::_HEAPS] for first in range(_HEAPS)]
    return [(fsum(total for total, _ in heap), sum(size for _, size in heap)) for heap in dealt]
