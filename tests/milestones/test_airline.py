"""200 recorded conversations of a real agent (tau-bench, airline, gpt-4o), where they are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from arq_graph.milestones import (
    MilestoneGraph,
    ProgressTracker,
    Transcript,
    invented_arguments,
    parse_yaml,
    read_transcripts,
    score,
)

RECORDED = Path(__file__).parents[3] / "shared" / "data" / "tau_airline" / "gpt-4o-airline.json"

pytestmark = pytest.mark.skipif(not RECORDED.exists(), reason="the recorded conversations are not here")


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
        assert parse_yaml(graph.to_yaml()).milestones == graph.milestones
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


def test_live_progress_equals_the_batch_result(transcripts):
    for transcript in transcripts[:40]:
        graph = MilestoneGraph.from_actions(
            transcript.extra["actions"], failed_if="(?i)^error", grounded="strict"
        )
        tracker = ProgressTracker(graph)
        rates = []
        for event in transcript.events:
            tracker.feed(event)
            rates.append(tracker.score().progress_rate or 0)
        assert tracker.score() == score(graph, transcript)
        assert rates == sorted(rates)


def test_most_arguments_of_a_real_agent_are_grounded(transcripts):
    values = sum(len(call.arguments) for one in transcripts for _, call in one.calls())
    invented = sum(len(paths) for one in transcripts for paths in invented_arguments(one).values())
    assert 0 < invented < 0.25 * values
