"""Two reports over the same conversations: pairs, differences and their p values."""

from itertools import product
from math import comb
from operator import mul

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.milestones import compare, read_transcripts, score_transcripts
from tests.milestones.conversations import conversation, user
from tests.milestones.reported import (
    make_chain,
    make_talk,
    read_pair_table,
    repeat_task,
    repeat_with_each_user,
    report_goals,
    report_on,
    report_progress,
)


@pytest.mark.parametrize(("only_a", "only_b"), [(1, 8), (8, 1), (5, 5), (0, 5), (0, 0)])
def test_goal_completion_is_tested_by_mcnemar(only_a, only_b):
    a = report_goals(*[True] * only_a, *[False] * only_b, True)
    b = report_goals(*[False] * only_a, *[True] * only_b, True)
    n = only_a + only_b
    tail = sum(comb(n, i) for i in range(min(only_a, only_b) + 1))
    goal = compare(a, b).overall.goal_completion
    assert (goal.test, goal.p) == ("McNemar", min(1, 2 * tail / 2**n))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=1, max_size=8))
def test_progress_is_tested_by_flipping_signs(lengths):
    a, b = (report_progress(*side) for side in zip(*lengths, strict=True))
    differences = []
    for record_a, record_b in zip(a.conversations, b.conversations, strict=True):
        differences.append(record_b.progress_rate - record_a.progress_rate)
    all_signs = product((-1, 1), repeat=len(differences))
    sums = [sum(map(mul, signs, differences)) for signs in all_signs]
    extreme = sum(abs(total) >= abs(sum(differences)) - 1e-9 for total in sums)
    progress = compare(a, b).overall.progress_rate
    assert progress.p == pytest.approx(extreme / len(sums))
    assert progress.difference == pytest.approx(sum(differences) / len(differences))
    assert progress.low is None or progress.low <= progress.difference <= progress.high


@pytest.mark.parametrize(
    ("better", "worse", "tolerance"),
    [
        (20, 7, 0.005),  # too many to count all ways to flip the signs
        (300, 240, 0.02),  # and to flip each alone
    ],
)
def test_the_sign_flips_of_many_pairs_are_sampled(better, worse, tolerance):
    n = better + worse
    exact = 2 * sum(comb(n, i) for i in range(worse + 1)) / 2**n
    a = report_progress(*[0] * better, *[5] * worse)
    b = report_progress(*[5] * better, *[0] * worse)
    assert compare(a, b).overall.progress_rate.p == pytest.approx(exact, abs=tolerance)


def test_five_pairs_that_all_agree_show_no_difference():
    group = compare(report_goals(*[False] * 5), report_goals(*[True] * 5)).overall
    assert group.goal_completion.verdict == group.progress_rate.verdict == "no difference shown"
    assert group.goal_completion.difference == 1


def test_one_pair_has_no_interval():
    assert compare(report_goals(False), report_goals(True)).overall.goal_completion.low is None


def test_conversations_without_a_counterpart_are_counted_and_named():
    a = report_on(make_talk("a"), make_talk("b"), *repeat_task("7", True, True, use_case="refund"))
    task_7 = make_talk("another id", task="7", use_case="refund")
    b = report_on(make_talk("b"), make_talk("c"), task_7, make_talk("a", use_case="x"))
    forward, backward = compare(a, b), compare(b, a)
    assert (forward.overall.pairs, forward.conversations_a, forward.conversations_b) == (2, 4, 4)
    assert forward.only_a == backward.only_b == ("conversation a", "refund: task 7 (run 2)")
    assert forward.only_b == backward.only_a == ("conversation c", "x: conversation a")


def test_conversations_without_ids_are_paired_by_what_was_said():
    openings = ("my mug broke", "hello", "hello", "hello", "where is my parcel")
    chats = [[{"role": "user", "content": text}] for text in openings]
    answers = [[*chat, {"role": "assistant", "content": f"answer {n}"}] for n, chat in enumerate(chats)]
    all_of_them, without_first, without_second = (
        score_transcripts(make_chain("find"), read_transcripts(records)).report()
        for records in (answers, answers[1:], [answers[0], *answers[2:]])
    )
    first_missing = compare(all_of_them, without_first)
    assert (first_missing.only_a, first_missing.only_b) == (("conversation 0",), ())
    assert first_missing.overall.pairs == 4
    assert compare(without_second, all_of_them).only_b == ("conversation 1",)
    # Another agent: the openings are the same. Which of the three hellos is missing nobody knows.
    others = [[*chat, {"role": "assistant", "content": "no"}] for chat in (*chats[2:], chats[0])]
    other_agent = score_transcripts(make_chain("find"), read_transcripts(others)).report()
    comparison = compare(all_of_them, other_agent)
    assert comparison.only_a == ("conversation 1", "conversation 2", "conversation 3")
    assert comparison.only_b == ("conversation 0", "conversation 1")
    assert comparison.overall.pairs == 2


def test_pairs_with_an_undecided_side_are_left_out():
    group = compare(report_goals(True, None, False, True), report_goals(True, True, None, False)).overall
    for difference in (group.goal_completion, group.progress_rate):
        assert (difference.pairs, difference.left_out) == (2, 2)
    assert (group.pairs, group.split.both, group.split.only_a) == (4, 1, 1)


def test_runs_of_one_task_are_not_independent():
    # B completes in each of eight runs what A never does: in one task, in two, and in eight.
    def compare_tasks(*tasks: str, runs: int):
        sides = []
        for goal in (False, True):
            talks = []
            for task in tasks:
                talks.extend(repeat_task(task, *[goal] * runs))
            sides.append(report_on(*talks))
        return compare(*sides).overall

    goal = compare_tasks("1", runs=8).goal_completion
    assert (goal.pairs, goal.tasks, goal.test, goal.verdict) == (8, 1, "sign flip", "no difference shown")
    two_tasks = compare_tasks("1", "2", runs=4)
    assert two_tasks.goal_completion.p == 2 / 2**2
    assert two_tasks.progress_rate.verdict == "no difference shown"
    goal = compare_tasks(*"12345678", runs=1).goal_completion
    assert (goal.test, goal.verdict) == ("McNemar", "b better")


