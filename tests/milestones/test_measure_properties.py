"""The measure compared with its definition and with earlier scores, and its properties on any graph."""

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
from tests.milestones.golden_cases import CASES, GOLDEN, make_case, score_case, summarize

SEEDS = st.integers(CASES, 10**9)


def test_random_graphs_and_conversations_score_as_before():
    for seed, expected in enumerate(json.loads(GOLDEN.read_text())):
        assert json.loads(json.dumps(summarize(score_case(*make_case(seed))))) == expected, f"case {seed}"


def draw_case(seed: int) -> tuple[MilestoneGraph, Transcript]:
    """Return a graph on which something can be measured, and a conversation."""
    data, messages, _ = make_case(seed)
    graph = parse_milestones(json.dumps(data))
    assume(not check_milestones(graph).errors)
    return graph, read_transcript(messages)


@settings(max_examples=100)
@given(SEEDS)
def test_reached_milestones_and_progress_equal_the_definition(seed):
    graph, transcript = draw_case(seed)
    result = score(graph, transcript)
    observations = result.observations
    definition = Definition(graph.milestones)
    assert result.reached == definition.reach(observations.events, len(transcript))
    assert result.possibly_reached == definition.reach(
        observations.events, len(transcript), observations.undecided
    )
    if result.progress_range is not None:
        low, high = result.progress_range
        assert low == float(definition.get_progress_rate(result.reached))
        assert high == float(definition.get_progress_rate(result.possibly_reached))
        assert (low == 1) == ("End" in result.reached)


@settings(max_examples=30)
@given(SEEDS, st.data())
def test_the_range_holds_every_way_of_deciding_the_undecided(seed, data):
    graph, transcript = draw_case(seed)
    ranged = score(graph, transcript)
    assume(ranged.progress_range is not None and len(ranged.undecided) < 5)
    low, high = ranged.progress_range
    for decisions in itertools.product([False, True], repeat=len(ranged.undecided)):
        verdicts = []
        for name, is_observed in zip(ranged.undecided, decisions, strict=True):
            event = data.draw(st.integers(1, len(transcript)))
            quote = transcript.events[event - 1].text
            verdicts.append(Verdict(name, True, event, quote) if is_observed else Verdict(name, False))
        decided = score(graph, transcript, judge=lambda *_, verdicts=verdicts: verdicts)
        assert low <= decided.progress_rate <= high
        if ranged.goal_completed is not None:
            assert decided.goal_completed == ranged.goal_completed
