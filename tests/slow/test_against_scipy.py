"""The intervals and p values of reports equal those of scipy."""

from random import Random
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.milestones import compare
from arq_graph.milestones.reports.statistics import difference_interval, share_interval
from tests.milestones.reported import (
    repeat_task,
    repeat_with_each_user,
    report_goals,
    report_on,
    report_progress,
)

pytestmark = pytest.mark.slow
stats = pytest.importorskip("scipy.stats")
optimize = pytest.importorskip("scipy.optimize")

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)
LENGTHS = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=10)


def subtract_means(first: Any, second: Any) -> float:
    return fmean(second) - fmean(first)


def permutation_p_value(first: list[Any], second: list[Any]) -> float:
    options: Any = {"permutation_type": "samples", "n_resamples": np.inf}
    p_value: float = stats.permutation_test((first, second), subtract_means, **options).pvalue
    return p_value


def solve_interval(values: Any, tasks: Any) -> tuple[float, float]:
    """Return the shares that are t standard errors away from the mean, of as many values as these are worth."""
    values, tasks = np.array(values, dtype=float), np.array(tasks)
    mean, names = values.mean(), np.unique(tasks)
    totals = np.array([(values[tasks == name] - mean).sum() for name in names])
    worth = len(names)
    if totals.any():
        worth = mean * (1 - mean) / (totals.var(ddof=1) * len(names) / len(values) ** 2)
    t = stats.t.ppf(0.975, len(names) - 1)

    def miss(share: float) -> float:
        return (mean - share) ** 2 - t**2 * share * (1 - share) / worth

    low = optimize.brentq(miss, 0, min(mean, 1 - 1e-12)) if mean > 0 else 0
    high = optimize.brentq(miss, max(mean, 1e-12), 1) if mean < 1 else 1
    return low, high


@settings(max_examples=30, deadline=None)
@given(st.lists(st.booleans(), min_size=2, max_size=60))
def test_the_interval_of_goal_completion(outcomes: list[bool]):
    goal = report_goals(*outcomes).summary.overall.goal_completion
    assert (goal.low, goal.high) == pytest.approx(solve_interval(outcomes, range(len(outcomes))), abs=1e-9)


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


def test_the_interval_of_a_mean():
    report = report_progress(0, 0, 1, 2, 2, 3, 5, 5, 6, 7, 8, 8, 9, 10, 10, 10, 10, 4, 3, 1)
    mean = report.summary.overall.progress_rate
    values = [record.progress_rate for record in report.conversations]
    assert (mean.low, mean.high) == pytest.approx(solve_interval(values, range(20)), abs=1e-9)
    # Beside it, the usual bootstrap is narrower.
    options: Any = {"method": "percentile", "n_resamples": 20_000, "rng": np.random.default_rng(0)}
    bootstrap = stats.bootstrap((values,), np.mean, **options).confidence_interval
    assert (mean.low, mean.high) == pytest.approx((bootstrap.low, bootstrap.high), abs=0.03)


def test_the_interval_over_whole_tasks_with_several_kinds_of_users():
    random_source = Random(0)
    # 24 tasks that are easy or hard for all of their users; some have one kind of user, others three.
    sizes = [random_source.choice((1, 3)) for _ in range(24)]
    ease = [random_source.random() for _ in sizes]
    tasks = np.repeat(range(24), sizes)
    reports, outcomes = [], []
    for bonus in (0, 0.3):
        records: list[Any] = []
        values: list[bool] = []
        for number, (size, share) in enumerate(zip(sizes, ease, strict=True)):
            goals = [random_source.random() < share + bonus for _ in range(3)]
            records += repeat_with_each_user(str(number), *goals)[:size]
            values += goals[:size]
        reports.append(report_on(*records))
        outcomes.append(np.array(values, dtype=float))
    goal = reports[1].summary.overall.goal_completion
    difference = compare(*reports).overall.goal_completion
    assert (goal.n, difference.tasks, difference.test) == (sum(sizes), 24, "sign flip")
    assert (goal.low, goal.high) == pytest.approx(solve_interval(outcomes[1], tasks), abs=1e-9)
    low, high = solve_interval((1 + outcomes[1] - outcomes[0]) / 2, tasks)
    assert (difference.low, difference.high) == pytest.approx((2 * low - 1, 2 * high - 1), abs=1e-9)


@pytest.mark.parametrize("tasks", [3, 5, 10, 30])
@pytest.mark.parametrize("runs", [1, 5])
def test_intervals_over_few_tasks_hold_the_truth_as_often_as_they_say(tasks: int, runs: int):
    chance = Random(tasks)
    clusters = [number // runs for number in range(tasks * runs)]
    for rate in (0.2, 0.5, 0.8):
        # From tasks that are alike to tasks that always or never succeed.
        for correlation in (0.01, 0.3, 0.6, 0.99):
            spread = (1 - correlation) / correlation
            covered = 0
            for _ in range(1_000):
                ease = [chance.betavariate(rate * spread, (1 - rate) * spread) for _ in range(tasks)]
                low, high = share_interval(
                    [float(chance.random() < ease[task]) for task in clusters], clusters
                )
                assert 0 <= low < high <= 1
                covered += low <= rate <= high
            assert covered >= 920, (rate, correlation, covered)


@pytest.mark.parametrize(("tasks", "runs"), [(3, 5), (5, 4), (20, 3)])
def test_intervals_of_differences_hold_the_truth_as_often_as_they_say(tasks: int, runs: int):
    chance = Random(tasks)
    clusters = [number // runs for number in range(tasks * runs)]
    for gain in (0.0, 0.2, 0.5):
        covered = 0
        for _ in range(1_000):
            ease = [chance.uniform(0, 1 - gain) for _ in range(tasks)]
            differences = []
            for task in clusters:
                differences.append((chance.random() < ease[task] + gain) - (chance.random() < ease[task]))
            low, high = difference_interval([float(difference) for difference in differences], clusters) or (
                1,
                -1,
            )
            covered += low <= gain <= high
        assert covered >= 920, (gain, covered)
