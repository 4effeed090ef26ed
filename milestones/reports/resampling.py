"""Figures over many conversations by resampling: the bootstrap, and the randomisation test of a difference."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Sequence
from itertools import compress
from math import fsum, isfinite
from typing import NamedTuple

from arq_graph.errors import InputError
from arq_graph.milestones.reports.statistics import CONFIDENCE, checked_confidence

RESAMPLES = 1_000
# A byte tells one of so many apart, and random bytes are what Python draws fastest.
_HEAPS = 256
# Up to here all ways to turn the signs are counted (2^14 sums); above, a sample of them.
_COUNTED = 14
_FLIPS = 10_000


class PairedDifference(NamedTuple):
    """A mean difference between pairs.

    Args:
        mean: The mean of the differences.
        low: The interval's lower end; None where there are fewer than two clusters.
        high: Its upper end.
        p: How likely a mean at least as far from 0 is where nothing but chance makes the difference, 0 to 1.
    """

    mean: float
    low: float | None
    high: float | None
    p: float


def bootstrap_mean(
    values: Sequence[float],
    confidence: float = CONFIDENCE,
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[float, float] | None:
    """The percentile bootstrap interval of a mean: where the means of resamples lie.

    Efron, "Bootstrap methods: another look at the jackknife", 1979. The same values give the same interval.
    Where it would leave the mean itself out (values that lie very unevenly, few resamples, the rounding of
    equal values), it reaches to the mean. More than 256 values are dealt into 256 heaps at random, and heaps
    are drawn instead of values: the means vary as much, and the interval's width is known to 1 / sqrt(512),
    4%. So the cost is bounded: O(n + 256 × resamples).

    Args:
        values: What the mean is over.
        confidence: Between 0 and 1.
        clusters: What each value belongs to; values of one cluster are drawn together, because they depend on
            each other, such as runs of one task. None: each by itself.
        resamples: How many resamples to draw, 1 or more.
        seed: Of the random numbers.

    Returns:
        None where there are fewer than two values or clusters: nothing is known of their spread.

    Raises:
        InputError: A value is not finite, or a setting is out of its range.
    """
    tail = (1 - checked_confidence(confidence)) / 2
    if resamples < 1:
        raise InputError(f"{resamples} resamples are none; draw 1 or more")
    chance = random.Random(seed)
    drawn = _heaps(_clustered(values, clusters), chance)
    if len(drawn) < 2:
        return None
    mean, least, most = mean_within(values), min(values), max(values)
    if least == most:
        return least, most  # as every resample would say
    means = sorted(_resampled_means(drawn, resamples, chance))
    outside = int(resamples * tail)
    return max(least, min(mean, means[outside])), min(most, max(mean, means[-1 - outside]))


def mean_within(values: Sequence[float]) -> float:
    """The mean of at least one value; rounding does not take it out of the values."""
    return min(max(fsum(values) / len(values), min(values)), max(values))


def paired_bootstrap(
    differences: Sequence[float],
    confidence: float = CONFIDENCE,
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PairedDifference:
    """The mean of paired differences, with its bootstrap interval (`bootstrap_mean`) and p (`sign_flip`).

    The interval alone finds differences where there are a few pairs only (three that are alike are three
    whose interval leaves 0 out); p does not.

    Args:
        differences: One a pair, at least one.
        confidence: Between 0 and 1.
        clusters: What each pair belongs to; see `bootstrap_mean`.
        resamples: How many resamples to draw, 1 or more.
        seed: Of the random numbers.

    Raises:
        InputError: There is no difference, one is not finite, or a setting is out of its range.
    """
    if not differences:
        raise InputError("there are no pairs to compare")
    interval = bootstrap_mean(differences, confidence, clusters=clusters, resamples=resamples, seed=seed)
    low, high = interval or (None, None)
    mean = mean_within(differences)
    return PairedDifference(mean, low, high, sign_flip(differences, clusters=clusters, seed=seed))


def sign_flip(
    differences: Sequence[float],
    *,
    clusters: Sequence[Hashable] | None = None,
    flips: int = _FLIPS,
    seed: int = 0,
) -> float:
    """How likely so large a sum of differences is, in either direction, where A and B are alike: two-sided p.

    If they are, each pair could as well have come the other way round: all ways to turn the signs are equally
    likely, and p is the share of them whose sum is at least as far from 0. Fisher's randomisation test, "The
    Design of Experiments", 1935, section 21. For differences of -1, 0 and 1 it is McNemar's exact test. With
    clusters, the sign of a whole cluster turns. All 2^n ways are counted up to n = 14, above that a seeded
    sample of them and the observed one. More than 256 are dealt into 256 heaps at random, and heaps turn:
    fewer ways, as likely as each other too. Cost O(n + 256 × flips).

    Args:
        differences: One a pair.
        clusters: What each pair belongs to; see `bootstrap_mean`.
        flips: How many ways to sample where there are too many to count, 1 or more.
        seed: Of the random numbers.

    Raises:
        InputError: A difference is not finite, or a setting is out of its range.
    """
    if flips < 1:
        raise InputError(f"{flips} ways to turn the signs are none; sample 1 or more")
    chance = random.Random(seed)
    turned = _heaps([each for each in _clustered(differences, clusters) if each[0]], chance)
    sums = [abs(total) for total, _ in turned]
    observed = abs(fsum(total for total, _ in turned))
    whole = fsum(sums)
    # Equal sums may differ in their last digits, depending on the order of the addition.
    enough = observed - 1e-9 * whole
    if len(sums) <= _COUNTED:
        signed = [0.0]
        for one in sums:
            signed += [total + one for total in signed]
        return sum(abs(2 * chosen - whole) >= enough for chosen in signed) / len(signed)
    hits = sum(
        abs(2 * sum(compress(sums, bits)) - whole) >= enough for bits in _coins(len(sums), flips, chance)
    )
    return (1 + hits) / (1 + flips)


def _clustered(values: Sequence[float], clusters: Sequence[Hashable] | None) -> list[tuple[float, int]]:
    """The sum and size of each cluster, in the order of their first values."""
    if not all(map(isfinite, values)):
        raise InputError("a value is not a finite number")
    if clusters is None:
        return [(value, 1) for value in values]
    if len(clusters) != len(values):
        raise InputError(f"clusters has {len(clusters)} entries for {len(values)} values; it takes one each")
    members: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        members.setdefault(cluster, []).append(value)
    return [(fsum(each), len(each)) for each in members.values()]


def _heaps(clusters: list[tuple[float, int]], chance: random.Random) -> list[tuple[float, int]]:
    if len(clusters) <= _HEAPS:
        return clusters
    chance.shuffle(clusters)
    dealt = [clusters[first::_HEAPS] for first in range(_HEAPS)]
    return [(fsum(total for total, _ in heap), sum(size for _, size in heap)) for heap in dealt]


def _resampled_means(
    heaps: Sequence[tuple[float, int]], resamples: int, chance: random.Random
) -> Iterator[float]:
    total_of = [total for total, _ in heaps].__getitem__
    size_of = [size for _, size in heaps].__getitem__
    n = len(heaps)
    alike = len({size for _, size in heaps}) == 1
    for drawn in _draws(n, resamples, chance):
        yield fsum(map(total_of, drawn)) / (n * heaps[0][1] if alike else sum(map(size_of, drawn)))


def _draws(n: int, times: int, chance: random.Random) -> Iterator[bytes]:
    """`times` draws of n numbers below n, with replacement; n is 256 at most."""
    # Bytes from the last multiple of n on are thrown away: folded, they would make small numbers likelier.
    uneven = bytes(range(256 - 256 % n, 256))
    folded = bytes(byte % n for byte in range(256))
    drawn = b""
    for _ in range(times):
        while len(drawn) < n:
            drawn += chance.randbytes(4 * n).translate(folded, uneven)
        yield drawn[:n]
        drawn = drawn[n:]


def _coins(n: int, times: int, chance: random.Random) -> Iterator[bytes]:
    """`times` throws of n coins, each 0 or 1."""
    sides = bytes.maketrans(b"01", b"\x00\x01")
    for _ in range(times):
        yield format(chance.getrandbits(n), f"0{n}b").encode().translate(sides)
