"""Statistics over many conversations: intervals, pass^k, and the p values of differences.

The sign test distributes more than 256 values over 256 groups at random and flips the groups: the sums vary as much,
and the cost is bounded. The same values give the same figures.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from math import atan2, comb, cos, fsum, pi, sin, sqrt
from operator import mul
from random import Random
from statistics import NormalDist
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)

_Z = NormalDist().inv_cdf(0.975)
# Student's t with so many degrees of freedom is within a hundredth of the normal quantile.
_MAX_DEGREES = 256
_NO_VARIANCE = 1e-15
_MAX_GROUPS = 256
# Up to so many differences all ways to flip the signs are counted (2^14 sums); above, a sample of them.
_MAX_COUNTED = 14
_SAMPLED_FLIPS = 10_000

_Group = tuple[float, int]
"""The sum of some values, and their number."""


def share_interval(values: Sequence[float], clusters: Sequence[Hashable]) -> tuple[float, float]:
    """Return the 95% interval of the mean of at least one value from 0 to 1.

    Wilson's score interval ("Probable inference, the law of succession, and statistical inference", 1927), corrected
    for values that depend on each other and for few clusters, as Korn and Graubard ("Confidence intervals for
    proportions with small expected number of positive counts estimated from survey data", 1998) correct another one:

    - With the mean m and its cluster-robust variance v = k / (k - 1) * sum over k clusters of (the sum of a cluster's
      deviations from m)^2 / n^2, the n values are worth m (1 - m) / v independent ones. Where all clusters have the
      same mean, v is 0, and they count as k.
    - As v is estimated from k clusters, the quantile of Student's t with k - 1 degrees of freedom takes the place of
      the normal one.

    Cost O(n).

    Args:
        values: The values of the mean.
        clusters: The cluster of each value; values of one cluster depend on each other, as the runs of one task do.
    """
    n, mean = len(values), clipped_mean(values)
    groups = _sum_by_cluster(values, clusters)
    k = len(groups)
    if k == 1:
        return _wilson_interval(mean, 1, _Z)
    squares = fsum((total - size * mean) ** 2 for total, size in groups)
    variance = k / (k - 1) * squares / n**2
    worth = mean * (1 - mean) / variance if variance > _NO_VARIANCE else k
    return _wilson_interval(mean, worth, _t_quantile(min(k - 1, _MAX_DEGREES)))


def difference_interval(
    differences: Sequence[float], clusters: Sequence[Hashable]
) -> tuple[float, float] | None:
    """Return the 95% interval of a mean difference from -1 to 1: that of a share, stretched to this range.

    If all differences are equal, it is as wide as the share of clusters that may differ. A single cluster says nothing
    of the spread: None.
    """
    distinct_clusters = list(dict.fromkeys(clusters))
    if len(distinct_clusters) < 2:
        return None
    smallest, largest = min(differences), max(differences)
    if smallest == largest:
        _, others = share_interval([0.0] * len(distinct_clusters), distinct_clusters)
        return smallest - others * (1 + smallest), largest + others * (1 - largest)
    low, high = share_interval([(1 + difference) / 2 for difference in differences], clusters)
    return 2 * low - 1, 2 * high - 1


def _wilson_interval(share: float, n: float, z: float) -> tuple[float, float]:
    """Return the shares p from which `share`, of n, is at most z standard errors of p away."""
    center = share * n + z * z / 2
    half_width = z * sqrt(share * (1 - share) * n + z * z / 4)
    low = (center - half_width) / (n + z * z)
    high = (center + half_width) / (n + z * z)
    # Rounding must not take 0 and 1 out of the interval.
    if share == 0:
        low = 0.0
    if share == 1:
        high = 1.0
    return low, high


@cache
def _t_quantile(degrees: int) -> float:
    """Return the t with P(-t < T < t) = 95% for Student's T with so many degrees of freedom, by bisection."""
    low, high = _Z, 13.0
    for _ in range(60):
        middle = (low + high) / 2
        if _compute_t_probability(middle, degrees) < 0.95:
            low = middle
        else:
            high = middle
    return high


def _compute_t_probability(t: float, degrees: int) -> float:
    """Return P(-t < T < t); Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.3 and 26.7.4."""
    angle = atan2(t, sqrt(degrees))
    is_odd = degrees % 2
    term = cos(angle) if is_odd else 1.0
    total = 0.0
    for i in range(1 + is_odd, degrees, 2):
        total += term
        term *= cos(angle) ** 2 * i / (i + 1)
    probability = sin(angle) * total
    return 2 / pi * (angle + probability) if is_odd else probability


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


def sign_flip_p(differences: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """Return the two-sided p of so large a sum of differences, in either direction, if A and B are alike.

    If they are, each pair could as well have come the other way round: all ways to flip the signs are equally likely,
    and p is the share of them whose sum is at least as far from 0. Fisher's randomisation test, "The Design of
    Experiments", 1935, section 21. For differences of -1, 0 and 1 it is McNemar's exact test. With clusters, the sign
    of a whole cluster flips. All 2^n ways are counted up to n = 14, above that a seeded sample of them and the
    observed one. Cost O(n), and 2,560,000 coins at most.

    Args:
        differences: One a pair.
        clusters: The cluster of each pair; see `share_interval`.
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
    if len(set(clusters)) == len(values):
        return [(value, 1) for value in values]
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
