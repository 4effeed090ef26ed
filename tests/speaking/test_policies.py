"""Policies: rules that are switched on one by one, in the prompt and held by code."""

from __future__ import annotations

import pytest

from arq_graph import AgentState, errors
from arq_graph.nodes import POLICIES, Policy
from tests.brain import act, ask, say
from tests.speaking.chat import A1, DESK, Chat, get_order

LOOK, CANCEL = act("get_order", A1), act("cancel_order", A1)
THAI, NONE, GREEK = (act("find_table", {"food": food}) for food in ("thai", "none", "greek"))
NONE_FOR_4 = act("find_table", {"food": "none", "guests": 4})
OWL = act("find_table", {"food": "owl"}, bases={"food": "ambiguous"})
HALF = {"half_request": True}
PROMISE = say("I refund it.", promises=[{"what": "a refund", "tool": None}])
UNSOURCED = say("It cannot be undone.", facts=[{"fact": "it cannot be undone", "source": None}])

HELD = {
    "narrow_many_results": ([THAI, say("Six."), ask("Six. Which part of town?")], "ask what narrows it down"),
    "widen_no_results": ([NONE, say("There is none."), ask("Elsewhere?")], "offer an alternative"),
    "weigh_requirements": ([NONE, NONE_FOR_4, say("None."), ask("Food or guests?")], "matters more"),
    "name_or_type": ([OWL, ask("Is The Owl a place?")], "it may be a name or a type"),
    "complete_half_requests": ([act("get_order", A1, **HALF), ask("Yes?", **HALF)], "only half said"),
    "decline_unserved": ([PROMISE, say("I cannot refund it.")], "decline it"),
    "attributes_from_calls": ([LOOK, UNSOURCED, say("I do not know.")], "it has no source in this prompt"),
}
HEARD = "A-1 is for a table at the owl, thai or none, for 4"


@pytest.mark.parametrize("policy", HELD)
def test_what_breaks_a_policy_is_asked_for_again_while_it_is_on(policy):
    script, complaint = HELD[policy]
    desk = Chat(script, policies=[policy])
    assert desk.hear(HEARD) == script[-1].text
    assert complaint in desk.asked[-1].complaint
    off = Chat(script, policies=[name for name in POLICIES if name != policy])
    off.hear(HEARD)
    assert not any(complaint in asked.complaint for asked in off.asked)


def test_what_is_untrue_is_never_said_and_what_is_only_unkind_is_in_the_end():
    assert Chat([PROMISE]).hear(HEARD) == DESK.fallback
    desk = Chat([NONE, say("None.")])
    assert desk.hear(HEARD) == "None."
    assert "offer an alternative" in desk.asked[-1].complaint  # of one search, nothing is weighed yet


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


@pytest.mark.parametrize(
    ("result", "listed"),
    [
        ('{"items": [1, 2, 3, 4, 5, 6], "page": 1}', "too_many"),
        ("[1, 2, 3, 4, 5]", None),
        ("six tables", None),
        ("[" * 100_000, None),
        ("[]", "empty"),
    ],
)
def test_entries_of_a_result_are_counted_by_its_form(result, listed):
    def find(word: str) -> str:
        """Find."""
        return result

    desk = Chat([act("find", {"word": "thai"}), say("Here.", choice_is_left_to_you=True)], [find])
    assert desk.hear("thai, surprise me") == "Here."
    for name in ("too_many", "empty"):
        assert desk.asked[1].now.get(name) == (["T1"] if name == listed else None)
    assert (len(desk.asked) == 2) is (listed != "empty")


def test_a_request_is_whole_once_something_was_found():
    desk = Chat([LOOK, say("It is late.", **HALF)])
    desk.hear("A-1 is for")
    assert len(desk.asked) == 2


@pytest.mark.parametrize(
    ("given", "basis", "policies", "put"),
    [
        (A1, "inferred", None, True),
        (A1, "another_request", None, True),
        (A1, "inferred", [], False),
        ({"food": "whatever", "area": "north"}, "does_not_matter", None, False),
        ({"food": "whatever", "guests": 9}, "does_not_matter", None, True),
        ({"food": "whatever", "area": "north"}, "known", None, True),
        ({"food": "whatever", "area": "north"}, "does_not_matter", [], True),
    ],
)
def test_a_guess_is_put_to_the_customer_but_the_tools_own_word_for_any_value_is_none(
    given, basis, policies, put
):
    tool = "get_order" if given is A1 else "find_table"
    desk = Chat([act(tool, given, bases=dict.fromkeys(given, basis)), say("Well.")], policies=policies)
    said = desk.hear("And A-1? A table, I do not mind which")
    assert (said.endswith("Reply yes to go ahead."), desk.calls == []) == (put, put)


class Books(AgentState, total=False):
    closed: bool


FROZEN = Policy(
    "frozen",
    "While the books are closed, nothing is changed.",
    forbids=lambda state: ["get_order", "cancel_order"] if state.get("closed") else [],
)


async def look_up_first(state):
    return ["get_order"]


FIRST = Policy("first", "Look the order up first.", requires=look_up_first)


def frozen(script):
    return Chat(script, policies=[FROZEN], state_schema=Books, input_schema=Books)


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
    now = desk.asked[-1].now
    assert now["refused"][0]["tool"] == "cancel_order"
    assert FROZEN.rule in now["refused"][0]["why"]
    assert "asked_about_again" not in now


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


def test_a_policy_opens_no_gate_and_names_no_tool_that_does_not_exist():
    first = Policy("first", "Cancel first.", requires=lambda state: ["cancel_order"])
    desk = Chat([CANCEL], policies=[first])
    assert desk.hear("A-1").endswith("Reply yes to go ahead.")
    assert desk.calls == []
    with pytest.raises(errors.InputError, match="did you mean `name_or_type`"):
        Chat([], policies=["name_or_tipe"])
    wrong = Policy("p", "r", forbids=lambda state: ["get_ordr"])
    with pytest.raises(errors.InputError, match="did you mean `get_order`"):
        Chat([say("Hi.")], [get_order], policies=[wrong]).hear("Hi")
