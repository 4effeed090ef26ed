"""200 recorded conversations of a real agent (tau-bench, airline, gpt-4o), where they are at hand."""

from __future__ import annotations

import pytest

from arq_graph.milestones import (
    MilestoneGraph,
    Transcript,
    read_transcripts,
    score,
)
from benchmarks.airline import Run, is_same, read_runs, tools_left_out, why, writes_are_confirmed
from benchmarks.airline_tables import agreement
from tests.milestones.recorded import AIRLINE as RECORDED

pytestmark = pytest.mark.skipif(not RECORDED.exists(), reason="the recorded conversations are not here")


EMPTY = MilestoneGraph.from_actions([])


@pytest.fixture(scope="module")
def transcripts():
    read = list(read_transcripts(RECORDED))
    assert all(isinstance(one, Transcript) for one in read)
    return read


def test_every_conversation_loads_with_its_task_and_reward(transcripts):
    assert len(transcripts) == 200
    assert len({one.id for one in transcripts}) == 200
    assert len({one.task for one in transcripts}) == 50
    assert sum(one.extra["reward"] for one in transcripts) == 84
    # As counted in the file: 1,490 user messages, 1,380 of the agent with text, 1,164 calls and results.
    assert sum(len(one) for one in transcripts) == 1490 + 1380 + 2 * 1164
    assert all(one.instructions.startswith("# Airline Agent Policy") for one in transcripts)


@pytest.mark.parametrize("ordered", [True, False])
def test_every_conversation_is_scored_against_its_gold_actions(transcripts, ordered):
    complete = 0
    for transcript in transcripts:
        actions = transcript.extra["actions"]
        graph = MilestoneGraph.from_actions(actions, ordered=ordered, failed_if="(?i)^error")
        assert MilestoneGraph.parse_yaml(graph.to_yaml()).milestones == graph.milestones
        measured = score(graph, transcript)
        if not actions:
            assert measured.goal_completed is None
            assert measured.progress_rate is None
            continue
        assert measured.goal_completed is (measured.progress_rate == 1)
        assert 0 <= measured.progress_rate <= 1
        complete += measured.goal_completed
        # A plain count of the gold calls that were made, in any order, bounds what can be reached.
        made = [call for _, call in transcript.calls()]
        found = sum(
            any(call.tool == action["name"] and call.arguments == action["kwargs"] for call in made)
            for action in actions
        )
        assert len(measured.reached.keys() - {"Start", "End"}) <= found
        if not ordered and found < len(actions):
            assert measured.goal_completed is False
    assert complete == 48


def test_most_arguments_of_a_real_agent_are_grounded(transcripts):
    values = sum(len(call.arguments) for one in transcripts for _, call in one.calls())
    invented = sum(
        len(paths) for one in transcripts for paths in score(EMPTY, one).invented_arguments.values()
    )
    assert 0 < invented < 0.25 * values


@pytest.fixture(scope="module")
def runs():
    read = list(read_runs(RECORDED))
    assert all(isinstance(one, Run) for one in read)
    return read


def test_the_recorded_databases_confirm_which_tools_write(runs):
    assert writes_are_confirmed(runs) is True
    # Were a tool that only reads taken for one that writes, or the other way round, they would not.
    assert writes_are_confirmed([Run(one.transcript, [*one.actions[:-1]], one.info) for one in runs]) is False


def test_the_outputs_that_were_not_said_are_those_that_the_record_names(runs):
    compared = 0
    for run in runs:
        found = ((run.info.get("reward_info") or {}).get("info") or {}).get("outputs")
        if found is not None:
            assert run.unsaid_outputs == [output for output, was_said in found.items() if not was_said]
            compared += 1
    assert compared


@pytest.mark.parametrize("variant", ["ordered", "unordered", "writes", "only writes"])
def test_every_difference_between_goal_and_reward_is_explained(runs, variant):
    reasons = [why(run, variant) for run in runs]
    found = agreement(runs, variant)
    assert sum(reason is not None for reason in reasons) == found.only_goal + found.only_reward
    assert found.n == sum(run.goal_completed(variant) is not None for run in runs)
    assert "other" not in reasons
    for run, reason in zip(runs, reasons, strict=True):
        completed = run.goal_completed(variant)
        assert (reason is None) == (completed is None or completed == run.is_rewarded)


@pytest.mark.parametrize(
    ("run", "variant", "reason"),
    [
        ("task 38, trial 0", "unordered", "reads left out"),  # handed over to a human, in other words
        ("task 34, trial 0", "unordered", "reads left out"),  # worked out in the head, not by `calculate`
        ("task 5, trial 1", "unordered", "other form"),  # each flight with its origin and destination
        ("task 5, trial 1", "only writes", "other form"),
        ("task 41, trial 0", "unordered", "further write"),  # a reservation was cancelled that must not be
        ("task 37, trial 0", "unordered", "further write"),  # a certificate that nobody may have
        ("task 2, trial 1", "unordered", "cut off"),
        ("task 44, trial 1", "only writes", "output not said"),
        ("task 44, trial 1", "writes", None),  # no write to make
        ("task 0, trial 0", "unordered", None),
    ],
)
def test_a_conversation_that_was_read_falls_into_its_class(runs, run, variant, reason):
    found = next(one for one in runs if one.transcript.id == run)
    assert why(found, variant) == reason


def test_no_call_that_was_left_out_without_loss_writes(runs):
    assert not any(tool.startswith(("book", "cancel", "update", "send")) for tool in tools_left_out(runs))
    for run in runs:
        if why(run) == "reads left out":
            assert all(any(is_same(gold, call) for call in run.successful_writes) for gold in run.gold_writes)
