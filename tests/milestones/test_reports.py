"""The figures over many conversations, and the report in a file."""

from __future__ import annotations

import json
import os
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.errors import InputError
from arq_graph.milestones import MilestoneGraph, score
from arq_graph.milestones.reports.files import read_report, write_report, write_whole
from arq_graph.milestones.reports.records import (
    BrokenConversation,
    ForbiddenRecord,
    conversation_record,
    graph_record,
)
from arq_graph.milestones.reports.statistics import wilson
from arq_graph.milestones.reports.summary import report, summarize
from tests.milestones.conversations import agent, called, conversation, user
from tests.milestones.report_records import measured, runs


def test_what_is_undecided_never_counts_as_a_failure():
    summary = summarize([measured("a"), measured("b", False), measured("c", None)])
    goal = summary.goal_completion
    assert (goal.count, goal.n, goal.unknown, goal.rate) == (1, 2, 1, 0.5)
    assert (goal.low, goal.high) == wilson(1, 2)
    assert summary.progress_rate.n == 2
    assert summary.progress_rate.mean == pytest.approx(0.75)
    assert summary.progress_at_least.mean == pytest.approx((1 + 0.5 + 0.25) / 3)
    assert summary.progress_at_most.mean == pytest.approx((1 + 0.5 + 0.75) / 3)
    assert summary.stops == {"find_order": 1}


def test_a_graph_that_asks_for_nothing_is_in_neither_rate():
    empty = MilestoneGraph.from_actions([])
    nothing = conversation(user("hello"), agent("hello"), id="n")
    summary = summarize([conversation_record(nothing, score(empty, nothing)), measured("a")])
    assert summary.conversations == 2
    assert summary.nothing_to_complete == summary.goal_completion.unknown == 1
    assert summary.goal_completion.n == summary.progress_rate.n == summary.progress_at_least.n == 1


def test_no_conversations_have_no_figures():
    summary = summarize([])
    assert summary.conversations == 0
    assert summary.goal_completion.rate is summary.progress_rate.mean is summary.turns.mean is None
    assert summary.reward is None
    assert summary.pass_hat_k == {}


def test_pass_hat_k_is_told_where_tasks_were_run_more_than_once():
    once = [measured("a", task="a"), measured("b", False, task="b")]
    assert summarize(once).pass_hat_k == {}
    assert summarize([measured("a"), measured("a")]).pass_hat_k == {}  # no tasks are named
    several = summarize([*runs("a", True, True, False, False), *runs("b", True, True, True, True)])
    # Task a: C(2,2) / C(4,2) = 1/6, then nothing; task b always.
    assert several.pass_hat_k == pytest.approx({1: 0.75, 2: (1 / 6 + 1) / 2, 3: 0.5, 4: 0.5})
    assert several.pass_hat_k_tasks == {1: 2, 2: 2, 3: 2, 4: 2}


def test_a_task_with_an_undecided_run_is_in_no_pass_hat_k():
    summary = summarize([*runs("a", True, True, None), *runs("b", False, True, True)])
    assert summary.pass_hat_k == pytest.approx({1: 2 / 3, 2: 1 / 3, 3: 0})
    assert summary.pass_hat_k_tasks == {1: 1, 2: 1, 3: 1}
    assert summary.pass_hat_k_undecided == 1


def test_where_only_failures_are_decided_pass_hat_k_says_nothing():
    summary = summarize(runs("a", False, False, *[None] * 8))
    assert summary.goal_at_most.rate == 0.8
    assert summary.pass_hat_k == summary.pass_hat_k_tasks == {}
    assert summary.pass_hat_k_undecided == 1
    assert summarize([measured("a", None, task="a")]).pass_hat_k_undecided == 0  # it was run once


def test_a_run_with_nothing_to_complete_is_no_run_of_its_task():
    nothing = measured("n", None, task="a").model_copy(update={"progress_range": None})
    summary = summarize([*runs("a", True, False), nothing])
    assert summary.pass_hat_k == {1: 0.5, 2: 0}
    assert summary.pass_hat_k_undecided == 0


def test_a_mean_of_equal_values_lies_in_its_interval():
    progress = summarize([measured(str(n), False, 0.1) for n in range(3)]).progress_rate
    assert progress.low <= progress.mean <= progress.high


