"""Two reports over the same conversations: pairs, and differences that are there or are not."""

from __future__ import annotations

from itertools import product
from math import comb
from operator import mul

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.milestones import compare, read_transcripts, score_transcripts
from tests.milestones.conversations import conversation, user
from tests.milestones.reported import of, of_each_kind, reported, runs, steps, talk, walked


@pytest.mark.parametrize(("only_a", "only_b"), [(1, 8), (8, 1), (5, 5), (0, 5), (0, 0)])
def test_goal_completion_is_tested_by_mcnemar(only_a, only_b):
    a = of(*[True] * only_a, *[False] * only_b, True)
    b = of(*[False] * only_a, *[True] * only_b, True)
    n = only_a + only_b
    tail = sum(comb(n, i) for i in range(min(only_a, only_b) + 1))
    found = compare(a, b).overall.goal_completion
    assert (found.test, found.p) == ("McNemar", min(1, 2 * tail / 2**n))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=1, max_size=8))
def test_progress_is_tested_by_turning_signs(lengths):
    a, b = (walked(*side) for side in zip(*lengths, strict=True))
    rates = [[one.progress_rate for one in side.conversations] for side in (a, b)]
    values = [two - one for one, two in zip(*rates, strict=True)]
    sums = [sum(map(mul, signs, values)) for signs in product((-1, 1), repeat=len(values))]
    as_far = sum(abs(one) >= abs(sum(values)) - 1e-9 for one in sums)
    found = compare(a, b).overall.progress_rate
    assert found.p == pytest.approx(as_far / len(sums))
    assert found.difference == pytest.approx(sum(values) / len(values))
    assert found.low is None or found.low <= found.difference <= found.high


def test_signs_that_are_too_many_to_count_are_sampled():
    # 20 against 7 are too many to count one by one; 300 against 240 are dealt into heaps.
    for up, down, near in ((20, 7, 0.005), (300, 240, 0.02)):
        n = up + down
        exact = 2 * sum(comb(n, i) for i in range(down + 1)) / 2**n
        found = compare(walked(*[0] * up, *[5] * down), walked(*[5] * up, *[0] * down))
        assert found.overall.progress_rate.p == pytest.approx(exact, abs=near)


def test_a_few_pairs_are_no_proof_however_they_agree():
    found = compare(of(*[False] * 5), of(*[True] * 5)).overall
    assert found.goal_completion.verdict == found.progress_rate.verdict == "no difference shown"
    assert found.goal_completion.difference == 1
    assert compare(of(False), of(True)).overall.goal_completion.low is None


def test_what_has_no_counterpart_is_counted_and_named():
    a = reported(talk("a"), talk("b"), *runs("7", True, True, use_case="refund"))
    seventh = talk("whatever its run is called", task="7", use_case="refund")
    b = reported(talk("b"), talk("c"), seventh, talk("a", use_case="x"))
    there, back = compare(a, b), compare(b, a)
    assert (there.overall.pairs, there.conversations_a, there.conversations_b) == (2, 4, 4)
    assert there.only_a == back.only_b == ("conversation a", "refund: task 7 (run 2)")
    assert there.only_b == back.only_a == ("conversation c", "x: conversation a")


def test_what_one_of_the_two_does_not_know_is_left_out():
    found = compare(of(True, None, False, True), of(True, True, None, False)).overall
    for figure in (found.goal_completion, found.progress_rate):
        assert (figure.pairs, figure.left_out) == (2, 2)
    assert (found.pairs, found.split.both, found.split.only_a) == (4, 1, 1)


def test_runs_of_one_task_are_no_independent_proof():
    # B completes in each of eight runs what A never does; of one task, and of two. Eight tasks are proof.
    one = compare(*(reported(*runs("1", *[goal] * 8)) for goal in (False, True)))
    goal = one.overall.goal_completion
    assert (goal.pairs, goal.tasks, goal.test, goal.verdict) == (8, 1, "sign flip", "no difference shown")
    sides = ([*runs("1", *[goal] * 4), *runs("2", *[goal] * 4)] for goal in (False, True))
    two = compare(*(reported(*side) for side in sides))
    assert two.overall.goal_completion.p == 2 / 2**2
    assert two.overall.progress_rate.verdict == "no difference shown"
    eight = compare(of(*[False] * 8), of(*[True] * 8)).overall.goal_completion
    assert (eight.test, eight.verdict) == ("McNemar", "b better")