def test_kinds_of_users_of_one_task_are_not_independent():
    talks_a, talks_b = [], []
    for task in "1234":
        talks_a.extend(repeat_with_each_user(task, *[False] * 3, arm="a", run=1))
        talks_b.extend(repeat_with_each_user(task, *[True] * 3, arm="b", run=1))
    group = compare(report_on(*talks_a), report_on(*talks_b)).overall
    goal = group.goal_completion
    # For twelve independent pairs, p would be 2 / 2^12.
    assert (goal.pairs, goal.tasks, goal.test, goal.p) == (12, 4, "sign flip", 2 / 2**4)
    assert (group.progress_rate.tasks, group.progress_rate.p) == (4, 2 / 2**4)
    arms = read_pair_table(report_on(*talks_a, *talks_b))["a → b"]
    assert (arms["pairs"], arms["p"]) == ("12", f"{2 / 2**4:.2f}")


@pytest.mark.parametrize(
    ("a", "b", "verdict"), [(3, 3, "no difference shown"), (0, 9, "b better"), (9, 0, "a better")]
)
def test_a_difference_that_is_equal_in_all_pairs_has_an_interval(a, b, verdict):
    progress = compare(report_progress(*[a] * 85), report_progress(*[b] * 85)).overall.progress_rate
    other_pairs = (
        3.954569 / 88.954569
    )  # t² / (n + t²) of 84 degrees of freedom: the share of pairs that may differ, from -1 to 1
    difference = progress.difference
    interval = (difference - other_pairs * (difference + 1), difference + other_pairs * (1 - difference))
    assert (progress.low, progress.high) == pytest.approx(interval, abs=1e-6)
    assert progress.verdict == verdict


def test_p_is_corrected_for_the_number_of_use_cases():
    def report_use_cases(goal):
        groups = [("one", goal)] * 6 + [("two", goal)] * 7 + [("same", True)] * 6
        talks = []
        for number, (use_case, completed) in enumerate(groups):
            talks.append(make_talk(str(number), completed, use_case=use_case))
        return report_on(*talks)

    comparison = compare(report_use_cases(False), report_use_cases(True))
    goals = {name: group.goal_completion for name, group in comparison.use_cases.items()}
    # Alone, p is 2 / 2^7 for seven pairs and 2 / 2^6 for six; the smallest of three is multiplied by 3, the next by 2.
    assert (goals["two"].p, goals["two"].verdict) == (pytest.approx(3 * 2 / 2**7), "b better")
    assert (goals["one"].p, goals["one"].verdict) == (pytest.approx(2 * 2 / 2**6), "no difference shown")
    assert goals["same"].p == 1
    assert comparison.overall.goal_completion.verdict == "b better"


def test_arms_are_compared_in_pairs_and_p_is_corrected_for_their_number():
    talks = []
    for arm, goal, runs in (("a", False, 6), ("b", True, 6), ("c", True, 9)):
        for number in range(runs):
            about = {"arm": arm, "run": 1 + number % 2, "scenario": str(number // 2)}
            talks.append(make_talk(f"{arm}{number}", goal, about=about, task=str(number)))
    rows = read_pair_table(report_on(*talks))
    assert [cells["pairs"] for cells in rows.values()] == ["6", "6", "6"]
    assert (rows["a → b"]["p"], rows["a → b"]["better"]) == (f"{3 * 2 / 2**6:.3f}", "not shown")
    assert rows["b → c"]["p"] == "1.00"


def test_the_customers_own_goal_is_compared_if_it_is_known():
    missed, paid = (report_goals(*[goal] * 8, about={"goal": "pay"}) for goal in (False, True))
    goal = compare(missed, paid).overall.goal_reached
    assert (goal.a, goal.b, goal.p, goal.verdict) == (0, 1, 2 / 2**8, "b better")
    assert compare(report_goals(True), report_goals(True)).overall.goal_reached is None


def test_different_graphs_are_named():
    talks = [conversation(user("hi"), id=name, use_case=name) for name in "ghi"]
    a = score_transcripts({name: make_chain("find") for name in "ghi"}, talks).report()
    changed = {"g": make_chain("find"), "h": make_chain("find", "pay"), "i": make_chain("find")}
    [graphs] = compare(a, score_transcripts(changed, talks).report()).different_graphs
    assert (graphs.a, graphs.b) == ("h", "h")
    assert compare(a, a).different_graphs == ()


def test_broken_records_are_counted_and_stand_ins_named():
    a = report_on(make_talk("0"), *read_transcripts([{"messages": []}] * 2))
    comparison = compare(a.model_copy(update={"stand_ins": ("the judge",)}), report_goals(True))
    assert (comparison.broken_a, comparison.broken_b) == (2, 0)
    assert comparison.stand_ins == ("the judge",)


def test_runs_are_paired_within_an_arm_if_both_reports_have_it():
    def report_arms(**goals):
        return report_on(*(make_talk(arm, goal, task="t", about={"arm": arm}) for arm, goal in goals.items()))

    goal = compare(report_arms(old=True, new=False), report_arms(new=False)).overall.goal_completion
    assert (goal.pairs, goal.a, goal.b) == (1, 0, 0)
    assert compare(report_arms(old=True), report_arms(new=True, old=True)).only_b == ("task t, new",)
    assert compare(report_arms(old=True), report_arms(new=True)).overall.pairs == 1
