"""Every clause of the definition on a graph made by hand; each number is worked out beside it."""

from __future__ import annotations

import pytest

from arq_graph.milestones import (
    Call,
    MilestoneGraph,
    Result,
    Transcript,
    score,
)
from tests.milestones.conversations import agent, called, conversation, graph_of, user

CHAIN = """
milestones:
- {name: Start, type: NFC}
- {name: a, type: FC, dependencies: [Start]}
- {name: b, type: FC, dependencies: [a]}
- {name: End, type: NFC, dependencies: [b]}
"""

BRANCHES = """
milestones:
- {name: Start, type: NFC}
- {name: get_order, type: FC, dependencies: [Start]}
- {name: refund, type: FC, dependencies: [get_order]}
- {name: expedite, type: FC, dependencies: [get_order]}
- {name: transfer, type: FC, dependencies: [get_order]}
- {name: close, type: FC, dependencies: [refund, expedite, transfer]}
- {name: End, type: NFC, dependencies: [close]}
"""

JOIN = """
milestones:
- {name: Start, type: NFC}
- {name: a, type: FC, dependencies: [Start]}
- {name: b, type: FC, dependencies: [Start]}
- {name: both, type: Aggregator, dependencies: [a, b]}
- {name: End, type: NFC, dependencies: [both]}
"""


def test_nothing_reached_is_no_progress():
    measured = score(graph_of(CHAIN), conversation(user("hello")))
    # Way: a, b, End = 3. Covered: 0.
    assert measured.progress_rate == 0
    assert measured.goal_completed is False
    assert measured.reached == {"Start": 0}
    assert measured.frontier == ("a",)
    assert measured.coverage == 0
    assert measured.path_taken == ("Start",)


def test_each_step_of_a_chain_is_a_third_of_the_way():
    graph = graph_of(CHAIN)
    # a: depth 1, left 2 (b, End).
    assert score(graph, conversation(called("a"))).progress_rate == 1 / 3
    # b: depth 2, left 1. Then End is reached at the same event.
    measured = score(graph, conversation(called("a"), called("b")))
    assert measured.progress_rate == 1
    assert measured.reached == {"Start": 0, "a": 1, "b": 3, "End": 3}
    assert measured.goal_completed is True


def test_a_branch_that_was_rightly_not_taken_costs_nothing():
    graph = graph_of(BRANCHES)
    done = score(graph, conversation(called("get_order"), called("refund"), called("close")))
    assert done.progress_rate == 1
    # get_order, refund, close, End of get_order, refund, expedite, transfer, close, End.
    assert done.coverage == 4 / 6
    assert done.path_taken == ("Start", "get_order", "refund", "close", "End")
    # refund: depth 2 (get_order, refund), left 2 (close, End).
    half = score(graph, conversation(called("get_order"), called("refund")))
    assert half.progress_rate == 2 / 4
    assert half.frontier == ("expedite", "transfer", "close")


def test_what_came_in_the_wrong_order_counts_from_when_it_is_done_again():
    graph = graph_of(CHAIN)
    wrong = score(graph, conversation(called("b"), called("a")))
    assert wrong.reached == {"Start": 0, "a": 3}
    assert wrong.progress_rate == 1 / 3
    assert wrong.wasted_calls == (1,)
    again = score(graph, conversation(called("b"), called("a"), called("b")))
    assert again.reached == {"Start": 0, "a": 3, "b": 5, "End": 5}
    assert again.repeated_calls == (5,)


CYCLE = """
milestones:
- {name: Start, type: NFC}
- {name: ask, type: FC, dependencies: [Start]}
- {name: x, type: FC, dependencies: [ask, y]}
- {name: y, type: FC, dependencies: [ask, x]}
- {name: End, type: NFC, dependencies: [x, y], requires: all}
"""


@pytest.mark.parametrize("order", ["xy", "yx"])
def test_a_cycle_may_be_walked_in_either_order(order):
    graph = graph_of(CYCLE)
    measured = score(graph, conversation(called("ask"), *(called(tool) for tool in order)))
    assert measured.progress_rate == 1
    assert measured.reached[order[0]] == 3
    assert measured.reached[order[1]] == 5


def test_what_is_forbidden_counts_also_after_end():
    graph = graph_of("""
forbidden:
- {tool: cancel_order, arguments: {order_id: {absent: true}}}
- {said_by: agent, pattern: guarantee}
milestones:
- {name: Start, type: NFC}
- {name: a, type: FC}
- {name: End, type: NFC, dependencies: [a]}
""")
    good = score(
        graph, conversation(called("a"), called("cancel_order", order_id="O1"), user("I guarantee it"))
    )
    assert good.goal_completed is True
    late = score(graph, conversation(called("a"), agent("That I can guarantee.")))
    assert late.goal_completed is False
    assert late.progress_rate == 1
    assert [(one.event, str(one.rule)) for one in late.forbidden] == [(3, "agent says /guarantee/")]
    # A call that is forbidden is forbidden whatever came of it.
    failed = score(graph, conversation(called("a"), called("cancel_order", "Error: which order?")))
    assert failed.goal_completed is False
    assert failed.forbidden[0].event == 3