def test_kinds_of_users_of_one_task_are_no_independent_proof():
    a, b = (
        [one for n in range(4) for one in of_each_kind(str(n), *[goal] * 3, arm=arm, run=1)]
        for arm, goal in (("a", False), ("b", True))
    )
    (arms,) = reported(*a, *b).summary.comparisons
    for found in (compare(reported(*a), reported(*b)).overall, arms.overall):
        goal = found.goal_completion
        # Were they twelve, p would be 2 / 2^12.
        assert (goal.pairs, goal.tasks, goal.test, goal.p) == (12, 4, "sign flip", 2 / 2**4)
        assert (found.progress_rate.tasks, found.progress_rate.p) == (4, 2 / 2**4)


@pytest.mark.parametrize(("a", "b"), [(3, 3), (0, 9), (9, 0)])
def test_a_difference_that_is_the_same_everywhere_has_an_interval(a, b):
    found = compare(walked(*[a] * 85), walked(*[b] * 85)).overall.progress_rate
    others = 3.841459 / 88.841459  # z² / (n + z²): the share of pairs that may be others, from -1 to 1
    ends = (
        found.difference - others * (found.difference + 1),
        found.difference + others * (1 - found.difference),
    )
    assert (found.low, found.high) == pytest.approx(ends, abs=1e-6)
    assert found.verdict == {3: "no difference shown", 0: "b better", 9: "a better"}[a]


def test_p_of_use_cases_is_corrected_for_their_number():
    def side(goal):
        groups = [("one", goal)] * 6 + [("two", goal)] * 7 + [("same", True)] * 6
        return reported(*(talk(str(n), done, use_case=use) for n, (use, done) in enumerate(groups)))

    comparison = compare(side(False), side(True))
    # Seven pairs all one way are 2 / 2^7 alone, and 3 times that as the smallest of three; six 2 / 2^6, and twice that.
    goals = {name: group.goal_completion for name, group in comparison.use_cases.items()}
    assert (goals["two"].p, goals["two"].verdict) == (pytest.approx(3 * 2 / 2**7), "b better")
    assert (goals["one"].p, goals["one"].verdict) == (pytest.approx(2 * 2 / 2**6), "no difference shown")
    assert goals["same"].p == 1
    assert comparison.overall.goal_completion.verdict == "b better"


def test_arms_are_compared_in_pairs_and_p_is_corrected_for_their_number():
    talks = [
        talk(f"{arm}{n}", goal, about={"arm": arm, "run": 1 + n % 2, "scenario": str(n // 2)}, task=str(n))
        for arm, goal, scenarios in (("a", False, 6), ("b", True, 6), ("c", True, 9))
        for n in range(scenarios)
    ]
    found = {(each.a, each.b): each.overall for each in reported(*talks).summary.comparisons}
    assert [group.pairs for group in found.values()] == [6, 6, 6]
    # 2 / 2^6 = 0.031 alone.
    goal = found["a", "b"].goal_completion
    assert (goal.p, goal.verdict) == (pytest.approx(3 * 2 / 2**6), "no difference shown")
    assert found["b", "c"].goal_completion.p == 1


def test_the_customers_own_goal_is_compared_apart_from_end():
    goal = compare(*(of(*[paid] * 8, about={"goal": "pay"}) for paid in (False, True))).overall.goal_reached
    assert (goal.a, goal.b, goal.p, goal.verdict) == (0, 1, 2 / 2**8, "b better")
    assert compare(of(True), of(True)).overall.goal_reached is None


def test_graphs_that_differ_are_named():
    said = [conversation(user("hi"), id=name, use_case=name) for name in "ghi"]
    a = score_transcripts({name: steps("find") for name in "ghi"}, said).report()
    other = {"g": steps("find"), "h": steps("find", "pay"), "i": steps("find")}
    assert compare(a, score_transcripts(other, said).report()).different_graphs == ("h",)
    assert compare(a, a).different_graphs == ()


def test_records_that_could_not_be_scored_are_counted_and_stand_ins_told():
    lost = reported(talk("0"), *read_transcripts([{"messages": []}] * 2))
    comparison = compare(lost.model_copy(update={"stand_ins": ("the judge",)}), of(True))
    assert (comparison.broken_a, comparison.broken_b) == (2, 0)
    assert comparison.stand_ins == ("the judge",)
