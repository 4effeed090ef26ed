"""Every clause of the definition on a graph made by hand; each number is calculated beside it."""

import pytest

from arq_graph.milestones import Call, MilestoneGraph, Result, Transcript, parse_milestones, score
from arq_graph.milestones.measure import with_goal
from tests.milestones.conversations import agent, called, conversation, user


def make_graph(*milestones: str, more: str = "") -> MilestoneGraph:
    """Return a graph of Start and these milestones; a name alone is an FC after Start."""
    lines = ["- {name: Start, type: NFC}"]
    for milestone in milestones:
        fields = milestone if ":" in milestone else f"name: {milestone}, type: FC"
        lines.append(f"- {{{fields}}}")
    return parse_milestones("\n".join([more, "milestones:", *lines]))


def make_end(*dependencies: str, more: str = "") -> str:
    return f"name: End, type: NFC, dependencies: [{', '.join(dependencies)}]{more}"


CHAIN = make_graph("a", "name: b, type: FC, dependencies: [a]", make_end("b"))
BRANCHES = make_graph(
    "get_order",
    "name: refund, type: FC, dependencies: [get_order]",
    "name: expedite, type: FC, dependencies: [get_order]",
    "name: transfer, type: FC, dependencies: [get_order]",
    "name: close, type: FC, dependencies: [refund, expedite, transfer]",
    make_end("close"),
)


def score_calls(graph: MilestoneGraph, *tools: str):
    """Return the score after calls of these tools at the events 1, 3, 5, …"""
    return score(graph, conversation(*(called(tool) for tool in tools)))


def test_each_step_of_a_chain_is_a_third_of_the_way():
    nothing = score(CHAIN, conversation(user("hello")))
    # Way: a, b, End = 3. Covered: 0.
    assert (nothing.progress_rate, nothing.goal_completed, nothing.coverage) == (0, False, 0)
    assert nothing.reached == {"Start": 0}
    assert (nothing.frontier, nothing.path_taken) == (("a",), ("Start",))
    # a: depth 1, left 2 (b, End).
    assert score_calls(CHAIN, "a").progress_rate == 1 / 3
    # b: depth 2, left 1. Then End is reached at the same event.
    done = score_calls(CHAIN, "a", "b")
    assert (done.progress_rate, done.goal_completed) == (1, True)
    assert done.reached == {"Start": 0, "a": 1, "b": 3, "End": 3}


def test_a_branch_that_was_rightly_not_taken_costs_nothing():
    done = score_calls(BRANCHES, "get_order", "refund", "close")
    assert done.progress_rate == 1
    # get_order, refund, close, End of get_order, refund, expedite, transfer, close, End.
    assert done.coverage == 4 / 6
    assert done.path_taken == ("Start", "get_order", "refund", "close", "End")
    # refund: depth 2 (get_order, refund), left 2 (close, End).
    half = score_calls(BRANCHES, "get_order", "refund")
    assert half.progress_rate == 2 / 4
    assert half.frontier == ("expedite", "transfer", "close")


def test_a_road_that_leaves_the_goal_out_ends_short_of_it():
    graph = with_goal(BRANCHES, "refund")
    assert score_calls(BRANCHES, "get_order", "expedite", "close").goal_completed
    # Way: the road's get_order, refund and close, 1 for refund, which End requires beside it, and End = 5. Left: refund
    # and End, or close and End.
    assert score_calls(graph, "get_order", "expedite", "close").progress_rate == 3 / 5
    assert score_calls(graph, "get_order", "refund").progress_rate == 3 / 5
    assert score_calls(graph, "get_order", "refund", "close").goal_completed
    assert score_calls(graph, "get_order", "expedite", "close", "refund").goal_completed


def test_a_goal_that_every_road_leads_over_changes_nothing():
    for goal in ("End", "close", "get_order"):
        assert with_goal(BRANCHES, goal) is BRANCHES
    joined = make_graph("a", "b", "name: both, type: Aggregator, dependencies: [a, b]", make_end("both"))
    assert all(with_goal(joined, goal) is joined for goal in ("a", "both"))


def test_a_call_in_the_wrong_order_counts_when_it_is_repeated():
    wrong = score_calls(CHAIN, "b", "a")
    assert wrong.reached == {"Start": 0, "a": 3}
    assert (wrong.progress_rate, wrong.wasted_calls) == (1 / 3, (1,))
    again = score_calls(CHAIN, "b", "a", "b")
    assert again.reached == {"Start": 0, "a": 3, "b": 5, "End": 5}
    assert again.repeated_calls == (5,)


def test_a_call_that_came_too_early_names_what_had_to_be_reached_before_it():
    assert score_calls(CHAIN, "b", "a", "b").too_early == {1: ("a",)}
    assert score_calls(CHAIN, "a", "a", "x").too_early == {}  # a repeated call, and one that serves nothing
    refund = score_calls(BRANCHES, "refund", "close")
    assert refund.too_early == {1: ("get_order",), 3: ("refund", "expedite", "transfer")}
    join = make_graph(
        "a",
        "b",
        "name: both, type: Aggregator, dependencies: [a, b]",
        "name: c, type: FC, dependencies: [both]",
        make_end("c"),
    )
    assert score_calls(join, "a", "c").too_early == {3: ("both",)}


FORBIDDEN = """
forbidden:
- {tool: cancel_order, arguments: {order_id: {absent: true}}}
- {said_by: agent, pattern: guarantee}
"""


