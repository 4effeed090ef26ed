"""The benchmark of scoring measures what it says, however fast the machine is."""

from __future__ import annotations

import json

import pytest

from arq_graph.errors import InputError
from arq_graph.milestones import MilestoneGraph, read_transcript, score
from benchmarks import scoring


def test_the_conversations_are_the_same_at_every_run_and_as_long_as_recorded_ones():
    made = scoring.made(200)
    assert made == scoring.made(200)
    assert made[:50] == scoring.made(50)
    sizes = [len(read_transcript(task.messages)) for task in made]
    assert 20 < sum(sizes) / len(sizes) < 30
    outcomes = {
        score(
            MilestoneGraph.from_actions(task.actions, ordered=False), read_transcript(task.messages)
        ).goal_completed
        for task in made
    }
    assert outcomes == {True, False}


def test_every_way_of_scoring_has_a_speed_or_says_what_is_missing():
    speeds = scoring.speeds(scoring.made(5))
    assert [speed.what for speed in speeds][3:] == ["agentevals: superset", "agentevals: unordered"]
    assert all(speed.per_second for speed in speeds[:3])
    for speed in speeds[3:]:
        assert speed.per_second or "pip install" in speed.gives


def test_a_file_of_another_kind_is_no_recorded_run(tmp_path):
    chat = tmp_path / "chat.json"
    chat.write_text(json.dumps([{"messages": [{"role": "user", "content": "hi"}]}]))
    with pytest.raises(InputError, match="record 0 is no tau-bench result"):
        scoring.recorded(chat)
    with pytest.raises(InputError, match="cannot be read"):
        scoring.recorded(tmp_path / "missing.json")
