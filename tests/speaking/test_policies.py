"""Policies: rules that are switched on one by one, in the prompt and held by code."""

from __future__ import annotations

import pytest

from arq_graph import AgentState, errors
from arq_graph.nodes import POLICIES, Policy
from tests.brain import act, ask, say
from tests.speaking.chat import A1, DESK, Chat, get_order

LOOK, CANCEL = act("get_order", A1), act("cancel_order", A1)
THAI, NONE, GREEK = (act("find_table", {"food": food}) for food in ("thai", "none", "greek"))


class Books(AgentState, total=False):
    closed: bool


FROZEN = Policy(
    "frozen",
    "While the books are closed, nothing is changed.",
    forbids=lambda state: ["get_order", "cancel_order"] if state.get("closed") else [],
)
FIRST = Policy("first", "Look the order up first.", requires=lambda state: ["get_order"])


def frozen(script):
    return Chat(script, policies=[FROZEN], state_schema=Books, input_schema=Books)


def test_all_shipped_ones_are_on_unless_said():
    for policies, names in ((None, list(POLICIES)), (["name_or_type"], ["name_or_type"]), ([], None)):
        desk = Chat([say("Hello.")], policies=policies)
        desk.hear("Hi")
        shown = desk.asked[0].section("policies")
        assert (shown and [each["name"] for each in shown]) == names
        asked = str(desk.asked[0].schema)
        for query in ("promises", "facts", "half_request", "choice_is_left_to_you"):
            assert (query in asked) is (policies is None)
    assert len(POLICIES) == 10


def test_too_many_results_are_narrowed_down_unless_the_choice_is_left():
    desk = Chat([THAI, say("Six."), ask("Six. Which part of town?")])
    assert desk.hear("thai food") == "Six. Which part of town?"
    assert desk.asked[1].now["too_many"] == ["T1"]
    assert "ask what narrows it down" in desk.asked[2].complaint
    picked = say("I took the first.", choice_is_left_to_you=True)
    for settings in ({}, {"policies": []}):
        desk = Chat([THAI, say("I took the first.") if settings else picked], **settings)
        desk.hear("thai food, surprise me")
        assert len(desk.asked) == 2


@pytest.mark.parametrize(
    ("result", "is_many"),
    [
        ('{"items": [1, 2, 3, 4, 5, 6], "page": 1}', True),
        ("[1, 2, 3, 4, 5]", False),
        ("six tables", False),
        ("[" * 100_000, False),
    ],
)
def test_entries_of_a_result_are_counted_by_its_form(result, is_many):
    def find(word: str) -> str:
        """Find."""
        return result

    desk = Chat([act("find", {"word": "thai"}), say("Here.")], [find])
    desk.hear("thai")
    assert ("too_many" in desk.asked[1].now) is is_many


def test_after_no_result_the_search_is_widened_and_wishes_are_weighed():
    desk = Chat([NONE, say("There is none."), ask("None. Shall I look elsewhere?")])
    assert desk.hear("none") == "None. Shall I look elsewhere?"
    assert desk.asked[1].now["empty"] == ["T1"]
    assert "offer an alternative" in desk.asked[2].complaint
    twice = Chat([NONE, act("find_table", {"food": "none", "guests": 4}), say("There is none.")])
    assert twice.hear("none, for 4") == "There is none."  # said all the same: it is no breach
    assert "which wish matters more" in twice.asked[3].complaint


def test_a_request_that_the_model_takes_for_half_is_asked_about():
    look = act("get_order", A1, half_request=True)
    desk = Chat([look, ask("Yes?", half_request=True)])
    assert desk.hear("A-1 is for") == "Yes?"
    assert "only half said" in desk.asked[1].complaint
    assert desk.calls == []
    done = Chat([LOOK, say("It is late.", half_request=True)])
    done.hear("A-1 is for")
    assert len(done.asked) == 2  # once something was found, it is whole


def test_what_no_tool_serves_is_declined():
    promise = say("I refund it.", promises=[{"what": "a refund", "tool": None}])
    desk = Chat([promise, say("I cannot refund it.")])
    assert desk.hear("Refund A-1") == "I cannot refund it."
    assert "decline it" in desk.asked[1].complaint
    assert Chat([promise]).hear("Refund A-1") == DESK.fallback


