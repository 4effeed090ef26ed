from __future__ import annotations

import pytest

from arq_graph.errors import SpecError
from arq_graph.milestones import MilestoneGraph, score
from tests.milestones.conversations import called, conversation

GOLD = [
    {"name": "get_user", "kwargs": {"id": "u1"}},
    {"name": "cancel", "kwargs": {"order": 7, "options": {"a": 1, "b": [2]}}},
]


def test_ordered_actions_count_in_their_order():
    graph = MilestoneGraph.from_actions(GOLD)
    right = [called("get_user", id="u1"), called("cancel", options={"b": [2], "a": 1}, order=7.0)]
    assert score(graph, conversation(*right)).goal_completed is True
    # get_user of get_user, cancel, End.
    assert score(graph, conversation(*right[::-1])).progress_rate == 1 / 3


def test_unordered_actions_count_in_any_order():
    graph = MilestoneGraph.from_actions(GOLD, ordered=False)
    assert (
        score(
            graph,
            conversation(called("cancel", order=7, options={"a": 1, "b": [2]}), called("get_user", id="u1")),
        ).goal_completed
        is True
    )


def test_a_call_with_other_arguments_is_not_the_gold_call():
    graph = MilestoneGraph.from_actions(GOLD, ordered=False)
    assert score(graph, conversation(called("get_user", id="u2"))).progress_rate == 0
    # A further argument does not make it another call.
    assert "get_user" in score(graph, conversation(called("get_user", id="u1", verbose=True))).reached


@pytest.mark.parametrize("ordered", [True, False])
def test_a_call_that_is_listed_twice_must_be_made_twice(ordered):
    graph = MilestoneGraph.from_actions([{"name": "ping"}] * 2, ordered=ordered)
    assert list(graph) == ["Start", "ping", "ping (2)", "End"]
    assert score(graph, conversation(called("ping"))).goal_completed is False
    assert score(graph, conversation(called("ping"), called("ping"))).goal_completed is True


@pytest.mark.parametrize("ordered", [True, False])
def test_numbers_that_are_the_same_make_the_same_call(ordered):
    twice = [{"name": "pay", "kwargs": {"sum": [{"x": number}]}} for number in (1, 1.0)]
    graph = MilestoneGraph.from_actions(twice, ordered=ordered)
    assert score(graph, conversation(called("pay", sum=[{"x": 1}]))).goal_completed is False
    assert score(graph, conversation(*[called("pay", sum=[{"x": 1.0}])] * 2)).goal_completed is True
    # True is no number.
    other = MilestoneGraph.from_actions(
        [{"name": "pay", "kwargs": {"sum": sum}} for sum in (1, True)], ordered=False
    )
    assert list(other.predecessors("pay (2)")) == ["Start"]


def test_failed_calls_do_not_count_and_other_spellings_are_known():
    graph = MilestoneGraph.from_actions([{"tool": "pay", "arguments": {"sum": 3}}], failed_if="^Error")
    assert score(graph, conversation(called("pay", "Error: no funds", sum=3))).goal_completed is False
    assert score(graph, conversation(called("pay", sum=3))).goal_completed is True


def test_a_tool_named_like_an_end_is_kept_apart():
    graph = MilestoneGraph.from_actions([{"name": "End"}])
    assert list(graph) == ["Start", "End (2)", "End"]
    assert score(graph, conversation(called("End"))).goal_completed is True


@pytest.mark.parametrize("action", [{"kwargs": {}}, {"name": "x", "kwargs": [1]}, None, "x"])
def test_an_action_that_is_none_is_named(action):
    with pytest.raises(SpecError, match="action 1"):
        MilestoneGraph.from_actions([action])