TWO_UNDECIDED = """
milestones:
- {name: Start, type: NFC}
- {name: get_order, type: FC, dependencies: [Start]}
- {name: Customer Agrees, type: NFC, dependencies: [get_order]}
- {name: Customer Is Told, type: NFC, dependencies: [Customer Agrees]}
- {name: End, type: NFC, dependencies: [Customer Is Told]}
"""


def test_two_undecided_on_one_road_make_a_range():
    graph = graph_of(TWO_UNDECIDED)
    measured = score(graph, conversation(called("get_order"), agent("Shall I?"), user("Yes.")))
    # None observed: get_order of get_order, agrees, told, End. All at every event: agrees at 2, told at 3.
    assert measured.progress_range == (1 / 4, 1.0)
    assert measured.progress_rate is None
    assert measured.goal_completed is None
    assert measured.undecided == ("Customer Agrees", "Customer Is Told")
    assert measured.possibly_reached["Customer Is Told"] == 3
    assert measured.reached == {"Start": 0, "get_order": 1}


def test_an_nfc_may_be_checked_on_the_result_of_the_call_before_it():
    graph = graph_of("""
milestones:
- {name: Start, type: NFC}
- {name: get_order, type: FC}
- {name: Delivered, type: NFC, check: {said_by: tool, pattern: delivered}, dependencies: [get_order]}
- {name: At Warehouse, type: NFC, check: {said_by: tool, pattern: warehouse}, dependencies: [get_order]}
- {name: End, type: NFC, dependencies: [Delivered, At Warehouse]}
""")
    measured = score(graph, conversation(user("Where is it?"), called("get_order", "status: delivered")))
    # The call is event 2, its result event 3: later than the call.
    assert measured.reached == {"Start": 0, "get_order": 2, "Delivered": 3, "End": 3}
    assert measured.wasted_calls == ()


def test_five_unordered_actions_go_up_in_sixths():
    graph = MilestoneGraph.from_actions([{"name": f"tool{i}"} for i in range(5)], ordered=False)
    rates = []
    for done in range(6):
        talk = conversation(user("go"), *(called(f"tool{i}") for i in reversed(range(done))))
        rates.append(score(graph, talk).progress_rate)
    # End requires all five: depth(End) = 1 (largest need) + 4 further + its own 1 = 6.
    assert rates == [0, 1 / 6, 2 / 6, 3 / 6, 4 / 6, 1]


def test_a_state_that_holds_may_come_before_its_dependencies():
    text = """
milestones:
- {name: Start, type: NFC}
- {name: get_order, type: FC}
- name: Is Vip
  type: NFC
  check: {said_by: user, pattern: vip}
  holds: true
  dependencies: [get_order]
- {name: End, type: NFC, dependencies: [Is Vip]}
"""
    talk = conversation(user("I am a vip"), called("get_order"))
    # get_order at 2; the state still holds at 3, the first event after it.
    assert score(graph_of(text), talk).reached == {"Start": 0, "get_order": 2, "Is Vip": 3, "End": 3}
    # What does not hold was over at 1.
    assert score(graph_of(text.replace("  holds: true\n", "")), talk).goal_completed is False


def test_one_event_may_serve_several_independent_milestones():
    graph = graph_of("""
milestones:
- {name: Start, type: NFC}
- {name: any order, type: FC, tool: get_order}
- {name: order 7, type: FC, tool: get_order, arguments: {id: 7}}
- {name: order 7 again, type: FC, tool: get_order, arguments: {id: 7}, dependencies: [order 7]}
- {name: End, type: NFC, dependencies: [any order, order 7], requires: all}
""")
    measured = score(graph, conversation(called("get_order", id=7)))
    assert measured.goal_completed is True
    # ... but not two of which one comes before the other.
    assert "order 7 again" not in measured.reached


def test_calls_of_one_message_count_in_the_order_listed():
    graph = graph_of(CHAIN)
    calls = (Call("a", {}, "1"), Call("b", {}, "2"))
    in_order = Transcript((*calls, Result(2, "b", "ok"), Result(1, "a", "ok")))
    assert score(graph, in_order).reached == {"Start": 0, "a": 1, "b": 2, "End": 2}
    swapped = Transcript((*calls[::-1], Result(1, "b", "ok"), Result(2, "a", "ok")))
    assert score(graph, swapped).reached == {"Start": 0, "a": 2}


def test_a_call_counts_once_its_result_is_there():
    graph = graph_of(CHAIN)
    waiting = score(graph, Transcript((Call("a", {}),)))
    assert waiting.reached == {"Start": 0}
    assert waiting.observations.unanswered == (1,)


