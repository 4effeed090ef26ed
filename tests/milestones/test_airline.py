"""200 recorded conversations of a real agent (tau-bench, airline, gpt-4o), where they are at hand."""

from __future__ import annotations

import pytest

from arq_graph.milestones import (
    MilestoneGraph,
    Transcript,
    read_transcripts,
    score,
)
from benchmarks.airline import Run, read_runs, why
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
