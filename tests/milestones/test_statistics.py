"""Intervals, pass^k and tests of a difference: by hand, by brute force, and by what must hold of any numbers."""

from __future__ import annotations

from itertools import combinations, product
from math import sqrt
from random import Random
from statistics import fmean, pstdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.errors import InputError
from arq_graph.milestones.reports.resampling import bootstrap_mean, paired_bootstrap, sign_flip
from arq_graph.milestones.reports.statistics import holm, mcnemar, pass_hat_k, wilson

shares = st.floats(0, 1)
differences = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=8)


def test_wilson_for_eight_of_ten():
    # z = 1.959964, z² = 3.841459: the middle is (8 + 1.920729) / 13.841459 = 0.716740, and half the width is
    # 1.959964 sqrt(8 × 2 / 10 + 0.960365) / 13.841459 = 1.959964 × 1.600114 / 13.841459 = 0.226578.
    assert wilson(8, 10) == pytest.approx((0.490162, 0.943318), abs=1e-6)


def test_wilson_at_none_and_all_does_not_leave_the_unit():
    # For 0 of n the upper end is z² / (n + z²) = 3.841459 / 13.841459.
    assert wilson(0, 10) == (0.0, pytest.approx(0.277533, abs=1e-6))
    assert wilson(10, 10) == (pytest.approx(1 - 0.277533, abs=1e-6), 1.0)


def test_wilson_at_another_confidence():
    # z = 1.644854, z² = 2.705543: (5 + 1.352772 ± 1.644854 sqrt(2.5 + 0.676386)) / 12.705543.
    assert wilson(5, 10, 0.90) == pytest.approx((0.269272, 0.730728), abs=1e-6)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_ends_are_where_the_share_is_z_errors_away(counted):
    count, n = counted
    low, high = wilson(count, n)
    assert 0 <= low <= count / n <= high <= 1
    for end in (low, high):
        if 0 < end < 1:
            assert abs(count / n - end) == pytest.approx(1.9599640 * sqrt(end * (1 - end) / n), abs=1e-6)


@pytest.mark.parametrize(("count", "n"), [(1, 0), (0, 0), (-1, 4), (5, 4)])
def test_what_is_no_share_is_refused(count, n):
    with pytest.raises(InputError, match="no share"):
        wilson(count, n)


@pytest.mark.parametrize("confidence", [0, 1, 95, float("nan")])
def test_what_is_no_confidence_is_refused(confidence):
    with pytest.raises(InputError, match="between 0 and 1"):
        wilson(1, 2, confidence)
    with pytest.raises(InputError, match="between 0 and 1"):
        bootstrap_mean([0.1, 0.2], confidence)


def test_mcnemar_for_one_against_eight():
    # n = 9: 2 (C(9,0) + C(9,1)) / 2^9 = 2 × 10 / 512.
    assert mcnemar(1, 8) == mcnemar(8, 1) == 20 / 512


def test_mcnemar_without_a_difference():
    assert mcnemar(0, 0) == mcnemar(5, 5) == 1
    # n = 5: 2 × C(5,0) / 2^5; five pairs all one way are not enough.
    assert mcnemar(0, 5) == 2 / 32


def test_mcnemar_of_many_pairs_is_finite():
    assert 0 <= mcnemar(4_000, 6_000) < 1e-80
    with pytest.raises(InputError, match="-1 pairs"):
        mcnemar(-1, 3)


@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3))
def test_mcnemar_is_the_turning_of_signs_where_it_is_yes_or_no(only_a, only_b, alike):
    p = sign_flip([-1.0] * only_a + [1.0] * only_b + [0.0] * alike)
    assert p == pytest.approx(mcnemar(only_a, only_b))


@given(differences)
def test_turned_signs_are_counted_one_by_one(values):
    sums = [
        sum(s * v for s, v in zip(signs, values, strict=True))
        for signs in product((-1, 1), repeat=len(values))
    ]
    as_far = sum(abs(one) >= abs(sum(values)) - 1e-9 for one in sums)
    assert sign_flip(values) == pytest.approx(as_far / len(sums))


def test_sampled_signs_come_close_to_the_exact_ones():
    # 20 against 7 are too many to count one by one; 300 against 240 are dealt into heaps.
    assert sign_flip([1.0] * 20 + [-1.0] * 7) == pytest.approx(mcnemar(20, 7), abs=0.005)
    assert sign_flip([1.0] * 300 + [-1.0] * 240) == pytest.approx(mcnemar(300, 240), abs=0.02)


def test_runs_of_one_task_turn_together():
    # Six runs of one task agree because it is one task: one of two ways to turn it is as far, and so is the other.
    assert sign_flip([1.0] * 6, clusters=["one"] * 6) == 1
    assert sign_flip([1.0] * 6) == 2 / 2**6


def test_pass_hat_k_by_hand():
    # Task a: 3 of 4 succeed, C(3,2) / C(4,2) = 3/6. Task b: 4 of 4. Task c: 1 of 4, C(1,2) = 0.
    runs = {"a": (3, 4), "b": (4, 4), "c": (1, 4)}
    assert pass_hat_k(runs, 1) == pytest.approx((0.75 + 1 + 0.25) / 3)
    assert pass_hat_k(runs, 2) == pytest.approx((0.5 + 1 + 0) / 3)
    assert pass_hat_k(runs, 4) == pytest.approx(1 / 3)
    assert pass_hat_k(runs, 5) is None
    assert pass_hat_k({}, 1) is None


