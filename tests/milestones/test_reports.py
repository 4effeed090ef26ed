"""The figures over many conversations, and the report in a file."""

from __future__ import annotations

import stat
from math import sqrt
from random import Random
from statistics import fmean, pstdev

import pytest

from arq_graph.errors import InputError
from arq_graph.milestones import (
    MilestoneGraph,
    read_report,
    read_transcripts,
    score_transcripts,
    write_report,
)
from tests.milestones.conversations import called, conversation, user
from tests.milestones.reported import of, of_each_kind, reported, runs, shop, steps, talk, walked


def test_what_is_undecided_is_no_failure_and_the_truth_lies_between_its_two_ends():
    summary = of(True, False, None, None).summary.overall
    goal = summary.goal_completion
    assert (goal.count, goal.n, goal.unknown, goal.rate) == (1, 2, 2, 0.5)
    # One of four if both undecided ones missed the goal, three of four if both completed it.
    assert (summary.goal_at_least.rate, summary.goal_at_most.rate) == (0.25, 0.75)
    assert summary.progress_rate.mean == pytest.approx((1 + 1 / 3) / 2)
    assert summary.progress_at_least.mean == pytest.approx((1 + 1 / 3 + 1 / 3 + 1 / 3) / 4)
    assert summary.progress_at_most.mean == pytest.approx((1 + 1 / 3 + 1 + 1) / 4)
    assert summary.stops == {"find": 1}
    decided = of(True, False).summary.overall
    assert decided.goal_at_least == decided.goal_at_most == decided.goal_completion


def test_a_graph_that_asks_for_nothing_is_in_neither_rate():
    graphs = {"none": MilestoneGraph.from_actions([]), "shop": shop()}
    said = [conversation(user("hello"), id="n", use_case="none"), talk("a", use_case="shop")]
    summary = score_transcripts(graphs, said).report().summary.overall
    assert summary.conversations == 2
    assert summary.nothing_to_complete == summary.goal_completion.unknown == 1
    assert summary.goal_completion.n == summary.progress_rate.n == summary.progress_at_least.n == 1


@pytest.mark.parametrize(
    ("count", "n", "ends"),
    [
        # z = 1.959964, z² = 3.841459: the middle is (8 + 1.920729) / 13.841459 = 0.716740, and half the width is
        # 1.959964 sqrt(8 × 2 / 10 + 0.960365) / 13.841459 = 1.959964 × 1.600114 / 13.841459 = 0.226578.
        (8, 10, (0.490162, 0.943318)),
        # For 0 of n the upper end is z² / (n + z²) = 3.841459 / 13.841459.
        (0, 10, (0.0, 0.277533)),
        (10, 10, (1 - 0.277533, 1.0)),
    ],
)
def test_goal_completion_has_wilsons_interval(count, n, ends):
    goal = of(*[True] * count, *[False] * (n - count)).summary.overall.goal_completion
    assert (goal.low, goal.high) == pytest.approx(ends, abs=1e-6)


def test_ten_runs_of_a_task_are_no_surer_than_one():
    goals = [True] * 14 + [False] * 6
    once = reported(*(talk(str(n), goal, task=str(n)) for n, goal in enumerate(goals)))
    often = reported(*(one for n, goal in enumerate(goals) for one in runs(str(n), *[goal] * 10)))
    alike = reported(*runs("a", *[True] * 50))
    first, second, third = (each.summary.overall.goal_completion for each in (once, often, alike))
    assert (second.low, second.high) == pytest.approx((first.low, first.high), abs=0.05)
    assert (third.n, third.high) == (50, 1)
    assert third.low == pytest.approx(0.2065, abs=1e-4)  # as of one success in one task


def test_a_task_with_three_kinds_of_users_is_one_task_and_three_scenarios():
    goals = [True] * 14 + [False] * 6
    once = reported(*(talk(str(n), goal) for n, goal in enumerate(goals)))
    each = [one for n, goal in enumerate(goals) for one in of_each_kind(str(n), *[goal] * 3)]
    first, second = (report.summary.overall.goal_completion for report in (once, reported(*each)))
    assert (second.n, second.low, second.high) == pytest.approx((60, first.low, first.high), abs=0.05)
    # By kind there is one of each task, so that the interval is Wilson's.
    helpful = reported(*each[::3]).summary.overall.goal_completion
    assert (helpful.low, helpful.high) == (first.low, first.high)
    twice = reported(*(one for run in (1, 2) for one in of_each_kind("a", True, run == 1, False, run=run)))
    assert twice.summary.overall.pass_hat_k == pytest.approx({1: (1 + 1 / 2 + 0) / 3, 2: 1 / 3})


@pytest.mark.parametrize(
    ("report", "mean", "ends"),
    [
        # z² / (n + z²) = 3.841459 / 12.841459
        (walked(*[0] * 9), 0, (0, 0.299145)),
        # z = 1.959964: the middle is (n / 3 + z² / 2) / (n + z²) = (1.666667 + 1.920729) / 8.841459 = 0.405747, half
        # the width z sqrt(5 × 1/3 × 2/3 + z² / 4) / (n + z²) = 1.959964 × 1.439262 / 8.841459 = 0.319054.
        (reported(*(talk(str(n), False) for n in range(5))), 1 / 3, (0.086693, 0.724801)),
        # Of one task, as of one value: z² / (1 + z²) above 0.
        (reported(*runs("a", *[True] * 5)), 1, (1 - 0.793450, 1)),
    ],
)
def test_a_mean_that_is_the_same_everywhere_is_as_sure_as_its_tasks_are_many(report, mean, ends):
    progress = report.summary.overall.progress_rate
    assert (progress.mean, progress.low, progress.high) == pytest.approx((mean, *ends), abs=1e-6)


