"""Statistics over many conversations: intervals, pass^k, and the p values of differences.

The bootstrap and the sign test distribute more than 256 values over 256 groups at random and resample the groups: the
sums vary as much, the width of an interval is known to 1 / sqrt(512), 4%, and the cost is bounded. The same values give
the same figures.
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
_MAX_GROUPS = 256
_RESAMPLES = 1_000
# Up to so many differences all ways to flip the signs are counted (2^14 sums); above, a sample of them.
_MAX_COUNTED = 14
_SAMPLED_FLIPS = 10_000

_Group = tuple[float, int]
"""The sum of some values, and their number."""


def wilson_interval(count: float, n: int) -> tuple[float, float]:
    """Return the 95% score interval of a share: the shares p for which count / n is within z standard errors of p.

    Wilson, "Probable inference, the law of succession, and statistical inference", 1927. `count` is 0 to n, and n 1 or
    more. A sum of values from 0 to 1 is a `count`, too: they vary at most as much as yes and no with the same mean.
    """
    center = count + _Z * _Z / 2
    half_width = _Z * sqrt(count * (n - count) / n + _Z * _Z / 4)
    low = (center - half_width) / (n + _Z * _Z)
    high = (center + half_width) / (n + _Z * _Z)
    # Rounding must not take 0 and 1 out of the interval.
    if count == 0:
        low = 0.0
    if count == n:
        high = 1.0
    return low, high


def mcnemar_p(only_a: int, only_b: int) -> float:
    """Return the exact, two-sided p of so uneven a split of the pairs that differ, if A and B are alike.

    Pairs in which both succeed or both fail say nothing. Each of the other n is A's or B's with probability 1/2, so
    p = 2 P(X ≤ min(only_a, only_b)) with X binomial (n, 1/2), at most 1. McNemar, "Note on the sampling error of the
    difference between correlated proportions or percentages", 1947, in its exact form. Pairs have to be
    independent: for several runs of one task see `sign_flip_p`.
    """
    n = only_a + only_b
    tail, ways = 0, 1
    for i in range(min(only_a, only_b) + 1):
        tail += ways
        ways = ways * (n - i) // (i + 1)
    return min(1.0, float(2 * tail / 2**n))


def pass_hat_k(runs: Mapping[Any, tuple[int, int]], k: int) -> float | None:
    """Return pass^k, the probability that k runs of a task all succeed: the mean over tasks of C(c, k) / C(n, k).

    Of n runs of which c succeed, this is the share of the choices of k runs that hold successes alone, an estimate
    without bias. Yao et al., "τ-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains", 2024.
    A task with fewer than k runs is left out; None if no task has k runs.

    Args:
        runs: Successes and runs, by task. Only tasks of which every run is decided: others are not a fair sample.
        k: The number of runs, 1 or more.
    """
    shares = []
    for successes, n in runs.values():
        if n >= k:
            shares.append(comb(successes, k) / comb(n, k))
    return fsum(shares) / len(shares) if shares else None


def holm_correction(ps: Mapping[K, float]) -> dict[K, float]:
    """Return each p corrected for their number: chance alone makes any of them small no more often than one.

    The smallest is multiplied by their number, the next by one less, and so on, never falling, at most 1.
    Holm, "A simple sequentially rejective multiple test procedure", 1979.
    """
    corrected: dict[K, float] = {}
    largest = 0.0
    for rank, name in enumerate(sorted(ps, key=ps.__getitem__)):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[name]))
        corrected[name] = largest
    return corrected


def clipped_mean(values: Sequence[float]) -> float:
    """Return the mean of at least one value; rounding does not take it out of their range."""
    return min(max(fsum(values) / len(values), min(values)), max(values))


def bootstrap_interval(values: Sequence[float], clusters: Sequence[Hashable]) -> tuple[float, float] | None:
    """Return the 95% percentile bootstrap interval of a mean: where the means of resamples lie.

    Efron, "Bootstrap methods: another look at the jackknife", 1979. If it would leave the mean itself out (because the
    values lie very unevenly, or equal ones are rounded), it reaches to the mean. Over the differences of pairs it
    is the paired bootstrap. Fewer than two values or clusters say nothing of their spread: None. Cost O(n), and
    256,000 draws at most.

    Args:
        values: The values of the mean.
        clusters: The cluster of each value; values of one cluster depend on each other, as the runs of one task do,
            and are drawn together.
    """
    chance = Random(0)
    groups = _limit_groups(_sum_by_cluster(values, clusters), chance)
    if len(groups) < 2:
        return None
    mean, smallest, largest = clipped_mean(values), min(values), max(values)
    if smallest == largest:
        return smallest, largest  # as every resample would say
    means = []
    for _ in range(_RESAMPLES):
        totals, sizes = zip(*chance.choices(groups, k=len(groups)), strict=True)
        means.append(sum(totals) / sum(sizes))
    means.sort()
    outside = _RESAMPLES // 40
    low = min(mean, means[outside])
    high = max(mean, means[-1 - outside])
    return max(smallest, low), min(largest, high)


def share_interval(values: Sequence[float], clusters: Sequence[Hashable]) -> tuple[float, float]:
    """Return the 95% interval of the mean of at least one value from 0 to 1: a bootstrap's, or Wilson's.

    Wilson's, for as many clusters as there are, says how sure a mean is in which resamples show no spread.
    """
    interval = bootstrap_interval(values, clusters)
    if interval and interval[0] < interval[1]:
        return interval
    cluster_count = len(set(clusters))
    return wilson_interval(clipped_mean(values) * cluster_count, cluster_count)


def sign_flip_p(differences: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """Return the two-sided p of so large a sum of differences, in either direction, if A and B are alike.

    If they are, each pair could as well have come the other way round: all ways to flip the signs are equally likely,
    and p is the share of them whose sum is at least as far from 0. Fisher's randomisation test, "The Design of
    Experiments", 1935, section 21. For differences of -1, 0 and 1 it is McNemar's exact test. With clusters, the sign
    of a whole cluster flips. All 2^n ways are counted up to n = 14, above that a seeded sample of them and the
    observed one. Cost O(n), and 2,560,000 coins at most.

    Args:
        differences: One a pair.
        clusters: The cluster of each pair; see `bootstrap_interval`.
    """
    chance = Random(0)
    differing = [group for group in _sum_by_cluster(differences, clusters) if group[0]]
    sums = [total for total, _ in _limit_groups(differing, chance)]
    # Equal sums may differ in their last digits, depending on the order of the addition.
    threshold = abs(fsum(sums)) - 1e-9 * fsum(map(abs, sums))
    if len(sums) <= _MAX_COUNTED:
        flipped_sums = [0.0]
        for term in sums:
            flipped_sums = [total + side for total in flipped_sums for side in (term, -term)]
        return sum(abs(total) >= threshold for total in flipped_sums) / len(flipped_sums)
    hits = 0
    for _ in range(_SAMPLED_FLIPS):
        signs = chance.choices((-1, 1), k=len(sums))
        hits += abs(sum(map(mul, sums, signs))) >= threshold
    return (1 + hits) / (1 + _SAMPLED_FLIPS)


def _sum_by_cluster(values: Sequence[float], clusters: Sequence[Hashable]) -> list[_Group]:
    members: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        members.setdefault(cluster, []).append(value)
    return [(fsum(cluster_values), len(cluster_values)) for cluster_values in members.values()]


def _limit_groups(groups: list[_Group], chance: Random) -> list[_Group]:
    if len(groups) <= _MAX_GROUPS:
        return groups
    chance.shuffle(groups)
    merged = []
    for first in range(_MAX_GROUPS):
        totals, sizes = zip(*groups[first::_MAX_GROUPS], strict=True)
        merged.append((fsum(totals), sum(sizes)))
    return merged