def test_a_task_with_too_few_runs_is_left_out():
    assert pass_hat_k({"a": (2, 4), "short": (1, 1)}, 2) == pytest.approx(1 / 6)


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.integers(1, 7))
def test_pass_hat_k_is_the_share_of_choices_that_all_succeed(outcomes, k):
    choices = list(combinations(outcomes, k))
    expected = fmean(map(all, choices)) if choices else None
    assert pass_hat_k({"t": (sum(outcomes), len(outcomes))}, k) == (
        None if expected is None else pytest.approx(expected)
    )


def test_pass_hat_k_refuses_what_cannot_be():
    with pytest.raises(InputError, match=r"pass\^0"):
        pass_hat_k({"a": (1, 2)}, 0)
    with pytest.raises(InputError, match="3 successes of 2 runs"):
        pass_hat_k({"a": (3, 2)}, 1)


def test_holm_by_hand():
    # Sorted: 0.01 × 3, 0.02 × 2, then 0.04 × 1, which must not fall below the one before.
    assert holm({"c": 0.04, "a": 0.01, "b": 0.02}) == pytest.approx({"a": 0.03, "b": 0.04, "c": 0.04})
    assert holm({"a": 0.4, "b": 0.9}) == pytest.approx({"a": 0.8, "b": 0.9})
    assert holm({}) == {}


@settings(max_examples=50)
@given(st.lists(shares, min_size=2, max_size=400))
def test_a_bootstrap_interval_lies_within_its_values(values):
    low, high = bootstrap_mean(values, resamples=200)
    assert min(values) <= low <= high <= max(values)
    assert (low, high) == bootstrap_mean(list(values), resamples=200)


@pytest.mark.parametrize("n", [40, 256, 257, 3_000])
def test_a_bootstrap_interval_is_as_wide_as_theory_says(n):
    chance = Random(n)
    values = [chance.random() ** 2 for _ in range(n)]
    low, high = bootstrap_mean(values, resamples=4_000)
    half = 1.96 * pstdev(values) / sqrt(n)
    assert low == pytest.approx(fmean(values) - half, abs=0.2 * half)
    assert high == pytest.approx(fmean(values) + half, abs=0.2 * half)


@pytest.mark.parametrize("n", [100, 200, 250])
def test_every_value_is_drawn_as_often_as_every_other(n):
    ones = [1.0] * (n // 2) + [0.0] * (n // 2)
    for values in (ones, ones[::-1]):
        assert bootstrap_mean(values, 0.01, resamples=4_000) == pytest.approx((0.5, 0.5), abs=0.01)


def test_runs_of_one_task_are_drawn_together():
    # Ten tasks, each of which wholly succeeds or fails: forty runs know no more than ten.
    values = [float(task % 2) for task in range(10) for _ in range(4)]
    tasks = [task for task in range(10) for _ in range(4)]
    assert bootstrap_mean(values, clusters=tasks) == bootstrap_mean([float(task % 2) for task in range(10)])
    apart = bootstrap_mean(values)
    together = bootstrap_mean(values, clusters=tasks)
    assert together[1] - together[0] > 1.6 * (apart[1] - apart[0])


def test_tasks_with_more_runs_weigh_more():
    low, high = bootstrap_mean([1.0, 1.0, 1.0, 0.0], clusters=["a", "a", "a", "b"])
    assert (low, high) == (0.0, 1.0)
    # Of two draws: aa with mean 1, ab with 3/4, bb with 0; half of all are ab.
    assert bootstrap_mean([1.0, 1.0, 1.0, 0.0], 0.3, clusters=["a", "a", "a", "b"]) == (0.75, 0.75)


def test_one_value_says_nothing_of_its_spread():
    assert bootstrap_mean([0.5]) is None
    assert bootstrap_mean([]) is None
    assert bootstrap_mean([0.5, 0.7], clusters=["t", "t"]) is None


def test_what_cannot_be_resampled_is_refused():
    with pytest.raises(InputError, match="not a finite number"):
        bootstrap_mean([0.5, float("nan")])
    with pytest.raises(InputError, match="1 entries for 2 values"):
        bootstrap_mean([0.5, 0.5], clusters=["a"])
    with pytest.raises(InputError, match="0 resamples"):
        bootstrap_mean([0.5, 0.5], resamples=0)
    with pytest.raises(InputError, match="0 ways"):
        sign_flip([0.5], flips=0)
    with pytest.raises(InputError, match="no pairs"):
        paired_bootstrap([])


def test_three_pairs_that_agree_are_no_proof():
    found = paired_bootstrap([0.1, 0.2, 0.3])
    assert found.mean == pytest.approx(0.2)
    assert found.low > 0  # the interval alone would call it a difference
    assert found.p == 2 / 2**3


@settings(max_examples=60)
@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=30) | st.tuples(st.floats(-1, 1), st.integers(2, 30)),
    st.sampled_from([0.01, 0.5, 0.95]),
)
def test_a_mean_lies_in_its_interval(values, confidence):
    if isinstance(values, tuple):
        values = [values[0]] * values[1]
    found = paired_bootstrap(values, confidence, resamples=50)
    assert min(values) <= found.low <= found.mean <= found.high <= max(values)


def test_three_equal_values_have_an_interval_of_one_point():
    low, high = bootstrap_mean([0.1] * 3)
    assert low == high == 0.1
    assert paired_bootstrap([0.1] * 3)[:3] == (0.1, 0.1, 0.1)


def test_a_difference_among_many_pairs_is_found():
    chance = Random(1)
    found = paired_bootstrap([chance.gauss(0.1, 0.3) for _ in range(400)])
    assert 0 < found.low < found.mean < found.high < 0.2
    assert found.p < 0.001


def test_no_difference_is_found_about_as_often_as_promised():
    chance = Random(2)
    found = [sign_flip([chance.gauss(0, 1) for _ in range(12)]) < 0.05 for _ in range(200)]
    assert sum(found) <= 20  # 10 are expected; 20 or fewer in all but 1 of 1,000 such series
