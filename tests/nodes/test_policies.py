"""Policies: rules that are switched on one by one, in the prompt and held by code."""

from __future__ import annotations

import pytest

from arq_graph import InputError
from arq_graph.nodes.speaking.policies import POLICIES, Policy, entries_in, is_half_said
from arq_graph.nodes.speaking.speaker import Speaker
from tests.nodes.order_tools import A1, called, ran
from tests.nodes.speaker_desk import DESK, customer, move, said
from tests.speaking import act, ask, say, speaker

FOUND = '["one", "two", "three", "four", "five", "six"]'
ASKED = customer("Is there a table for A-1?")


def complained(update, asked):
    return asked[1].complaint if len(asked) > 1 else ""


def test_there_is_one_for_each_rule_and_all_are_on_unless_said():
    assert len(POLICIES) == 10
    _, asked = move([say("Hello.")], ASKED)
    assert [each["name"] for each in asked[0].section("policies")] == list(POLICIES)


def test_one_that_is_off_is_not_in_the_prompt():
    _, asked = move([say("Hello.")], ASKED, policies=["name_or_type"])
    assert [each["name"] for each in asked[0].section("policies")] == ["name_or_type"]
    _, asked = move([say("Hello.")], ASKED, policies=[])
    assert asked[0].section("policies") is None


def test_too_many_results_are_narrowed_down():
    update, asked = move([say("There are six."), ask("Six. Which part of town?")], ASKED, *ran(FOUND))
    assert asked[0].now["too_many"] == ["T1"]
    assert "ask what narrows it down" in complained(update, asked)
    assert said(update) == "Six. Which part of town?"


@pytest.mark.parametrize("words", ["Just pick one for A-1!", "Any of them, you choose", "Surprise me"])
def test_unless_the_customer_leaves_the_choice(words):
    update, asked = move([say("I took the first.")], customer(words), *ran(FOUND))
    assert asked[0].now["told_to_pick"]
    assert (len(asked), said(update)) == (1, "I took the first.")


def test_how_many_are_too_many_can_be_set():
    assert len(move([say("There are six.")], ASKED, *ran(FOUND), max_results=6)[1]) == 1
    assert len(move([say("There are six.")], ASKED, *ran(FOUND), policies=[])[1]) == 1


def test_after_no_result_the_search_is_widened():
    update, asked = move([say("There is none."), ask("None. Shall I look elsewhere?")], ASKED, *ran("[]"))
    assert asked[0].now["empty"] == ["T1"]
    assert "offer an alternative" in complained(update, asked)
    assert said(update) == "None. Shall I look elsewhere?"


def test_wishes_that_cannot_all_be_met_are_weighed():
    other = ran("[]", args={"order_id": "A-2"}, id="c2")
    update, asked = move([say("There is none.")], ASKED, *ran("[]"), *other)
    assert "which wish matters more" in complained(update, asked)
    assert said(update) == "There is none.", "said all the same, as it is no breach"


def test_a_request_that_is_half_said_is_asked_about():
    update, asked = move([act("get_order", A1), ask("For whom?")], customer("A-1 is a table for"))
    assert asked[0].now["half_request"]
    assert "only half said" in complained(update, asked)
    assert said(update) == "For whom?"


def test_what_no_tool_serves_is_declined():
    promise = {"what": "a refund", "tool": None}
    update, asked = move([say("I refund it.", promises=[promise]), say("I cannot refund it.")], ASKED)
    assert "decline it" in complained(update, asked)
    assert said(update) == "I cannot refund it."
    assert said(move([say("I refund it.", promises=[promise])], ASKED)[0]) == DESK.fallback


def test_attributes_come_from_a_call_and_not_from_memory():
    script = [say("It is red.", facts=[{"fact": "it is red", "source": None}]), act("get_order", A1)]
    update, asked = move(script, ASKED)
    assert "look it up" in complained(update, asked)
    assert called(update) == [("get_order", A1)]
    told = say("It is late.", facts=[{"fact": "it is late", "source": "T1"}])
    assert len(move([told], ASKED, *ran())[1]) == 1
    made_up = say("It is late.", facts=[{"fact": "it is late", "source": "T7"}])
    assert 'no \\"T7\\"' in move([made_up, told], ASKED, *ran())[1][1].complaint.replace('"T7"', '\\"T7\\"')


def test_what_is_not_held_is_not_asked_for():
    _, asked = move([say("Hi.")], ASKED, policies=["name_or_type"])
    assert "promises" not in str(asked[0].schema)
    assert "facts" not in str(asked[0].schema)


def test_a_policy_may_forbid_a_tool_by_state():
    frozen = Policy(
        "frozen",
        "While the books are closed, no order is looked up.",
        forbids=lambda s: ["get_order"] if s.get("closed") else [],
    )
    options = {"policies": [frozen], "reads": ["closed"]}
    update, asked = move(
        [act("get_order", A1), say("The books are closed.")], ASKED, state={"closed": True}, **options
    )
    assert "get_order" not in asked[0].now["candidates"]
    assert "a policy forbids get_order" in complained(update, asked)
    assert said(update) == "The books are closed."
    assert called(move([act("get_order", A1)], ASKED, state={"closed": False}, **options)[0])


def test_a_policy_may_require_a_tool_before_anything_else():
    first = Policy("first", "Look the order up first.", requires=lambda s: ["get_order"])
    table = act("find_table", {"guests": 1, "area": "north", "food": "thai"})
    wanted = customer("1 thai in the north, and A-1")
    update, asked = move([table, say("Fine."), act("get_order", A1)], wanted, policies=[first])
    assert asked[0].now["required_first"] == ["get_order"]
    assert "requires get_order first" in asked[1].complaint
    assert called(update) == [("get_order", A1)]
    assert called(move([table], wanted, *ran(), policies=[first])[0]) == [("find_table", dict(table.args))]
    assert said(move([ask("Which order?")], wanted, policies=[first])[0]) == "Which order?"


def test_a_policy_that_names_no_tool_of_the_agent_is_told():
    with pytest.raises(InputError, match="did you mean `get_order`"):
        move([say("Hi.")], ASKED, policies=[Policy("p", "r", forbids=lambda s: ["get_ordr"])])


@pytest.mark.parametrize(
    "wrong", ["name_or_type", ["name_or_tipe"], [1], ["name_or_type", "name_or_type"], 3]
)
def test_policies_that_do_not_exist_are_told(wrong):
    with pytest.raises(InputError, match="polic"):
        Speaker(speaker([]), DESK, policies=wrong)


@pytest.mark.parametrize(
    "fields", [{"name": ""}, {"rule": " "}, {"requires": ["get_order"]}, {"forbids": "x"}]
)
def test_a_policy_that_says_nothing_is_told(fields):
    with pytest.raises(InputError, match=next(iter(fields))):
        Policy(**{"name": "p", "rule": "r", **fields})


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("[1, 2]", 2),
        ("[]", 0),
        ('{"items": [1, 2, 3], "page": 1}', 3),
        ('{"items": [1], "total": 40}', 40),
        ('{"total": true}', None),
        ('{"a": 1}', None),
        ("two tables", None),
        ("[" * 100_000, None),
        ("7", None),
    ],
)
def test_entries_of_a_result_are_counted(text, entries):
    assert entries_in(text) == entries


@pytest.mark.parametrize(
    ("text", "half"),
    [
        ("I want a table for", True),
        ("I am interested in…", True),
        ("Well,", True),
        ("Book A-1", False),
        ("", False),
    ],
)
def test_half_a_request_is_seen(text, half):
    assert is_half_said(text) is half
