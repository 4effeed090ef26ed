"""The intervals and p values of reports equal those of scipy."""

from __future__ import annotations

from random import Random
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.milestones import compare
from tests.milestones.reported import (
    repeat_task,
    repeat_with_each_user,
    report_goals,
    report_on,
    report_progress,
)

pytestmark = pytest.mark.slow
stats = pytest.importorskip("scipy.stats")

OUTCOMES = st.lists(st.booleans(), min_size=1, max_size=60)
PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)
LENGTHS = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=10)


def subtract_means(first: Any, second: Any) -> float:
    return fmean(second) - fmean(first)


def permutation_p_value(first: list[Any], second: list[Any]) -> float:
    options: Any = {"permutation_type": "samples", "n_resamples": np.inf}
    p_value: float = stats.permutation_test((first, second), subtract_means, **options).pvalue
    return p_value


@settings(max_examples=30, deadline=None)
@given(OUTCOMES)
def test_wilsons_interval(outcomes: list[bool]):
    goal = report_goals(*outcomes).summary.overall.goal_completion
    expected = stats.binomtest(sum(outcomes), len(outcomes)).proportion_ci(method="wilson")
    assert (goal.low, goal.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(PAIRS)
def test_mcnemars_exact_test(pairs: list[tuple[bool, bool]]):
    first, second = zip(*pairs, strict=True)
    only_first, only_second = pairs.count((True, False)), pairs.count((False, True))
    expected = 1.0
    if only_first + only_second:
        expected = stats.binomtest(only_first, only_first + only_second).pvalue
    assert compare(report_goals(*first), report_goals(*second)).overall.goal_completion.p == pytest.approx(
        expected
    )


@settings(max_examples=20, deadline=None)
@given(LENGTHS)
def test_the_permutation_test_of_pairs(lengths: list[tuple[int, int]]):
    first, second = (report_progress(*side) for side in zip(*lengths, strict=True))
    rates = [[record.progress_rate for record in report.conversations] for report in (first, second)]
    assert compare(first, second).overall.progress_rate.p == pytest.approx(permutation_p_value(*rates))


@settings(max_examples=10, deadline=None)
@given(LENGTHS)
def test_the_permutation_test_of_whole_tasks(lengths: list[tuple[int, int]]):
    # Each task has two runs in each report, so the test flips the sign of a task's sum.
    first_records: list[Any] = []
    second_records: list[Any] = []
    sums: tuple[list[int], list[int]] = ([], [])
    for number, (one, two) in enumerate(lengths):
        for side, goals in enumerate([(one > 5, two > 5), (two > 3, one > 7)]):
            records = repeat_task(str(number), *goals)
            (first_records, second_records)[side].extend(records)
            sums[side].append(sum(goals))
    goal = compare(report_on(*first_records), report_on(*second_records)).overall.goal_completion
    assert goal.test == "sign flip"
    assert goal.p == pytest.approx(permutation_p_value(*sums))


def test_the_bootstrap_of_a_mean():
    report = report_progress(0, 0, 1, 2, 2, 3, 5, 5, 6, 7, 8, 8, 9, 10, 10, 10, 10, 4, 3, 1)
    mean = report.summary.overall.progress_rate
    values = np.array([record.progress_rate for record in report.conversations])
    options: Any = {"method": "percentile", "n_resamples": 20_000, "rng": np.random.default_rng(0)}
    expected = stats.bootstrap((values,), np.mean, **options).confidence_interval
    assert (mean.low, mean.high) == pytest.approx((expected.low, expected.high), abs=0.015)


def test_the_bootstrap_of_whole_tasks_with_several_kinds_of_users():
    random_source = Random(0)
    # 24 tasks that are easy or hard for all of their users; some have one kind of user, others three.
    sizes = [random_source.choice((1, 3)) for _ in range(24)]
    ease = [random_source.random() for _ in sizes]
    reports, sums = [], []
    for bonus in (0, 0.3):
        records: list[Any] = []
        totals = []
        for number, (size, share) in enumerate(zip(sizes, ease, strict=True)):
            goals = [random_source.random() < share + bonus for _ in range(3)]
            records += repeat_with_each_user(str(number), *goals)[:size]
            totals.append(sum(goals[:size]))
        reports.append(report_on(*records))
        sums.append(np.array(totals))
    goal = reports[1].summary.overall.goal_completion
    difference = compare(*reports).overall.goal_completion
    assert (goal.n, difference.tasks, difference.test) == (sum(sizes), 24, "sign flip")
    for figure, totals_of_tasks in ((goal, sums[1]), (difference, sums[1] - sums[0])):
        expected = stats.bootstrap(
            (totals_of_tasks, np.array(sizes)),
            lambda total, size, axis: np.sum(total, axis=axis) / np.sum(size, axis=axis),
            paired=True,
            method="percentile",
            n_resamples=20_000,
            rng=np.random.default_rng(0),
        ).confidence_interval
        assert (figure.low, figure.high) == pytest.approx((expected.low, expected.high), abs=0.025)


@pytest.mark.parametrize(("first", "second", "times"), [(0, 0, 1), (4, 4, 2), (9, 2, 3)])
def test_wilsons_interval_replaces_a_bootstrap_without_spread(first: int, second: int, times: int):
    # A step is an eleventh of the way, so 11 conversations that went k steps count as k successes.
    n = 11 * times
    reports = [report_progress(*[length] * n) for length in (first, second)]
    mean = reports[1].summary.overall.progress_rate
    expected = stats.binomtest(second * times, n).proportion_ci(method="wilson")
    assert (mean.low, mean.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    difference = compare(*reports).overall.progress_rate
    share = stats.binomtest(0, n).proportion_ci(method="wilson").high
    d = (second - first) / 11
    expected_bounds = (d + share * (-1 - d), d + share * (1 - d))
    assert (difference.low, difference.high) == pytest.approx(expected_bounds, abs=1e-9)