def test_tasks_of_two_use_cases_are_two_tasks():
    records = [*runs("1", True, True, use_case="refund"), *runs("1", False, False, use_case="exchange")]
    whole = report(records).summary
    assert whole.overall.pass_hat_k == {1: 0.5, 2: 0.5}
    assert whole.use_cases["refund"].pass_hat_k == {1: 1, 2: 1}
    assert whole.use_cases["exchange"].pass_hat_k == {1: 0, 2: 0}


def test_thousands_of_runs_of_one_task_are_summed_up():
    summary = summarize(runs("a", *[True, False] * 1_500))
    assert max(summary.pass_hat_k) == 16
    assert summary.pass_hat_k[1] == 0.5


def test_turns_calls_and_what_was_forbidden():
    rule = ForbiddenRecord(step=3, rule="no refunds")
    records = [
        measured("a", turns=3, calls=4, wasted_calls=(2, 4), repeated_calls=(4,)),
        measured("b", False, turns=2, calls=1, forbidden=(rule, rule), path_taken=("Start", "End")),
    ]
    summary = summarize(records)
    assert (summary.turns.mean, summary.calls.mean) == (2.5, 2.5)
    assert (summary.wasted_calls.mean, summary.repeated_calls.mean) == (1, 0.5)
    assert (summary.forbidden.count, summary.forbidden.n) == (1, 2)
    assert summary.stops == {"End": 1}


def test_where_conversations_stop_most_first():
    stopped = [measured(str(n), False, path_taken=("Start", name)) for n, name in enumerate("bacba")]
    assert list(summarize([*stopped, measured("x")]).stops.items()) == [("a", 2), ("b", 2), ("c", 1)]


def test_the_judges_votes_and_the_recorded_reward():
    records = [
        measured("a", agreement={"x": 1.0, "y": 0.5}, reward=1.0),
        measured("b", reward=0.0),
        measured("c", False, agreement={"x": 0.6}, reward=0.9999999),
        measured("d", False, reward=0.5),
        measured("e", None, reward=1.0),
        measured("f"),
    ]
    summary = summarize(records)
    assert summary.agreement.n == 3
    assert summary.agreement.mean == pytest.approx(0.7)
    reward = summary.reward
    assert reward is not None
    assert (reward.both, reward.only_goal, reward.only_reward, reward.neither) == (1, 1, 1, 1)
    assert reward.rate == 0.5


def test_every_use_case_has_its_own_figures():
    records = [
        measured("a", use_case="refund"),
        measured("b", False, use_case="exchange"),
        measured("c", False),
    ]
    whole = report(records, [BrokenConversation(error="cut off")])
    assert list(whole.summary.use_cases) == ["exchange", "refund"]
    assert whole.summary.use_cases["refund"] == summarize(records[:1])
    assert whole.summary.overall == summarize(records)
    assert [one.id for one in whole.conversations] == ["a", "b", "c"]
    assert len(whole.broken) == 1


@pytest.mark.parametrize("reward", [float("inf"), float("nan"), 10**400, "1", None, [1]])
def test_a_reward_that_is_no_number_is_none(reward):
    talk = conversation(user("hello"), id="a", extra={"reward": reward})
    graph = MilestoneGraph.from_actions([{"name": "find", "arguments": {}}])
    assert conversation_record(talk, score(graph, talk)).reward is None


outcomes = st.tuples(st.sampled_from([True, False, None]), st.sampled_from("abc"), st.sampled_from("xyz"))


@settings(max_examples=40)
@given(st.lists(outcomes, max_size=12))
def test_any_report_is_read_from_its_file_as_it_was_written(tmp_path_factory, found):
    records = [measured(str(n), goal, task=task, use_case=of) for n, (goal, task, of) in enumerate(found)]
    graph = MilestoneGraph.from_actions([{"name": "find", "arguments": {}}])
    written = report(records, [BrokenConversation(record=3, error="no JSON")], {"x": graph_record(graph)})
    file = tmp_path_factory.mktemp("reports") / "report.json"
    write_report(file, written)
    assert read_report(file) == written
    summary = written.summary.overall
    assert summary.goal_completion.n + summary.goal_completion.unknown == len(records)
    assert sum(group.conversations for group in written.summary.use_cases.values()) == len(records)


