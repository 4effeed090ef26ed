"""The figures' intervals and tests are those of scipy."""

from __future__ import annotations

from random import Random
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from arq_graph.milestones import compare
from tests.milestones.reported import (
    repeat_task,
    repeat_with_each_user,
    report_goals,
    report_on,
    report_progress,
)

pytestmark = pytest.mark.slow

OUTCOMES = st.lists(st.booleans(), min_size=1, max_size=60)
PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)
LENGTHS = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=10)


@settings(max_examples=30, deadline=None)
@given(OUTCOMES)
def test_wilsons_interval(outcomes: list[bool]):
    goal = report_goals(*outcomes).summary.overall.goal_completion
    theirs = stats.binomtest(sum(outcomes), len(outcomes)).proportion_ci(method="wilson")
    assert (goal.low, goal.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(PAIRS)
def test_mcnemars_exact_test(pairs: list[tuple[bool, bool]]):
    a, b = (report_goals(*side) for side in zip(*pairs, strict=True))
    only_a, only_b = sum(one and not two for one, two in pairs), sum(two and not one for one, two in pairs)
    p = stats.binomtest(only_a, only_a + only_b).pvalue if only_a + only_b else 1.0
    assert compare(a, b).overall.goal_completion.p == pytest.approx(p)


@settings(max_examples=10, deadline=None)
@given(LENGTHS)
def test_the_permutation_test_of_whole_tasks(lengths: list[tuple[int, int]]):
    # Each task is run twice with each side: what is turned is the sign of a task's sum.
    a, b = (
        report_on(*(run for goals in side for run in goals))
        for side in zip(
            *(
                (repeat_task(str(n), *(one > 5, two > 5)), repeat_task(str(n), *(two > 3, one > 7)))
                for n, (one, two) in enumerate(lengths)
            ),
            strict=True,
        )
    )
    found = compare(a, b).overall.goal_completion
    sums = [
        [
            sum(bool(one.goal_completed) for one in side.conversations if one.task == str(n))
            for n in range(len(lengths))
        ]
        for side in (a, b)
    ]
    theirs = stats.permutation_test(
        sums, lambda one, two: fmean(two) - fmean(one), permutation_type="samples", n_resamples=np.inf
    )
    assert found.test == "sign flip"
    assert found.p == pytest.approx(theirs.pvalue)


def test_the_bootstrap_of_whole_tasks_with_several_kinds_of_users():
    chance = Random(0)
    # 24 tasks that are easy or hard for all of their users, of whom some have one kind, some three.
    many = [chance.choice((1, 3)) for _ in range(24)]
    ease = [chance.random() for _ in many]
    sides = [[[chance.random() < one + more for _ in range(3)] for one in ease] for more in (0, 0.3)]
    a, b = (
        report_on(
            *(
                one
                for n, goals in enumerate(side)
                for one in repeat_with_each_user(str(n), *goals)[: many[n]]
            ),
        )
        for side in sides
    )
    sums = [np.array([sum(goals[:of]) for goals, of in zip(side, many, strict=True)]) for side in sides]
    goal, difference = b.summary.overall.goal_completion, compare(a, b).overall.goal_completion
    assert (goal.n, difference.tasks, difference.test) == (sum(many), 24, "sign flip")
    for found, totals in ((goal, sums[1]), (difference, sums[1] - sums[0])):
        theirs = stats.bootstrap(
            (totals, np.array(many)),
            lambda total, size, axis: np.sum(total, axis=axis) / np.sum(size, axis=axis),
            paired=True,
            method="percentile",
            n_resamples=20_000,
            rng=np.random.default_rng(0),
        ).confidence_interval
        assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.025)


@pytest.mark.parametrize(("a", "b", "times"), [(0, 0, 1), (4, 4, 2), (9, 2, 3), (0, 9, 1)])
def test_wilsons_interval_where_a_bootstrap_finds_no_spread(a: int, b: int, times: int):
    # A step is an eleventh of the way, and 11 conversations that went k steps make k successes.
    n = 11 * times
    one, two = (report_progress(*[length] * n) for length in (a, b))
    mean, found = two.summary.overall.progress_rate, compare(one, two).overall.progress_rate
    theirs = stats.binomtest(b * times, n).proportion_ci(method="wilson")
    assert (mean.low, mean.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    others = stats.binomtest(0, n).proportion_ci(method="wilson").high
    d = (b - a) / 11
    assert (found.low, found.high) == pytest.approx((d + others * (-1 - d), d + others * (1 - d)), abs=1e-9)
