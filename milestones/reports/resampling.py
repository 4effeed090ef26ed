"""Figures over many conversations by resampling: the bootstrap, and the randomisation test of a difference.

Both deal more than 256 values into 256 heaps at random and resample the heaps: the sums vary as much, the width of
an interval is known to 1 / sqrt(512), 4%, and the cost is bounded. The same values give the same figures.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Sequence
from itertools import compress
from math import fsum

# A byte tells so many heaps apart, and random bytes are what Python draws fastest.
_HEAPS = 256
_RESAMPLES = 1_000
# Up to here all ways to turn the signs are counted (2^14 sums); above, a sample of them.
_COUNTED = 14
_FLIPS = 10_000

_Heap = tuple[float, int]
"""A sum, and of how many values it is."""


def bootstrap_mean(
    values: Sequence[float], *, clusters: Sequence[Hashable] | None = None
) -> tuple[float, float] | None:
    """The 95% percentile bootstrap interval of a mean: where the means of resamples lie.

    Efron, "Bootstrap methods: another look at the jackknife", 1979. Where it would leave the mean itself out (values
    that lie very unevenly, the rounding of equal values), it reaches to the mean. Over the differences of pairs it
    is the paired bootstrap. Fewer than two values or clusters say nothing of their spread: None. Cost O(n), and
    256,000 draws at most.

    Args:
        values: What the mean is over.
        clusters: What each value belongs to; values of one cluster depend on each other, as the runs of one task do,
            and are drawn together. None: each by itself.

    """
    chance = random.Random(0)
    heaps = _heaps(_clustered(values, clusters), chance)
    if len(heaps) < 2:
        return None
    mean, least, most = mean_within(values), min(values), max(values)
    if least == most:
        return least, most  # as every resample would say
    means = sorted(_resampled_means(heaps, chance))
    outside = int(_RESAMPLES * (1 - 0.95) / 2)
    return max(least, min(mean, means[outside])), min(most, max(mean, means[-1 - outside]))


def mean_within(values: Sequence[float]) -> float:
    """The mean of at least one value; rounding does not take it out of the values."""
    return min(max(fsum(values) / len(values), min(values)), max(values))


def sign_flip(differences: Sequence[float], *, clusters: Sequence[Hashable] | None = None) -> float:
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
    chance = random.Random(0)
    turned = _heaps([each for each in _clustered(differences, clusters) if each[0]], chance)
    sums = [abs(total) for total, _ in turned]
    whole = fsum(sums)
    # Equal sums may differ in their last digits, depending on the order of the addition.
    enough = abs(fsum(total for total, _ in turned)) - 1e-9 * whole
    if len(sums) <= _COUNTED:
        signed = [0.0]
        for one in sums:
            signed += [total + one for total in signed]
        return sum(abs(2 * chosen - whole) >= enough for chosen in signed) / len(signed)
    hits = sum(abs(2 * sum(compress(sums, bits)) - whole) >= enough for bits in _coins(len(sums), chance))
    return (1 + hits) / (1 + _FLIPS)


def _clustered(values: Sequence[float], clusters: Sequence[Hashable] | None) -> list[_Heap]:
    if clusters is None:
        return [(value, 1) for value in values]
    members: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        members.setdefault(cluster, []).append(value)
    return [(fsum(each), len(each)) for each in members.values()]


def _heaps(clusters: list[_Heap], chance: random.Random) -> list[_Heap]:
    if len(clusters) <= _HEAPS:
        return clusters
    chance.shuffle(clusters)
    dealt = [clusters[first::_HEAPS] for first in range(_HEAPS)]
    return [(fsum(total for total, _ in heap), sum(size for _, size in heap)) for heap in dealt]


def _resampled_means(heaps: Sequence[_Heap], chance: random.Random) -> Iterator[float]:
    total_of = [total for total, _ in heaps].__getitem__
    size_of = [size for _, size in heaps].__getitem__
    for drawn in _draws(len(heaps), chance):
        yield fsum(map(total_of, drawn)) / sum(map(size_of, drawn))


def _draws(n: int, chance: random.Random) -> Iterator[bytes]:
    """Draws of n numbers below n, with replacement; n is 256 at most."""
    # Bytes from the last multiple of n on are thrown away: folded, they would make small numbers likelier.
    uneven = bytes(range(256 - 256 % n, 256))
    folded = bytes(byte % n for byte in range(256))
    drawn = b""
    for _ in range(_RESAMPLES):
        while len(drawn) < n:
            drawn += chance.randbytes(4 * n).translate(folded, uneven)
        yield drawn[:n]
        drawn = drawn[n:]


def _coins(n: int, chance: random.Random) -> Iterator[bytes]:
    """Throws of n coins, each 0 or 1."""
    sides = bytes.maketrans(b"01", b"\x00\x01")
    for _ in range(_FLIPS):
        yield format(chance.getrandbits(n), f"0{n}b").encode().translate(sides)