def test_a_scored_conversation_survives_the_file(tmp_path):
    graph = MilestoneGraph.from_actions(
        [{"name": "find", "arguments": {"id": 1}}, {"name": "pay", "arguments": {}}]
    )
    talk = conversation(user("1, please"), called("find", id=1), called("find", id=1), id="\ud800")
    written = report(
        [conversation_record(talk, score(graph, talk), graph="g")], graphs={"g": graph_record(graph)}
    )
    write_report(tmp_path / "report.json", written)
    again = read_report(tmp_path / "report.json")
    assert again.conversations[0].id == "\ufffd"
    assert again.conversations[0].repeated_calls == (4,)
    assert again.graphs == written.graphs
    assert again.summary == written.summary


def test_a_report_replaces_the_one_before_and_leaves_nothing_else(tmp_path):
    file = tmp_path / "report.json"
    file.write_text("old")
    file.chmod(0o600)
    link = tmp_path / "latest.json"
    link.symlink_to(file)
    write_report(link, report([measured("a")]))
    assert read_report(file).conversations[0].id == "a"
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(one.name for one in tmp_path.iterdir()) == ["latest.json", "report.json"]


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    for place in (tmp_path / "none" / "report.json", tmp_path):
        with pytest.raises(InputError, match="cannot be written"):
            write_report(place, report([]))
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_report(tmp_path / "file" / "report.json", report([]))


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, "hello")
    assert os.read(reader, 10) == b"hello"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def reported(tmp_path, change=lambda data: data):
    data = json.loads(report([measured("a")]).to_json())
    file = tmp_path / "report.json"
    file.write_text(json.dumps(change(data)))
    return file


def without_summary(data):
    return {key: value for key, value in data.items() if key != "summary"}


def with_nan(data):
    return data | {"conversations": [data["conversations"][0] | {"progress_rate": float("nan")}]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_summary, "is no report: it must be an object with `schema`"),
        (lambda data: [data], "is no report"),
        (lambda data: 3, "is no report"),
        (lambda data: data | {"schema": 2}, "is a report of schema 2, and this version reads schema 1"),
        (lambda data: data | {"schema": None}, "is a report of schema None"),
        (lambda data: data | {"schema": True}, "is a report of schema True"),
        (
            lambda data: data | {"conversations": [{"id": "a"}]},
            "conversations.0.goal_completed: Field required",
        ),
        (lambda data: data | {"more": 1}, "more: Extra inputs are not permitted"),
        (with_nan, "progress_rate: Input should be a finite number"),
    ],
)
def test_what_is_no_report_is_refused_with_its_name_and_what_is_wrong(tmp_path, change, said):
    file = reported(tmp_path, change)
    with pytest.raises(InputError) as refused:
        read_report(file)
    assert str(refused.value).startswith(f"{file}")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is not JSON"),
        (b"id,goal\n", "report.json:1: is not JSON"),
        (b'{"schema": 1,\n "conversations": [', "report.json:2: is not JSON: Expecting value (cut off"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"[" * 100_000, "report.json: is JSON that no report holds"),
        (b"9" * 10_000, "report.json: is JSON that no report holds"),
    ],
    ids=["empty", "csv", "cut off", "binary", "deep", "long"],
)
def test_a_file_that_is_no_json_is_refused(tmp_path, data, said):
    (tmp_path / "report.json").write_bytes(data)
    with pytest.raises(InputError) as refused:
        read_report(tmp_path / "report.json")
    assert said in str(refused.value)


def test_a_report_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"none\.json cannot be read: No such file"):
        read_report(tmp_path / "none.json")
    with pytest.raises(InputError, match="Is a directory"):
        read_report(tmp_path)


def test_the_truth_about_the_undecided_lies_between_all_of_them_missed_and_all_completed() -> None:
    summary = summarize([measured("a"), measured("b", False), measured("c", None), measured("d", None)])
    assert (summary.goal_completion.count, summary.goal_completion.n) == (1, 2)
    # One of four if both undecided ones missed the goal, three of four if both completed it.
    assert (summary.goal_at_least.rate, summary.goal_at_most.rate) == (0.25, 0.75)


def test_nothing_undecided_leaves_one_goal_completion() -> None:
    summary = summarize([measured("a"), measured("b", False)])
    assert summary.goal_at_least == summary.goal_at_most == summary.goal_completion
