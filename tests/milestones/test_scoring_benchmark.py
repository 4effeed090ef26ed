"""The benchmark of scoring measures what it says, however fast the machine is."""

from __future__ import annotations

from arq_graph.milestones import MilestoneGraph, read_transcript, score
from benchmarks import scoring


def test_the_conversations_are_the_same_at_every_run_and_as_long_as_recorded_ones():
    made = scoring.made(200)
    assert made == scoring.made(200)
    read = [
        (MilestoneGraph.from_actions(task.actions, ordered=False), read_transcript(task.messages))
        for task in made
    ]
    assert 20 < sum(len(transcript) for _, transcript in read) / len(read) < 30
    assert {score(graph, transcript).goal_completed for graph, transcript in read} == {True, False}


def test_every_way_of_scoring_has_a_speed_or_says_what_is_missing():
    for speed in scoring.speeds(scoring.made(5)):
        assert speed.per_second or "pip install" in speed.gives