@pytest.mark.parametrize("n", [40, 300])
def test_the_interval_of_a_mean_is_as_wide_as_theory_says(n):
    chance = Random(n)
    report = walked(*(chance.randrange(10) for _ in range(n)))  # above 256 in heaps
    values = [one.progress_rate for one in report.conversations]
    mean = report.summary.overall.progress_rate
    half = 1.96 * pstdev(values) / sqrt(n)
    assert mean.mean == pytest.approx(fmean(values))
    assert mean.low == pytest.approx(fmean(values) - half, abs=0.2 * half)
    assert mean.high == pytest.approx(fmean(values) + half, abs=0.2 * half)


def test_pass_hat_k_is_told_where_tasks_were_run_more_than_once():
    for talks in ([talk("a", task="a"), talk("b", False, task="b")], [talk("a"), talk("a")]):
        assert reported(*talks).summary.overall.pass_hat_k == {}
    many = reported(*runs("a", *[True, False] * 100)).summary.overall
    assert (max(many.pass_hat_k), many.pass_hat_k[1]) == (16, 0.5)


def test_a_task_of_a_use_case_with_an_undecided_run_is_in_no_pass_hat_k():
    said = [
        *runs("1", True, True, None, use_case="refund"),
        *runs("1", False, True, True, use_case="exchange"),
    ]
    assert list(reported(*said).summary.use_cases) == ["exchange", "refund"]
    summary = reported(*said).summary.overall
    assert summary.pass_hat_k == pytest.approx({1: 2 / 3, 2: 1 / 3, 3: 0})
    assert summary.pass_hat_k_undecided == 1


def test_calls_are_counted_and_where_conversations_stop_most_first():
    twice = conversation(user("1"), called("find", id=1), called("find", id=1), called("look"), id="a")
    ends = [conversation(user("1"), called("buy"), id=str(n)) for n in range(2)]
    report = score_transcripts(steps("buy", "find"), [twice, *ends]).report()
    summary = report.summary.overall
    assert (summary.turns.mean, summary.calls.mean) == (1, 5 / 3)
    assert (summary.wasted_calls.mean, summary.repeated_calls.mean) == (1, 1 / 3)
    assert list(summary.stops.items()) == [("buy", 2), ("Start", 1)]


def test_how_goal_completion_goes_with_the_recorded_reward():
    told = [(True, 1.0), (True, 0.0), (False, 0.9999999), (False, 0.5), (None, 1.0), (True, None)]
    reward = reported(*(talk("x", goal, reward=reward) for goal, reward in told)).summary.overall.reward
    assert (reward.both, reward.only_a, reward.only_b, reward.neither, reward.rate) == (1, 1, 1, 1, 0.5)
    for odd in (float("inf"), float("nan"), "1", [1]):
        assert reported(talk("a", reward=odd)).summary.overall.reward is None


def test_what_the_customer_came_for_is_told_apart_from_any_road_to_end():
    about = {"goal": "pay", "arm": "guided", "user": "helpful"}
    report = reported(talk("a", about=about), talk("b", False, about=about), talk("c", None, about=about))
    unsure = reported(talk("d", None, about={"goal": "Given up"})).summary.overall.goal_reached
    assert [one.goal_reached for one in report.conversations] == [True, False, False]
    reached = report.summary.overall.goal_reached
    assert (reached.count, reached.n, reached.unknown, unsure.unknown) == (1, 3, 0, 1)
    assert report.summary.arms_by_user["guided"]["helpful"].goal_reached == reached


def test_a_report_is_read_from_its_file_as_it_was_written(tmp_path):
    said = [
        talk("a", use_case="x", reward=1),
        *runs("1", True, False, None, about={"arm": "b", "goal": "pay"}),
    ]
    written = reported(*said, *read_transcripts([{"messages": []}]))
    file = tmp_path / "report.json"
    write_report(file, written)
    assert read_report(file) == written


def test_a_report_replaces_the_one_before_and_leaves_nothing_else(tmp_path):
    file, link = tmp_path / "report.json", tmp_path / "latest.json"
    file.write_text("old")
    file.chmod(0o600)
    link.symlink_to(file)
    write_report(link, reported(talk("\ud800")))  # a name that is no UTF-8
    assert read_report(file).conversations[0].id == "\ufffd"
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(one.name for one in tmp_path.iterdir()) == ["latest.json", "report.json"]
    for place in (tmp_path / "none" / "report.json", tmp_path):
        with pytest.raises(InputError, match="cannot be written"):
            write_report(place, of())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"schema": 1}', "report.json: isn't a report of schema 1"),
        (b'[{"schema": 1}]', "report.json: isn't a report"),
        (b'{"schema": 2, "conversations": []}', "schema: Input should be 1"),
        (b'{"schema": 1, "conversations": [{"id": "a"}]}', "conversations.0.goal_completed: Field required"),
        (b'{"schema": 1, "conversations": [], "missing": NaN}', "missing: Input should be a finite number"),
        (b'{"schema": 1,\n "conversations": [', "Invalid JSON: EOF while parsing a list at line 2"),
        (b"\xff\xfe", "report.json cannot be read: 'utf-8' codec can't decode"),
        (b"[" * 100_000, "Invalid JSON: recursion limit"),
    ],
)
def test_the_error_about_a_broken_report_names_the_file_and_the_problem(tmp_path, content, said):
    (tmp_path / "report.json").write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_report(tmp_path / "report.json")
    assert said in str(refused.value)
    with pytest.raises(InputError, match=r"none\.json cannot be read: No such file"):
        read_report(tmp_path / "none.json")
