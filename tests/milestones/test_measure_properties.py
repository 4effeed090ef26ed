"""The measure against its definition and as it was, and what must hold of it on any graph and any conversation."""

from __future__ import annotations

import itertools
import json

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from arq_graph.milestones import (
    MilestoneGraph,
    Transcript,
    Verdict,
    check_milestones,
    parse_milestones,
    read_transcript,
    score,
)
from tests.milestones.brute_force import Definition
from tests.milestones.golden_cases import CASES, GOLDEN, case, golden, scored

SEEDS = st.integers(CASES, 10**9)


def test_random_graphs_and_conversations_score_as_before():
    for seed, before in enumerate(json.loads(GOLDEN.read_text())):
        assert json.loads(json.dumps(golden(scored(*case(seed))))) == before, f"case {seed}"


def drawn(seed: int) -> tuple[MilestoneGraph, Transcript]:
    """A graph that can be measured on, and a conversation."""
    graph, messages, _ = case(seed)
    read = parse_milestones(json.dumps(graph))
    assume(not check_milestones(read).errors)
    return read, read_transcript(messages)


@settings(max_examples=100)
@given(SEEDS)
def test_what_is_reached_and_the_progress_equal_the_definition(seed):
    graph, transcript = drawn(seed)
    measured = score(graph, transcript)
    seen = measured.observations
    definition = Definition(graph.milestones)
    assert measured.reached == definition.reach(seen.events, len(transcript))
    assert measured.possibly_reached == definition.reach(seen.events, len(transcript), seen.undecided)
    if measured.progress_range is not None:
        low, high = measured.progress_range
        assert low == float(definition.progress_rate(measured.reached))
        assert high == float(definition.progress_rate(measured.possibly_reached))
        assert (low == 1) == ("End" in measured.reached)


@settings(max_examples=30)
@given(SEEDS, st.data())
def test_the_range_holds_every_way_of_deciding_the_undecided(seed, data):
    graph, transcript = drawn(seed)
    ranged = score(graph, transcript)
    assume(ranged.progress_range is not None and len(ranged.undecided) < 5)
    low, high = ranged.progress_range
    for chosen in itertools.product([False, True], repeat=len(ranged.undecided)):
        verdicts = []
        for name, is_observed in zip(ranged.undecided, chosen, strict=True):
            event = data.draw(st.integers(1, len(transcript)))
            quote = transcript.events[event - 1].text
            verdicts.append(Verdict(name, True, event, quote) if is_observed else Verdict(name, False))
        decided = score(graph, transcript, judge=lambda *_, said=verdicts: said)
        assert low <= decided.progress_rate <= high
        if ranged.goal_completed is not None:
            assert decided.goal_completed == ranged.goal_completed
