"""The figures over many conversations, and the report in a file."""

import stat
from math import sqrt
from random import Random
from statistics import fmean, pstdev

import pytest

from arq_graph.errors import InputError
from arq_graph.milestones import (
    MilestoneGraph,
    parse_milestones,
    read_report,
    read_transcripts,
    score_transcripts,
    write_report,
)
from arq_graph.milestones.reports.tables import build_tables
from tests.milestones.conversations import called, conversation, user
from tests.milestones.reported import (
    make_chain,
    make_shop_graph,
    make_talk,
    repeat_task,
    repeat_with_each_user,
    report_goals,
    report_on,
    report_progress,
)

TWENTY_GOALS = [True] * 14 + [False] * 6


def test_undecided_goals_are_not_failures_and_widen_the_range():
    summary = report_goals(True, False, None, None).summary.overall
    goal = summary.goal_completion
    assert (goal.count, goal.n, goal.unknown, goal.rate) == (1, 2, 2, 0.5)
    # One of four if both undecided ones missed the goal, three of four if both completed it.
    assert (summary.goal_at_least.rate, summary.goal_at_most.rate) == (0.25, 0.75)
    assert summary.progress_rate.mean == pytest.approx((1 + 1 / 3) / 2)
    assert summary.progress_at_least.mean == pytest.approx((1 + 1 / 3 + 1 / 3 + 1 / 3) / 4)
    assert summary.progress_at_most.mean == pytest.approx((1 + 1 / 3 + 1 + 1) / 4)
    assert summary.stops == {"find": 1}
    decided = report_goals(True, False).summary.overall
    assert decided.goal_at_least == decided.goal_at_most == decided.goal_completion


def test_conversations_with_nothing_to_complete_are_in_neither_rate():
    graphs = {"none": MilestoneGraph.from_actions([]), "shop": make_shop_graph()}
    talks = [conversation(user("hello"), id="n", use_case="none"), make_talk("a", use_case="shop")]
    summary = score_transcripts(graphs, talks).report().summary.overall
    assert summary.conversations == 2
    assert summary.nothing_to_complete == summary.goal_completion.unknown == 1
    assert summary.goal_completion.n == summary.progress_rate.n == summary.progress_at_least.n == 1


@pytest.mark.parametrize(
    ("count", "n", "interval"),
    [
        # v = 10 / 9 × 1.6 / 100, so the ten are worth 0.16 / v = 9. Of 9 degrees t = 2.262157, t² = 5.117355:
        # the middle is (7.2 + 2.558678) / 14.117355 = 0.691254, and half the width is
        # 2.262157 sqrt(9 × 0.16 + 1.279339) / 14.117355 = 2.262157 × 1.649042 / 14.117355 = 0.264242.
        (8, 10, (0.427012, 0.955495)),
        # For 0 of n the upper end is t² / (n + t²) = 5.117355 / 15.117355.
        (0, 10, (0.0, 0.338509)),
        (10, 10, (1 - 0.338509, 1.0)),
    ],
)
def test_goal_completion_has_wilsons_interval_with_students_t(count, n, interval):
    goals = [True] * count + [False] * (n - count)
    goal = report_goals(*goals).summary.overall.goal_completion
    assert (goal.low, goal.high) == pytest.approx(interval, abs=1e-6)


def test_repeated_runs_of_a_task_do_not_narrow_the_interval():
    once, repeated = [], []
    for number, goal in enumerate(TWENTY_GOALS):
        once.append(make_talk(str(number), goal, task=str(number)))
        repeated.extend(repeat_task(str(number), *[goal] * 10))
    single = report_on(*once).summary.overall.goal_completion
    tenfold = report_on(*repeated).summary.overall.goal_completion
    assert (tenfold.low, tenfold.high) == pytest.approx((single.low, single.high), abs=0.05)
    one_task = report_on(*repeat_task("a", *[True] * 50)).summary.overall.goal_completion
    assert (one_task.n, one_task.high) == (50, 1)
    assert one_task.low == pytest.approx(0.2065, abs=1e-4)  # as for one success in one task


