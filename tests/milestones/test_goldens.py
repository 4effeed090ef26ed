"""What `score()` said of recorded conversations before, it still says: the measure does not change by a rewrite."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arq_graph.milestones import MilestoneGraph, read_transcripts, score
from tests.milestones.golden_cases import GOLDEN, case, golden, scored
from tests.milestones.recorded import AIRLINE

AIRLINE_GOLDEN = Path(__file__).with_name("golden_airline.json")


def test_random_graphs_and_conversations_score_as_before():
    for seed, before in enumerate(json.loads(GOLDEN.read_text())):
        assert json.loads(json.dumps(golden(scored(*case(seed))))) == before, f"case {seed}"


def airline_scores():
    """GC and PR of each conversation against its gold actions: in order, and in any order."""
    for transcript in read_transcripts(AIRLINE):
        row = []
        for ordered in (True, False):
            graph = MilestoneGraph.from_actions(
                transcript.extra["actions"], ordered=ordered, failed_if="(?i)^error"
            )
            measured = score(graph, transcript)
            row += [measured.goal_completed, measured.progress_rate]
        yield transcript.id, row


@pytest.mark.skipif(not AIRLINE.exists(), reason="the recorded conversations are not here")
def test_recorded_airline_conversations_score_as_before():
    assert dict(airline_scores()) == json.loads(AIRLINE_GOLDEN.read_text())
