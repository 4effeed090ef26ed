"""The measure against its definition, and what must hold of it on any graph and any conversation."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.milestones import (
    Forbidden,
    Message,
    MilestoneGraph,
    Transcript,
    Verdict,
    score,
)
from tests.milestones.brute_force import Definition
from tests.milestones.random_conversations import event_lists, graphs, transcripts

EXAMPLES = settings(max_examples=30)


@EXAMPLES
@given(graph=graphs(judged=True), transcript=transcripts)
def test_what_is_reached_and_the_progress_equal_the_definition(graph, transcript):
    compare_with_the_definition(graph, transcript)


@pytest.mark.slow
@settings(max_examples=2_000)
@given(graph=graphs(judged=True), transcript=transcripts)
def test_the_same_of_two_thousand_graphs(graph, transcript):
    compare_with_the_definition(graph, transcript)


def compare_with_the_definition(graph, transcript):
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


@EXAMPLES
@given(graph=graphs(judged=True), events=event_lists())
def test_progress_never_falls_as_a_conversation_goes_on(graph, events):
    ranges = [score(graph, Transcript(events[:end])).progress_range for end in range(1, len(events) + 1)]
    if ranges[0] is not None:
        for at in (0, 1):
            assert [each[at] for each in ranges] == sorted(each[at] for each in ranges)


@EXAMPLES
@given(graph=graphs(), transcript=transcripts)
def test_forbidden_events_do_not_change_progress(graph, transcript):
    strict = MilestoneGraph(graph.milestones, failed_if=graph.failed_if, forbidden=[Forbidden(pattern=".*")])
    free = MilestoneGraph(graph.milestones, failed_if=graph.failed_if)
    if score(free, transcript).progress_rate is not None:
        assert score(strict, transcript).progress_rate == score(free, transcript).progress_rate
    if any(isinstance(event, Message) for event in transcript.events):
        assert score(strict, transcript).goal_completed is False


@EXAMPLES
@given(graph=graphs(judged=True), transcript=transcripts, data=st.data())
def test_the_range_holds_every_way_of_deciding_the_undecided(graph, transcript, data):
    ranged = score(graph, transcript)
    if ranged.progress_range is None:
        return
    low, high = ranged.progress_range
    events = st.integers(1, len(transcript))
    for chosen in itertools.product([False, True], repeat=len(ranged.undecided)):
        verdicts = []
        for name, is_observed in zip(ranged.undecided, chosen, strict=True):
            event = data.draw(events)
            quote = transcript.events[event - 1].text
            verdicts.append(Verdict(name, True, event, quote) if is_observed else Verdict(name, False))
        decided = score(graph, transcript, verdicts=verdicts)
        assert low <= decided.progress_rate <= high
        if ranged.goal_completed is not None:
            assert decided.goal_completed == ranged.goal_completed


@EXAMPLES
@given(graph=graphs(), transcript=transcripts)
def test_the_path_taken_was_reached_in_order_and_starts_at_start(graph, transcript):
    measured = score(graph, transcript)
    path = measured.path_taken
    assert set(path) <= set(measured.reached)
    assert [measured.reached[name] for name in path] == sorted(measured.reached[name] for name in path)
    assert path[0] == "Start"
    assert (path[-1] == "End") == (measured.progress_rate == 1) or measured.progress_rate is None