def test_a_task_with_three_kinds_of_users_counts_as_one_task():
    once, threefold = [], []
    for number, goal in enumerate(TWENTY_GOALS):
        once.append(make_talk(str(number), goal))
        threefold.extend(repeat_with_each_user(str(number), *[goal] * 3))
    single = report_on(*once).summary.overall.goal_completion
    goal = report_on(*threefold).summary.overall.goal_completion
    assert (goal.n, goal.low, goal.high) == pytest.approx((60, single.low, single.high), abs=0.05)
    helpful = report_on(*threefold[::3]).summary.overall.goal_completion
    assert (helpful.low, helpful.high) == (single.low, single.high)


def test_pass_hat_k_counts_each_kind_of_user_as_a_scenario():
    talks = repeat_with_each_user("a", True, True, False, run=1)
    talks += repeat_with_each_user("a", True, False, False, run=2)
    expected = {1: (1 + 1 / 2 + 0) / 3, 2: 1 / 3}
    assert report_on(*talks).summary.overall.pass_hat_k == pytest.approx(expected)


@pytest.mark.parametrize(
    ("report", "mean", "interval"),
    [
        # Of 8 degrees of freedom t = 2.306004: t² / (n + t²) = 5.317655 / 14.317655
        (report_progress(*[0] * 9), 0, (0, 0.371405)),
        # Of 4, t = 2.776445: the middle is (n / 3 + t² / 2) / (n + t²) = (1.666667 + 3.854324) / 12.708647 = 0.434428,
        # half the width t sqrt(5 × 1/3 × 2/3 + t² / 4) / (n + t²) = 2.776445 × 1.743064 / 12.708647 = 0.380805.
        (report_goals(*[False] * 5), 1 / 3, (0.053622, 0.815233)),
        # Five runs of one task count as one value: z² / (1 + z²) above 0.
        (report_on(*repeat_task("a", *[True] * 5)), 1, (1 - 0.793450, 1)),
    ],
)
def test_a_mean_of_equal_values_has_wilsons_interval_over_its_tasks(report, mean, interval):
    progress = report.summary.overall.progress_rate
    assert (progress.mean, progress.low, progress.high) == pytest.approx((mean, *interval), abs=1e-6)


@pytest.mark.parametrize("n", [40, 300])
def test_the_interval_of_a_mean_is_as_wide_as_theory_says(n):
    chance = Random(n)
    report = report_progress(*(chance.randrange(10) for _ in range(n)))
    values = [record.progress_rate for record in report.conversations]
    progress = report.summary.overall.progress_rate
    half_width = 1.96 * pstdev(values) / sqrt(n)
    assert progress.mean == pytest.approx(fmean(values))
    assert progress.low == pytest.approx(fmean(values) - half_width, abs=0.2 * half_width)
    assert progress.high == pytest.approx(fmean(values) + half_width, abs=0.2 * half_width)


def test_pass_hat_k_needs_repeated_tasks_and_stops_at_sixteen():
    different_tasks = [make_talk("a", task="a"), make_talk("b", False, task="b")]
    without_task = [make_talk("a"), make_talk("a")]
    for talks in (different_tasks, without_task):
        assert report_on(*talks).summary.overall.pass_hat_k == {}
    many = report_on(*repeat_task("a", *[True, False] * 100)).summary.overall
    assert (max(many.pass_hat_k), many.pass_hat_k[1]) == (16, 0.5)


def test_pass_hat_k_leaves_out_tasks_with_an_undecided_run():
    talks = repeat_task("1", True, True, None, use_case="refund")
    talks += repeat_task("1", False, True, True, use_case="exchange")
    report = report_on(*talks)
    assert list(report.summary.use_cases) == ["exchange", "refund"]
    assert report.summary.overall.pass_hat_k == pytest.approx({1: 2 / 3, 2: 1 / 3, 3: 0})
    assert report.summary.overall.pass_hat_k_undecided == 1


def test_calls_and_stops_are_counted():
    repeating = conversation(user("1"), called("find", id=1), called("find", id=1), called("look"), id="a")
    buying = [conversation(user("1"), called("buy"), id=str(number)) for number in range(2)]
    summary = score_transcripts(make_chain("buy", "find"), [repeating, *buying]).report().summary.overall
    assert (summary.turns.mean, summary.calls.mean) == (1, 5 / 3)
    assert (summary.wasted_calls.mean, summary.repeated_calls.mean) == (1, 1 / 3)
    assert list(summary.stops.items()) == [("buy", 2), ("Start", 1)]


