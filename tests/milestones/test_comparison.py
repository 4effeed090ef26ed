"""Two reports over the same conversations: pairs, and differences that are there or are not."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.milestones import MilestoneGraph
from arq_graph.milestones.reports.comparison import Comparison, compare
from arq_graph.milestones.reports.records import BrokenConversation, graph_record
from arq_graph.milestones.reports.statistics import mcnemar
from arq_graph.milestones.reports.summary import report
from tests.milestones.report_records import measured, runs


def of(*goals, **more):
    """A report over conversations 0, 1, … of which the goal was completed or not."""
    return report([measured(str(n), goal, **more) for n, goal in enumerate(goals)])


def test_equal_runs_show_no_difference():
    whole = of(*[True, False, True] * 40)
    overall = compare(whole, whole).overall
    for found in (overall.goal_completion, overall.progress_rate):
        assert found.verdict == "no difference shown"
        assert found.difference == found.low == found.high == 0
        assert found.p == 1
        assert found.pairs == 120


def test_a_real_difference_is_found_and_which_is_better():
    a, b = of(*[True] * 10 + [False] * 20), of(*[True] * 22 + [False] * 8)
    better = compare(a, b).overall
    assert better.goal_completion.verdict == better.progress_rate.verdict == "b better"
    assert better.goal_completion.a == pytest.approx(10 / 30)
    assert better.goal_completion.b == pytest.approx(22 / 30)
    assert better.goal_completion.difference == pytest.approx(12 / 30)
    assert 0 < better.goal_completion.low < 12 / 30 < better.goal_completion.high
    assert better.goal_completion.p == mcnemar(0, 12)
    worse = compare(b, a).overall
    assert worse.goal_completion.verdict == worse.progress_rate.verdict == "a better"
    assert worse.split.only_a == better.split.only_b == 12
    assert (better.split.both, better.split.neither) == (10, 8)


def test_a_few_pairs_are_no_proof_however_they_agree():
    found = compare(of(*[False] * 5), of(*[True] * 5)).overall
    assert found.goal_completion.verdict == found.progress_rate.verdict == "no difference shown"
    assert found.goal_completion.difference == 1
    assert found.goal_completion.p == 2 / 2**5
    assert compare(of(False), of(True)).overall.goal_completion.low is None


def test_a_difference_of_progress_is_found_where_no_goal_was_completed():
    chance = Random(1)
    ways = [(chance.random() / 2, chance.random() / 5) for _ in range(60)]
    a = report([measured(str(n), False, way) for n, (way, _) in enumerate(ways)])
    b = report([measured(str(n), False, way + more) for n, (way, more) in enumerate(ways)])
    overall = compare(a, b).overall
    assert overall.goal_completion.verdict == "no difference shown"
    assert overall.progress_rate.verdict == "b better"


def test_what_has_no_counterpart_is_counted_and_named():
    a = report([measured("a"), measured("b"), *runs("7", True, True, use_case="refund")])
    b = report(
        [measured("b"), measured("c"), *runs("7", True, use_case="refund"), measured("a", use_case="x")]
    )
    comparison = compare(a, b)
    assert comparison.overall.pairs == 2
    assert comparison.only_a == ("conversation a", "refund: task 7 (run 2)")
    assert comparison.only_b == ("conversation c", "x: conversation a")
    assert (comparison.conversations_a, comparison.conversations_b) == (4, 4)


def test_a_task_is_paired_whatever_its_runs_are_called():
    a = report([measured("first", task="7"), measured("second", False, task="7")])
    b = report([measured("x", task="7"), measured("y", False, task="7")])
    comparison = compare(a, b)
    assert comparison.runs == 2
    assert (comparison.overall.split.both, comparison.overall.split.neither) == (1, 1)


def test_nothing_in_common_is_no_difference():
    comparison = compare(of(True), report([measured("x")]))
    assert comparison.overall.pairs == comparison.runs == 0
    for found in (comparison.overall.goal_completion, comparison.overall.progress_rate):
        assert found.verdict == "no difference shown"
        assert found.difference is found.p is found.a is None


def test_what_one_of_the_two_does_not_know_is_left_out():
    found = compare(of(True, None, False, True), of(True, True, None, False)).overall
    assert found.pairs == 4
    assert (found.goal_completion.pairs, found.goal_completion.left_out) == (2, 2)
    assert (found.progress_rate.pairs, found.progress_rate.left_out) == (2, 2)
    assert (found.split.both, found.split.only_a) == (1, 1)


def test_runs_of_one_task_are_no_independent_proof():
    # B completes in each of eight runs what A never does; of one task, and of two. Eight tasks are proof.
    one = compare(report(runs("1", *[False] * 8)), report(runs("1", *[True] * 8)))
    assert one.runs == 8
    assert one.overall.goal_completion.tasks == 1
    assert one.overall.goal_completion.test == "sign flip"
    assert one.overall.goal_completion.verdict == "no difference shown"
    two = compare(
        report([*runs("1", *[False] * 4), *runs("2", *[False] * 4)]),
        report([*runs("1", *[True] * 4), *runs("2", *[True] * 4)]),
    )
    assert two.overall.goal_completion.p == 2 / 2**2
    assert two.overall.progress_rate.verdict == "no difference shown"
    eight = compare(of(*[False] * 8), of(*[True] * 8)).overall.goal_completion
    assert (eight.test, eight.verdict) == ("McNemar", "b better")


def test_p_of_use_cases_is_corrected_for_their_number():
    def side(goal):
        records = [measured(f"{u}{n}", goal, use_case=u) for u in ("one", "two") for n in range(6)]
        return report([*records, *(measured(f"same{n}", use_case="same") for n in range(6))])

    comparison = compare(side(False), side(True))
    # Six pairs all one way: 2 / 2^6 = 0.031 alone, and 3 times that as the smallest of three.
    assert comparison.use_cases["one"].goal_completion.p == pytest.approx(3 * 2 / 2**6)
    assert comparison.use_cases["one"].goal_completion.verdict == "no difference shown"
    assert comparison.use_cases["same"].goal_completion.p == 1
    assert comparison.overall.goal_completion.verdict == "b better"
    alone = compare(of(*[False] * 6, use_case="one"), of(*[True] * 6, use_case="one"))
    assert alone.use_cases["one"] == alone.overall
    assert alone.overall.goal_completion.verdict == "b better"


def test_graphs_that_differ_are_named():
    def graph(*tools):
        return graph_record(MilestoneGraph.from_actions([{"name": tool, "arguments": {}} for tool in tools]))

    records = [measured("a", graph="g"), measured("b", graph="h"), measured("c", graph="i")]
    other = [*records[:2], measured("c", graph="j")]
    a = report(records, graphs={"g": graph("find"), "h": graph("find")})
    b = report(other, graphs={"g": graph("find"), "h": graph("find", "pay"), "unused": graph()})
    assert compare(a, b).different_graphs == ("h", "i / j")
    assert compare(a, a).different_graphs == ()


def test_records_that_could_not_be_scored_are_counted():
    stopped = BrokenConversation(error="stopped by max_calls", ended="budget")
    lost = report([measured("0")], [*[BrokenConversation(error="cut off")] * 2, stopped])
    assert (compare(lost, of(True)).broken_a, compare(of(True), lost).broken_b) == (2, 2)


sides = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["1", "2", None]), st.sampled_from([True, False, None])),
    max_size=10,
)


@settings(max_examples=60)
@given(sides, sides)
def test_swapping_the_two_swaps_all_that_is_said(one, other):
    a, b = (
        report([measured("x", goal, use_case=u, task=t, turns=n) for n, (u, t, goal) in enumerate(side)])
        for side in (one, other)
    )
    there, back = compare(a, b), compare(b, a)
    assert Comparison.model_validate_json(there.model_dump_json()) == there
    assert there.overall.pairs + len(there.only_a) == len(one)
    assert there.overall.pairs + len(there.only_b) == len(other)
    assert (there.only_a, there.only_b) == (back.only_b, back.only_a)
    found, turned = there.overall.goal_completion, back.overall.goal_completion
    assert (found.a, found.b, found.p) == (turned.b, turned.a, turned.p)
    assert {found.verdict, turned.verdict} in ({"no difference shown"}, {"a better", "b better"})