def test_a_forbidden_event_counts_also_after_end():
    strict = make_graph("a", make_end("a"), more=FORBIDDEN)
    allowed = conversation(called("a"), called("cancel_order", order_id="O1"), user("I guarantee it"))
    assert score(strict, allowed).goal_completed is True
    late = score(strict, conversation(called("a"), agent("That I can guarantee.")))
    assert (late.goal_completed, late.progress_rate) == (False, 1)
    assert [(event.event, str(event.rule)) for event in late.forbidden] == [(3, "agent says /guarantee/")]
    # Malformed arguments are unknown: not even an absent one is known to be absent.
    unreadable = conversation(called("a"), [Call("cancel_order", {}, malformed="{")])
    assert score(strict, unreadable).goal_completed is True
    # A forbidden call is forbidden whether or not it succeeds.
    failed = score(strict, conversation(called("a"), called("cancel_order", "Error: which order?")))
    assert (failed.goal_completed, failed.forbidden[0].event) == (False, 3)


def test_calls_of_one_message_count_in_the_order_listed_once_their_results_are_there():
    calls = (Call("a", {}, "1"), Call("b", {}, "2"))
    in_order = Transcript((*calls, Result(2, "b", "ok"), Result(1, "a", "ok")))
    assert score(CHAIN, in_order).reached == {"Start": 0, "a": 1, "b": 2, "End": 2}
    swapped = Transcript((*calls[::-1], Result(1, "b", "ok"), Result(2, "a", "ok")))
    assert score(CHAIN, swapped).reached == {"Start": 0, "a": 2}
    waiting = score(CHAIN, Transcript(calls[:1]))
    assert (waiting.reached, waiting.observations.unanswered) == ({"Start": 0}, (1,))


def test_an_empty_gold_list_measures_only_forbidden_events():
    nothing = score(MilestoneGraph.from_actions([]), conversation(user("hello"), called("pay")))
    assert (nothing.goal_completed, nothing.progress_rate, nothing.progress_range) == (None, None, None)
    assert nothing.coverage is None
    strict = MilestoneGraph.from_actions([], forbidden=[{"tool": "pay"}])
    assert score(strict, conversation(user("hello"))).goal_completed is True
    assert score(strict, conversation(called("pay"))).goal_completed is False


def test_weights_are_exact_shares_of_the_way():
    half = make_graph("name: a, type: FC, weight: 0.5", "name: b, type: FC, dependencies: [a]", make_end("b"))
    assert score_calls(half, "a").progress_rate == 0.5 / 2.5  # a 0.5, b 1, End 1
    # Tenths have no exact float; the way has.
    tenths = make_graph(
        "name: a, type: FC, weight: 0.1",
        "name: b, type: FC, weight: 0.1, dependencies: [a]",
        "name: c, type: FC, weight: 0.1, dependencies: [b]",
        make_end("c", more=", weight: 0.1"),
    )
    assert score_calls(tenths, "a", "b").progress_rate == 2 / 4
    # A tiny rest of a long way is not rounded off.
    long = make_graph(
        f"name: a, type: FC, weight: {10**30}", "name: b, type: FC, dependencies: [a]", make_end("b")
    )
    assert score_calls(long, "a").progress_rate < score_calls(long, "a", "b").progress_rate == 1


GOLD = [
    {"name": "get_user", "kwargs": {"id": "u1"}},
    {"name": "cancel", "kwargs": {"order": 7, "options": {"a": 1, "b": [2]}}},
]


def test_gold_actions_count_in_their_order_or_in_any():
    calls = [called("get_user", id="u1"), called("cancel", options={"b": [2], "a": 1}, order=7.0)]
    ordered, unordered = MilestoneGraph.from_actions(GOLD), MilestoneGraph.from_actions(GOLD, ordered=False)
    assert score(ordered, conversation(*calls)).goal_completed is True
    # get_user of get_user, cancel, End.
    assert score(ordered, conversation(*calls[::-1])).progress_rate == 1 / 3
    assert score(unordered, conversation(*calls[::-1])).goal_completed is True
    # A call with other arguments is not the gold call, and one with more is.
    for changed, reached in (({"id": "u2"}, False), ({"id": "u1", "verbose": True}, True)):
        assert (
            "get_user" in score(unordered, conversation(called("get_user", **changed))).reached
        ) is reached


@pytest.mark.parametrize("ordered", [True, False])
def test_a_call_that_is_listed_thrice_must_be_made_thrice(ordered):
    actions = [{"name": "pay", "kwargs": {"sum": [{"x": number}]}} for number in (1, 1.0, 1)]
    thrice = MilestoneGraph.from_actions(actions, ordered=ordered)
    assert list(thrice) == ["Start", "pay", "pay (2)", "pay (3)", "End"]
    once = called("pay", sum=[{"x": 1}])
    assert [score(thrice, conversation(*[once] * n)).goal_completed for n in (2, 3)] == [False, True]


def test_gold_actions_may_be_spelled_otherwise_fail_or_be_named_like_an_end():
    gold = MilestoneGraph.from_actions([{"tool": "End", "arguments": {"sum": 3}}], failed_if="^Error")
    assert list(gold) == ["Start", "End (2)", "End"]
    assert score(gold, conversation(called("End", "Error: no funds", sum=3))).goal_completed is False
    assert score(gold, conversation(called("End", sum=3))).goal_completed is True