def test_goal_completion_is_compared_with_the_recorded_reward():
    outcomes = [(True, 1.0), (True, 0.0), (False, 0.9999999), (False, 0.5), (None, 1.0), (True, None)]
    talks = [make_talk("x", goal, reward=reward) for goal, reward in outcomes]
    reward = report_on(*talks).summary.overall.reward
    assert (reward.both, reward.only_a, reward.only_b, reward.neither, reward.rate) == (1, 1, 1, 1, 0.5)
    for invalid in (float("inf"), float("nan"), "1", [1]):
        assert report_on(make_talk("a", reward=invalid)).summary.overall.reward is None


def test_the_customers_goal_is_counted_apart_from_other_ways_to_the_end():
    about = {"goal": "pay", "arm": "guided", "user": "helpful"}
    talks = [make_talk(str(goal), goal, about=about) for goal in (True, False, None)]
    report = report_on(*talks)
    assert [record.goal_reached for record in report.conversations] == [True, False, False]
    reached = report.summary.overall.goal_reached
    assert (reached.count, reached.n, reached.unknown) == (1, 3, 0)
    assert report.summary.arms["guided"].goal_reached == reached
    undecided = report_on(make_talk("d", None, about={"goal": "Given up"}))
    assert undecided.summary.overall.goal_reached.unknown == 1


def test_a_report_is_equal_after_writing_and_reading(tmp_path):
    talks = [make_talk("a", use_case="x", reward=1)]
    talks += repeat_task("1", True, False, None, about={"arm": "b", "goal": "pay"})
    report = report_on(*talks, *read_transcripts([{"messages": []}]))
    write_report(tmp_path / "report.json", report)
    assert read_report(tmp_path / "report.json") == report


def test_a_report_replaces_the_old_file_and_leaves_nothing_else(tmp_path):
    file, link = tmp_path / "report.json", tmp_path / "latest.json"
    file.write_text("old")
    file.chmod(0o600)
    link.symlink_to(file)
    write_report(link, report_on(make_talk("\ud800")))  # an id that UTF-8 can't encode
    assert read_report(file).conversations[0].id == "\ufffd"
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest.json", "report.json"]
    for place in (tmp_path / "none" / "report.json", tmp_path):
        with pytest.raises(InputError, match="cannot be written"):
            write_report(place, report_goals())


@pytest.mark.parametrize(
    ("content", "problem"),
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
def test_the_error_about_a_broken_report_names_the_file_and_the_problem(tmp_path, content, problem):
    (tmp_path / "report.json").write_bytes(content)
    with pytest.raises(InputError) as error:
        read_report(tmp_path / "report.json")
    assert problem in str(error.value)


def test_a_missing_report_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"none\.json cannot be read: No such file"):
        read_report(tmp_path / "none.json")


def test_an_end_state_is_not_where_a_conversation_stopped():
    graph = parse_milestones("""
- {name: Start, type: NFC}
- {name: pay, type: FC}
- {name: send, type: FC, dependencies: [pay]}
- {name: Right, type: NFC, state: "tests.milestones.end_states:was_paid"}
- {name: Done, type: Aggregator, dependencies: [Right]}
- {name: End, type: NFC, requires: all, dependencies: [send, Done]}
""")
    report = score_transcripts(graph, [conversation(called("pay"))]).report()
    assert "Right" in [milestone.name for milestone in report.conversations[0].reached]
    assert report.summary.overall.stops == {"pay": 1}


@pytest.mark.parametrize("outcome", [{}, {"success": False}])
def test_the_note_on_conversations_that_stopped_at_end_speaks_of_a_world_only_if_there_is_one(outcome):
    graph = MilestoneGraph.from_actions([{"name": "pay"}], forbidden=[{"tool": "gift"}])
    talk = conversation(user("please"), called("gift"), called("pay"))
    report = score_transcripts(graph, [talk]).report()
    record = report.conversations[0].model_copy(update={"outcome": outcome})
    tables = build_tables(report.model_copy(update={"conversations": (record,)}))
    [note] = next(table.notes for table in tables if table.title == "stopped at")
    assert note.startswith("Those at End reached it, but something forbidden happened")
    assert ("world" in note) == bool(outcome)
