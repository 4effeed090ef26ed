"""200 recorded conversations of a real agent (tau-bench, airline, gpt-4o), where they stand beside the checkout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arq_graph.milestones import MilestoneGraph, Transcript, read_transcripts, score
from benchmarks.airline import Run, read_runs, why
from benchmarks.airline_tables import agreement

FILE = Path("shared/data/tau_airline/gpt-4o-airline.json")
RECORDED = next((folder / FILE for folder in Path(__file__).parents if (folder / FILE).exists()), FILE)
GOLDEN = Path(__file__).with_name("golden_airline.json")

pytestmark = pytest.mark.skipif(not RECORDED.exists(), reason="the recorded conversations are not here")


@pytest.fixture(scope="module")
def transcripts():
    read = list(read_transcripts(RECORDED))
    assert all(isinstance(one, Transcript) for one in read)
    return read


def test_they_score_as_before_and_most_arguments_are_grounded(transcripts):
    """GC and PR of each conversation against its gold actions: in order, and in any order."""
    scores = {
        transcript.id: [
            score(
                MilestoneGraph.from_actions(
                    transcript.extra["actions"], ordered=ordered, failed_if="(?i)^error"
                ),
                transcript,
            )
            for ordered in (True, False)
        ]
        for transcript in transcripts
    }
    found = {
        id: [each for one in both for each in (one.goal_completed, one.progress_rate)]
        for id, both in scores.items()
    }
    assert found == json.loads(GOLDEN.read_text())
    values = sum(len(call.arguments) for one in transcripts for _, call in one.enumerate_calls())
    invented = sum(len(paths) for one, _ in scores.values() for paths in one.invented_arguments.values())
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
    assert sum(reason is not None for reason in reasons) == found.only_a + found.only_b
    assert found.n == sum(run.goal_completed(variant) is not None for run in runs)
    assert "other" not in reasons
    for run, reason in zip(runs, reasons, strict=True):
        completed = run.goal_completed(variant)
        assert (reason is None) == (completed is None or completed == run.is_rewarded)