@pytest.mark.parametrize(
    ("basis", "policy"), [("inferred", True), ("another_request", True), ("inferred", False)]
)
def test_a_value_that_is_inferred_or_carried_over_is_put_to_the_customer(basis, policy):
    desk = Chat([act("get_order", A1, bases={"order_id": basis})], policies=None if policy else [])
    desk.hear("And A-1?")
    assert len(desk.calls) == (0 if policy else 1)
    assert desk.messages[-1].text.endswith("Reply yes to go ahead.") is policy


def test_a_value_that_may_be_a_name_or_a_type_is_asked_about():
    owl = act("find_table", {"food": "owl"}, bases={"food": "ambiguous"})
    desk = Chat([owl, ask("Is The Owl a place?")])
    assert desk.hear("A table at the owl") == "Is The Owl a place?"
    assert "name or a type" in desk.asked[1].complaint
    assert Chat([owl, say("Hm.")], policies=[]).hear("A table at the owl") == "Hm."


@pytest.mark.parametrize(
    ("given", "put"),
    [({"food": "whatever", "area": "north"}, False), ({"food": "whatever", "guests": 9}, True)],
)
def test_what_the_customer_does_not_care_about_is_no_guess_where_it_is_the_tool_s_own_word(given, put):
    script = [act("find_table", given, bases=dict.fromkeys(given, "does_not_matter")), say("Well.")]
    for policies in (None, []):
        desk = Chat(script, policies=policies)
        said = desk.hear("A table, I do not mind which")
        is_put = put or policies == []
        assert (said.endswith("Reply yes to go ahead."), desk.calls == []) == (is_put, is_put)


def test_a_policy_forbids_a_tool_by_state_and_says_why():
    desk = frozen([LOOK, say("The books are closed.")])
    assert desk.hear("Where is A-1?", closed=True) == "The books are closed."
    assert desk.calls == []
    assert desk.asked[0].now["candidates"] == ["find_table"]
    assert desk.asked[0].now["forbidden"] == {"get_order": "frozen", "cancel_order": "frozen"}
    assert FROZEN.rule in desk.asked[1].complaint
    assert FROZEN.rule in desk.state["tool_insights"][-1]["problem"]
    desk = frozen([LOOK, say("Late.")])
    desk.hear("Where is A-1?", closed=False)
    assert desk.calls == [("get_order", A1)]


def test_what_was_agreed_to_is_refused_where_a_policy_forbids_it_by_then_and_it_is_said_why():
    desk = frozen([*[CANCEL] * 3, say("It is too late.")])
    desk.hear("Cancel A-1", closed=False)
    assert desk.hear("Yes", closed=True) == "It is too late."
    assert desk.calls == []
    assert desk.asked[-1].now["refused"][0]["tool"] == "cancel_order"
    assert FROZEN.rule in desk.asked[-1].now["refused"][0]["why"]
    assert "asked_about_again" not in desk.asked[-1].now


def test_a_policy_requires_a_tool_before_anything_else_save_questions():
    desk = Chat([GREEK, say("Fine."), LOOK, GREEK, say("The Owl.")], policies=[FIRST])
    desk.hear("greek for A-1")
    assert desk.asked[0].now["required_first"] == ["get_order"]
    assert "requires get_order first" in desk.asked[1].complaint
    assert "requires get_order first" in desk.asked[2].complaint
    assert [tool for tool, _ in desk.calls] == ["get_order", "find_table"]
    assert Chat([ask("Which order?")], policies=[FIRST]).hear("Hi") == "Which order?"
    never = Policy("never", "Nothing is looked up.", forbids=lambda state: ["get_order"])
    assert Chat([say("Closed.")], policies=[FIRST, never]).hear("Hi") == "Closed."


def test_a_policy_never_opens_the_gate():
    first = Policy("first", "Cancel first.", requires=lambda state: ["cancel_order"])
    desk = Chat([CANCEL], policies=[first])
    assert desk.hear("A-1").endswith("Reply yes to go ahead.")
    assert desk.calls == []


def test_a_tool_that_does_not_exist_is_told():
    wrong = Policy("p", "r", forbids=lambda state: ["get_ordr"])
    with pytest.raises(errors.InputError, match="did you mean `get_order`"):
        Chat([say("Hi.")], [get_order], policies=[wrong]).hear("Hi")
