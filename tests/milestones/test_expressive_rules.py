"""Rules beyond order: what is forbidden and when, what may be skipped, arguments that refer, and end states."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from arq_graph.errors import SpecError
from arq_graph.milestones import (
    MilestoneGraph,
    Score,
    Transcript,
    Verdict,
    check_milestones,
    evaluate,
    parse_milestones,
    score,
)
from arq_graph.milestones.measure import with_goal
from tests.milestones.conversations import agent, called, conversation, user
from tests.milestones.evaluated import Answers, buyer, shop_agent, suite, talker


def make_graph(*lines: str, forbidden: str = "[]") -> MilestoneGraph:
    return parse_milestones(
        "\n".join(
            [f"forbidden: {forbidden}", "failed_if: ^error", "milestones:", "- {name: Start, type: NFC}"]
            + [f"- {{{line}}}" for line in lines]
        )
    )


CHAIN = make_graph(
    "name: find, type: FC",
    "name: insure, type: FC, optional: true, dependencies: [find]",
    "name: pay, type: FC, dependencies: [insure]",
    "name: send, type: FC, dependencies: [pay]",
    "name: End, type: NFC, dependencies: [send]",
)


def score_tools(graph: MilestoneGraph, *tools: str) -> Score:
    return score(graph, conversation(*(called(tool) for tool in tools)))


def test_an_optional_milestone_may_be_skipped_and_counts_where_it_is_reached():
    skipped = score_tools(CHAIN, "find", "pay")
    # Way: find, pay, send, End.
    assert (skipped.progress_rate, skipped.path_taken) == (2 / 4, ("Start", "find", "pay"))
    taken = score_tools(CHAIN, "find", "insure", "pay")
    assert (taken.progress_rate, taken.path_taken) == (3 / 5, ("Start", "find", "insure", "pay"))
    assert score_tools(CHAIN, "find").frontier == ("insure", "pay")
    assert score_tools(CHAIN, "find", "insure").progress_rate == 2 / 5
    # It counts late, too, but not before its own dependencies, as ever; and it replaces nothing.
    assert score_tools(CHAIN, "find", "pay", "insure").progress_rate == 3 / 5
    assert score_tools(CHAIN, "insure", "find").progress_rate == 1 / 4
    assert score_tools(CHAIN, "insure", "pay").progress_rate == 0
    assert score_tools(CHAIN, "find", "pay", "send").goal_completed


def test_a_required_milestone_among_optional_ones_is_all_that_is_required():
    graph = make_graph(
        "name: greet, type: FC, optional: true",
        "name: insure, type: FC, optional: true",
        "name: pay, type: FC",
        "name: End, type: NFC, requires: all, dependencies: [greet, insure, pay]",
    )
    assert score_tools(graph, "pay").goal_completed
    # Way: greet, pay, End; then greet, insure, pay, End.
    assert score_tools(graph, "greet").progress_rate == 1 / 3
    assert score_tools(graph, "greet", "insure").progress_rate == 2 / 4


def test_a_goal_that_is_optional_is_required_by_those_who_have_it():
    graph = with_goal(CHAIN, "insure")
    assert not score_tools(graph, "find", "pay", "send").goal_completed
    assert score_tools(graph, "find", "insure", "pay", "send").goal_completed


def test_a_graph_of_optional_milestones_alone_measures_nothing():
    graph = make_graph("name: greet, type: FC, optional: true", "name: End, type: NFC, dependencies: [greet]")
    assert "End needs nothing to happen" in str(check_milestones(graph)[0])
    assert score_tools(graph, "greet").goal_completed is None


def find_forbidden(rule: str, *parts: list) -> list[int]:
    graph = make_graph(
        "name: check, type: FC", "name: End, type: NFC, dependencies: [check]", forbidden=f"[{rule}]"
    )
    result = score(graph, conversation(*parts))
    assert result.goal_completed is (not result.forbidden and "check" in result.reached)
    return [event.event for event in result.forbidden]


def test_an_event_is_forbidden_only_before_a_milestone():
    rule = "{tool: transfer, before: check}"
    assert find_forbidden(rule, called("check"), called("transfer")) == []
    # A failed check doesn't count, and an early transfer isn't mended by a later one.
    early = (
        called("transfer"),
        called("check", "error"),
        called("transfer"),
        called("check"),
        called("transfer"),
    )
    assert find_forbidden(rule, *early) == [1, 5]
    assert find_forbidden("{pattern: balance, said_by: agent, before: check}", agent("balance")) == [1]


def test_a_forbidden_call_that_failed_can_be_ignored():
    attempts = (called("refund", "error: no"), called("refund", "done"))
    assert find_forbidden("{tool: refund}", *attempts) == [1, 3]
    assert find_forbidden("{tool: refund, failed: ignore}", *attempts) == [3]
    # Nobody knows whether a call without a result has failed. An attempt that is ignored uses no exception up.
    unless = "{tool: refund, failed: ignore, unless: [{id: 1}]}"
    assert find_forbidden(unless, called("refund", "error", id=1), called("refund", id=1)) == []
    assert find_forbidden("{tool: refund, failed: ignore}", called("refund")[:1]) == [1]


def test_a_rule_that_depends_on_an_undecided_milestone_leaves_the_goal_open():
    graph = make_graph(
        "name: Agreed, type: NFC",
        "name: pay, type: FC",
        "name: End, type: NFC, dependencies: [pay]",
        forbidden="[{tool: pay, before: Agreed}]",
    )
    open_result = score(graph, conversation(user("yes"), called("pay")))
    assert (open_result.goal_completed, open_result.progress_rate, open_result.forbidden) == (None, 1, ())


def observe_cancel(constraint: str, *parts: list) -> Transcript:
    graph = make_graph(
        "name: found, type: FC, tool: find",
        f"name: cancel, type: FC, arguments: {{id: {constraint}}}, dependencies: [found]",
        "name: End, type: NFC, dependencies: [cancel]",
    )
    return score(graph, conversation(*parts)).observations.events.get("cancel", ())


def test_an_argument_equals_what_a_tool_returned_before():
    found = called("find", '{"orders": [{"id": 7}, {"id": 8}], "user": {"cards": ["a", "b"]}}')
    orders, cards = "{equals_result_of: find.orders.id}", "{equals_result_of: find.user.cards}"
    assert observe_cancel(orders, found, called("cancel", id=8), called("cancel", id=9)) == (3,)
    assert observe_cancel(cards, found, called("cancel", id="b"), called("cancel", id="c")) == (3,)
    assert observe_cancel("{equals_result_of: find}", called("find", "A-1"), called("cancel", id="A-1")) == (
        3,
    )
    # Not what a failed call returned, nor what comes later.
    assert observe_cancel(orders, called("cancel", id=8), found) == ()
    failed = called("find", "error: {}")
    assert observe_cancel("{equals_result_of: find}", failed, called("cancel", id="error: {}")) == ()


def test_an_argument_equals_that_of_the_call_of_a_milestone():
    same = "{equals_argument_of: found.order}"
    assert observe_cancel(same, called("find", order=7), called("cancel", id=7), called("cancel", id=8)) == (
        3,
    )
    assert observe_cancel(same, called("cancel", id=7), called("find", order=7)) == ()
    assert observe_cancel(same, called("find", "error", order=7), called("cancel", id=7)) == ()


def test_a_pattern_is_searched_in_the_results_of_one_tool():
    graph = make_graph(
        "name: done, type: NFC, check: {said_by: tool, tool: get_status, pattern: ok}",
        "name: End, type: NFC, dependencies: [done]",
    )
    assert score(graph, conversation(called("other"), called("get_status"))).reached["done"] == 4


def make_state_graph(function: str) -> MilestoneGraph:
    return make_graph(
        "name: pay, type: FC",
        f'name: Right, type: NFC, state: "tests.milestones.end_states:{function}", dependencies: [pay]',
        "name: End, type: NFC, dependencies: [Right]",
    )


def test_an_end_state_is_asked_once_after_the_conversation():
    paid = conversation(called("pay"))
    done = score(make_state_graph("was_paid"), paid)
    assert (done.goal_completed, done.reached["Right"]) == (True, 3)
    assert score(make_state_graph("was_paid"), conversation(user("hi"))).goal_completed is False
    # Where the function can't tell, here without a world, the measure is a range. No judge decides it.
    graph = make_state_graph("is_world_tidy")
    open_result = score(graph, paid, judge=lambda *_: [Verdict("Right", True, 2, "ok")])
    assert (open_result.goal_completed, open_result.progress_range) == (None, (1 / 3, 1))
    assert open_result.undecided == ("Right",)
    tidy = replace(paid, world=SimpleNamespace(tidy=True))
    assert score(graph, tidy).goal_completed is True


def test_nothing_follows_an_end_state():
    graph = make_graph(
        "name: Right, type: NFC, state: 'a:b'",
        "name: pay, type: FC, dependencies: [Right]",
        "name: End, type: NFC, dependencies: [Right, pay]",
    )
    [warning] = check_milestones(graph)
    assert (warning.line, warning.message[:26]) == (6, "'pay' can't follow 'Right'")


def test_an_end_state_that_raises_is_named_with_its_line():
    with pytest.raises(SpecError, match="line 6: the check of milestone 'Right' fails at the end: KeyError"):
        score(make_state_graph("fail"), conversation(called("pay")))


def test_an_answer_of_an_end_state_other_than_true_false_or_none_is_an_error():
    with pytest.raises(SpecError, match=r"line 6: .* returns True, False or None, and not 'yes'"):
        score(make_state_graph("answer_in_words"), conversation(called("pay")))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "forbidden: [{tool: a, before: chekc}]",
            "`before` names 'chekc', which isn't a milestone; did you mean",
        ),
        ("forbidden: [{tool: a, before: Start}]", "nothing happens before Start"),
        ("forbidden: [{pattern: a, failed: ignore}]", "`failed` goes with `tool`, not with `pattern`"),
        ("forbidden: [{tool: a, said_by: user}]", "`said_by` goes with `pattern`, not with `tool`"),
        ("forbidden: [{tool: a, failed: ignroe}]", "did you mean `ignore`"),
        (
            "forbidden: [{tool: a, unless: [{id: {equals_argument_of: pay.id}}]}]",
            "isn't MILESTONE.argument of an FC",
        ),
    ],
)
def test_a_wrong_rule_is_an_error_with_its_line(line, message):
    milestones = "- {name: Start, type: NFC}\n- {name: check, type: FC}\n- {name: End, type: NFC}"
    check_mistake(f"{line}\nmilestones:\n{milestones}\n", 1, message)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            "arguments: {id: {equals_argument_of: chekc.id}}",
            "isn't MILESTONE.argument of an FC; did you mean `check`",
        ),
        (
            "arguments: {id: {equals_argument_of: check}}",
            "`equals_argument_of: check` isn't MILESTONE.argument",
        ),
        (
            "arguments: {id: {equals_argument_of: pay.id}}",
            "'pay' can never be observed: its arguments refer to",
        ),
        ("state: 'a:b'", "`state` is a key of an NFC, and 'pay' is an FC"),
        ("arguments: {id: {equals_result_of: a..id}}", "`equals_result_of: a..id` has an empty key"),
        ("arguments: {id: {equals_result_of: a, equals_argument_of: b.c}}", "give one of them"),
    ],
)
def test_a_wrong_milestone_is_an_error_with_its_line(fields, message):
    text = "- {name: Start, type: NFC}\n- {name: check, type: FC}\n"
    check_mistake(f"{text}- {{name: pay, type: FC, {fields}}}\n- {{name: End, type: NFC}}\n", 3, message)


def test_a_check_of_one_tool_is_said_by_it():
    check_mistake(
        "- {name: a, type: NFC, check: {tool: t, pattern: x}}", 1, "write `said_by: tool` beside it"
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("type: NFC, state: paid", "must be `module:function`, but is 'paid'"),
        ("type: NFC, state: 'a:b', holds: true", "leave out `holds`"),
        ("type: NFC, state: 'a:b', check: 'a:b'", "leave out `check`"),
        ("type: FC, by: usr", "did you mean `user`?"),
        ("type: NFC, by: user", "`by` is a key of an FC, and 'a' is an NFC"),
        ("type: Aggregator, optional: true", "a can't be optional: only FC and NFC milestones can"),
    ],
)
def test_a_wrong_key_is_an_error_with_its_line(fields, message):
    check_mistake(f"- {{name: Start, type: NFC}}\n- {{name: a, {fields}}}\n", 2, message)


def check_mistake(text: str, line: int, message: str) -> None:
    """Expect that reading and checking a file tell one mistake."""
    try:
        [error] = check_milestones(parse_milestones(text)).errors
        assert (message in error.message, error.line) == (True, line), error
    except SpecError as error:
        assert (message in str(error), error.line) == (True, line), error


def test_tools_that_rules_name_are_compared_with_those_of_the_agent():
    graph = make_graph(
        "name: pay, type: FC, arguments: {id: {equals_result_of: fnid.id}}",
        "name: Done, type: NFC, check: {said_by: tool, tool: gte, pattern: ok}, dependencies: [pay]",
        "name: End, type: NFC, dependencies: [Done]",
    )
    first, second = check_milestones(graph, ["pay", "find", "get"]).errors
    assert "did you mean `find`" in first.message
    assert "did you mean `get`" in second.message


class LampShop:
    """A world: a shop that notes what it sells."""

    def __init__(self) -> None:
        self.tidy = True

    def find(self) -> str:
        """Find a lamp."""
        return "one lamp"

    def buy(self) -> str:
        """Buy it; the shop is then a mess."""
        self.tidy = False
        return "bought"


@pytest.mark.parametrize(("answer", "is_tidy"), [(talker, True), (buyer, False)])
def test_an_evaluation_asks_for_the_state_of_its_world(answer, is_tidy):
    def make_app(scenario: Any, agent: Any, model: Any, world: LampShop) -> Answers:
        def answer_in_world(messages: list[BaseMessage]) -> list[BaseMessage]:
            reply = answer(messages)
            if answer is buyer:
                world.buy()
            return reply

        return Answers(answer_in_world)

    graph = make_graph(
        'name: Tidy, type: NFC, state: "tests.milestones.end_states:is_world_tidy"',
        "name: End, type: NFC, dependencies: [Tidy]",
    )
    suite_in_shop = suite(world=LampShop, agent=shop_agent(), milestones=graph)
    [record] = evaluate(suite_in_shop, {"app": make_app}).conversations
    assert (record.goal_completed, record.undecided) == (is_tidy, ())