def test_an_empty_gold_list_measures_nothing():
    graph = MilestoneGraph.from_actions([])
    measured = score(graph, conversation(user("hello"), called("anything")))
    assert measured.goal_completed is None
    assert measured.progress_rate is None
    assert measured.progress_range is None
    assert measured.coverage is None


def test_an_empty_gold_list_with_something_forbidden_measures_that():
    rules = graph_of(
        "forbidden: [{tool: pay}]\nmilestones: [{name: Start, type: NFC}, {name: End, type: NFC}]"
    ).forbidden
    graph = MilestoneGraph.from_actions([], forbidden=rules)
    assert score(graph, conversation(user("hello"))).goal_completed is True
    assert score(graph, conversation(called("pay"))).goal_completed is False


def rate(graph: MilestoneGraph, *tools: str) -> float | None:
    """The progress rate once these tools were called, one after the other."""
    return score(graph, conversation(user("go"), *(called(tool) for tool in tools))).progress_rate


def test_a_join_half_done_counts_half_of_it():
    graph = graph_of(JOIN)
    # both: depth = the largest need (1) + 1 further = 2; End 1. Need of both now 1: (2 - 1) / (2 + 1).
    assert rate(graph, "a") == 1 / 3
    # b at event 1, a at event 3; the join and End take the event of the last.
    whole = score(graph, conversation(called("b"), called("a")))
    assert whole.reached == {"Start": 0, "b": 1, "a": 3, "both": 3, "End": 3}


def test_a_join_that_requires_any_is_reached_with_the_first_and_is_no_step():
    graph = graph_of(JOIN.replace("type: Aggregator", "type: Aggrigator, requires: any"))
    assert score(graph, conversation(called("b"))).reached == {"Start": 0, "b": 1, "both": 1, "End": 1}
    # A step after the join: a or b, then c, then End.
    longer = graph_of(
        JOIN.replace("type: Aggregator", "type: Aggregator, requires: any").replace(
            "- {name: End, type: NFC, dependencies: [both]}",
            "- {name: c, type: FC, dependencies: [both]}\n- {name: End, type: NFC, dependencies: [c]}",
        )
    )
    assert rate(longer, "a") == 1 / 3
    assert score(longer, conversation(called("a"))).frontier == ("b", "c")


def test_joins_of_either_kind_nest():
    graph = graph_of("""
milestones:
- {name: Start, type: NFC}
- {name: a, type: FC}
- {name: b, type: FC}
- {name: c, type: FC}
- {name: d, type: FC}
- {name: ab, type: Aggregator, dependencies: [a, b]}
- {name: cd, type: Aggregator, dependencies: [c, d]}
- {name: one pair, type: Aggregator, requires: any, dependencies: [ab, cd]}
- {name: End, type: NFC, dependencies: [one pair]}
""")
    # One pair takes 2, End 1. Half of one pair: 1 of 3; half of each is no more than that.
    assert rate(graph, "a") == 1 / 3
    assert rate(graph, "a", "c") == 1 / 3
    assert rate(graph, "c", "d") == 1
    assert score(graph, conversation(called("c"), called("d"))).path_taken == (
        "Start",
        "c",
        "d",
        "cd",
        "one pair",
        "End",
    )


def test_requires_all_waits_like_a_join_but_is_a_step_of_its_own():
    graph = graph_of(JOIN.replace("type: Aggregator", "type: FC, requires: all"))
    # both: depth 1 (its own) + 1 (largest need) + 1 (one further) = 3, then End: way 4. With a: (3 - 2) / 4.
    assert rate(graph, "a") == 1 / 4
    # Called before b it does not count: a and b done, both's need is 1: (3 - 1) / (3 + 1).
    early = score(graph, conversation(called("a"), called("both"), called("b")))
    assert early.progress_rate == 2 / 4
    assert early.frontier == ("both",)


def test_weights_are_shares_of_the_way():
    graph = graph_of(CHAIN.replace("name: a, type: FC", "name: a, type: FC, weight: 0.5"))
    assert rate(graph, "a") == 0.5 / 2.5  # a 0.5, b 1, End 1
    # Tenths have no exact float; the way has.
    tenths = graph_of("""
milestones:
- {name: Start, type: NFC}
- {name: a, type: FC, weight: 0.1}
- {name: b, type: FC, weight: 0.1, dependencies: [a]}
- {name: c, type: FC, weight: 0.1, dependencies: [b]}
- {name: End, type: NFC, weight: 0.1, dependencies: [c]}
""")
    assert rate(tenths, "a", "b") == 2 / 4


def test_a_long_way_with_a_tiny_rest_is_not_rounded_up_to_one():
    text = "- {name: Start, type: NFC}\n- {name: a, type: FC, weight: 1000000000000000000000000000000}\n"
    text += "- {name: b, type: FC, dependencies: [a]}\n- {name: End, type: NFC, dependencies: [b]}"
    assert rate(graph_of(text), "a") < 1
    assert rate(graph_of(text), "a", "b") == 1
