"""200 recorded conversations of a real agent (tau-bench, airline, gpt-4o), if they are next to the checkout."""

import json
from pathlib import Path

import pytest

from arq_graph.milestones import MilestoneGraph, Score, Transcript, read_transcripts, score
from benchmarks.airline import Run, explain_difference, read_runs
from benchmarks.airline_tables import count_agreement

FILE = Path("shared/data/tau_airline/gpt-4o-airline.json")
RECORDED = next((folder / FILE for folder in Path(__file__).parents if (folder / FILE).exists()), FILE)
GOLDEN = Path(__file__).with_name("golden_airline.json")

pytestmark = pytest.mark.skipif(not RECORDED.exists(), reason="the recorded conversations are not here")


def score_against_actions(transcript: Transcript, *, ordered: bool) -> Score:
    actions = transcript.extra["actions"]
    graph = MilestoneGraph.from_actions(actions, ordered=ordered, failed_if="(?i)^error")
    return score(graph, transcript)


def test_they_score_as_before_and_most_arguments_are_grounded():
    """GC and PR of each conversation against its gold actions: in order, and in any order."""
    scores: dict[str, list[bool | float | None]] = {}
    argument_count = invented_count = 0
    for transcript in read_transcripts(RECORDED):
        assert isinstance(transcript, Transcript)
        ordered = score_against_actions(transcript, ordered=True)
        unordered = score_against_actions(transcript, ordered=False)
        scores[transcript.id] = []
        for result in (ordered, unordered):
            scores[transcript.id] += [result.goal_completed, result.progress_rate]
        argument_count += sum(len(call.arguments) for _, call in transcript.enumerate_calls())
        invented_count += sum(map(len, ordered.invented_arguments.values()))
    assert scores == json.loads(GOLDEN.read_text())
    assert 0 < invented_count < 0.25 * argument_count


@pytest.fixture(scope="module")
def runs():
    runs = list(read_runs(RECORDED))
    assert all(isinstance(run, Run) for run in runs)
    return runs


@pytest.mark.parametrize("variant", ["ordered", "unordered", "writes", "only writes"])
def test_every_difference_between_goal_and_reward_is_explained(runs, variant):
    reasons = [explain_difference(run, variant) for run in runs]
    counts = count_agreement(runs, variant)
    assert sum(reason is not None for reason in reasons) == counts.only_a + counts.only_b
    assert counts.n == sum(run.is_goal_completed(variant) is not None for run in runs)
    assert "other" not in reasons
    for run, reason in zip(runs, reasons, strict=True):
        completed = run.is_goal_completed(variant)
        assert (reason is None) == (completed is None or completed == run.is_rewarded)
