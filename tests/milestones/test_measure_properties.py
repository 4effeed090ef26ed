from __future__ import annotations

import itertools
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.milestones import (
    Forbidden,
    Message,
    Milestone,
    MilestoneGraph,
    Observations,
    Pattern,
    ProgressTracker,
    Said,
    Transcript,
    goal_completed,
    observe,
    progress_rate,
    reach,
    score,
)
from arq_graph.milestones.roads import left, needs
from arq_graph.milestones.structure import NEVER, Structure
from tests.milestones.brute_force import INFINITE, Definition
from tests.milestones.random_conversations import (
    event_lists,
    graphs,
    milestone_lists,
    observed_events,
    transcripts,
)

LENGTH = 9


@settings(max_examples=150)
@given(milestones=milestone_lists(), data=st.data())
def test_what_was_reached_equals_a_walk_through_the_events(milestones, data):
    graph = MilestoneGraph(milestones)
    if graph.check().errors:
        return
    observed = data.draw(observed_events([one.name for one in milestones[1:-1]], LENGTH))
    observations = Observations({name: tuple(events) for name, events in observed.items()}, LENGTH)
    assert reach(graph, observations) == Definition(milestones).reach(observed, LENGTH)


@settings(max_examples=150)
@given(milestones=milestone_lists(), data=st.data())
def test_needs_and_what_is_left_equal_the_definition(milestones, data):
    names = [one.name for one in milestones]
    reached = {"Start", *data.draw(st.sets(st.sampled_from(names[1:-1])))}
    definition = Definition(milestones)
    structure = Structure(MilestoneGraph(milestones))
    done = structure.numbers(reached)
    need = needs(structure, done)
    remaining = left(structure, done, need)
    for name, number in structure.number.items():
        for found, defined in ((need, definition.need(reached)), (remaining, definition.left(reached))):
            if found[number] == NEVER:
                assert defined[name] >= INFINITE
            else:
                assert Fraction(found[number]) / structure.unit == defined[name]


@settings(max_examples=150)
@given(graph=graphs(), data=st.data())
def test_progress_equals_the_definition_and_is_one_only_at_end(graph, data):
    names = [one.name for one in graph.milestones]
    reached = data.draw(st.sets(st.sampled_from(names)))
    rate = progress_rate(graph, reached)
    if rate is None:
        assert score(graph, Transcript((Message("user", "hello"),))).progress_rate is None
        return
    assert rate == float(Definition(graph.milestones).progress_rate(reached))
    assert 0 <= rate <= 1
    assert (rate == 1) == ("End" in reached)


@settings(max_examples=100)
@given(graph=graphs(), data=st.data())
def test_progress_never_falls_as_more_is_reached(graph, data):
    names = [one.name for one in graph.milestones]
    fewer = data.draw(st.sets(st.sampled_from(names)))
    more = fewer | data.draw(st.sets(st.sampled_from(names)))
    if progress_rate(graph, fewer) is not None:
        assert progress_rate(graph, fewer) <= progress_rate(graph, more)


@settings(max_examples=100)
@given(graph=graphs(judged=True), events=event_lists())
def test_progress_never_falls_as_events_are_added(graph, events):
    ranges = [score(graph, Transcript(events[: end + 1])).progress_range for end in range(len(events))]
    if ranges[0] is None:
        return
    for earlier, later in itertools.pairwise(ranges):
        assert earlier[0] <= later[0]
        assert earlier[1] <= later[1]


@settings(max_examples=150)
@given(graph=graphs(judged=True), events=event_lists())
def test_one_event_at_a_time_gives_what_the_whole_conversation_gives(graph, events):
    tracker = ProgressTracker(graph)
    told = set(tracker.reached)
    for end, event in enumerate(events, start=1):
        newly = tracker.feed(event)
        assert not told & set(newly)
        told |= set(newly)
        whole = score(graph, Transcript(events[:end]))
        assert tracker.score() == whole
        assert tracker.reached == whole.reached
        assert tracker.frontier == whole.frontier
        assert told == set(whole.reached)


@settings(max_examples=100)
@given(graph=graphs(), transcript=transcripts)
def test_forbidden_events_do_not_change_progress(graph, transcript):
    strict = MilestoneGraph(
        graph.milestones, failed_if=graph.failed_if, forbidden=[Forbidden(Said(Pattern("")))]
    )
    free = MilestoneGraph(graph.milestones, failed_if=graph.failed_if)
    if score(free, transcript).progress_rate is not None:
        assert score(strict, transcript).progress_rate == score(free, transcript).progress_rate
    if any(isinstance(event, Message) for event in transcript.events):
        assert score(strict, transcript).goal_completed is False


@settings(max_examples=100)
@given(graph=graphs(), transcript=transcripts, data=st.data())
def test_renaming_and_reordering_milestones_changes_nothing(graph, transcript, data):
    inner = [one.name for one in graph.milestones if one.name not in ("Start", "End")]
    new_names = dict(zip(inner, data.draw(st.permutations([f"x {name}" for name in inner])), strict=True))
    new_names |= {"Start": "Start", "End": "End"}
    moved = [
        Milestone(
            new_names[one.name],
            one.type,
            one.description,
            tuple(new_names[name] for name in one.dependencies),
            one.requires,
            one.weight,
            tool=one.called_tool if one.type == "FC" else None,
            check=one.check,
            holds=one.holds,
        )
        for one in data.draw(st.permutations(graph.milestones))
    ]
    other = score(MilestoneGraph(moved, failed_if=graph.failed_if, forbidden=graph.forbidden), transcript)
    here = score(graph, transcript)
    assert other.progress_rate == here.progress_rate
    assert other.goal_completed == here.goal_completed
    assert other.reached == {new_names[name]: event for name, event in here.reached.items()}
    assert other.coverage == here.coverage
    assert set(other.frontier) == {new_names[name] for name in here.frontier}


@settings(max_examples=100)
@given(graph=graphs(judged=True), transcript=transcripts, data=st.data())
def test_the_range_holds_every_way_of_deciding_the_undecided(graph, transcript, data):
    ranged = score(graph, transcript)
    if ranged.progress_range is None:
        return
    observations = observe(graph, transcript)
    low, high = ranged.progress_range
    rates = set()
    for chosen in itertools.product([False, True], repeat=len(observations.undecided)):
        events = dict(observations.events)
        for name, is_observed in zip(observations.undecided, chosen, strict=True):
            if is_observed:
                at = data.draw(st.sets(st.integers(1, len(transcript)), min_size=1))
                events[name] = tuple(sorted(at))
        reached = reach(graph, Observations(events, len(transcript)))
        rate = progress_rate(graph, reached)
        assert low <= rate <= high
        rates.add(rate)
        if ranged.goal_completed is not None:
            assert goal_completed(graph, reached, observations.forbidden) == ranged.goal_completed
    if low == high:
        assert rates == {low}


@settings(max_examples=100)
@given(graph=graphs(), transcript=transcripts)
def test_the_path_taken_was_reached_in_order_and_starts_at_start(graph, transcript):
    measured = score(graph, transcript)
    path = measured.path_taken
    assert set(path) <= set(measured.reached)
    assert [measured.reached[name] for name in path] == sorted(measured.reached[name] for name in path)
    assert path[0] == "Start"
    if measured.progress_rate == 1:
        assert path[-1] == "End"
        # The road taken is enough by itself: what was observed beside it can go.
        observed = observe(graph, transcript).events
        alone = {name: observed[name] for name in path if name in observed}
        assert "End" in reach(graph, Observations(alone, len(transcript)))
