"""Policies: rules that are switched on one by one, in the prompt, and enforced by code."""

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

COMPLAINTS = {
    "narrow_many_results": ([THAI, say("Six."), ask("Six. Which part of town?")], "ask what narrows it down"),
    "widen_no_results": ([NONE, say("There is none."), ask("Elsewhere?")], "offer an alternative"),
    "weigh_requirements": ([NONE, NONE_FOR_4, say("None."), ask("Food or guests?")], "matters more"),
    "name_or_type": ([OWL, ask("Is The Owl a place?")], "it may be a name or a type"),
    "complete_half_requests": ([act("get_order", A1, **HALF), ask("Yes?", **HALF)], "only half said"),
    "decline_unserved": ([PROMISE, say("I cannot refund it.")], "decline it"),
    "attributes_from_calls": ([LOOK, UNSOURCED, say("I do not know.")], "it has no source in this prompt"),
}
REQUEST = "A-1 is for a table at the owl, thai or none, for 4"


@pytest.mark.parametrize("policy", COMPLAINTS)
def test_a_move_that_breaks_a_policy_is_asked_for_again_while_it_is_on(policy):
    script, complaint = COMPLAINTS[policy]
    chat = Chat(script, policies=[policy])
    assert chat.send(REQUEST) == script[-1].text
    assert complaint in chat.prompts[-1].complaint
    without = Chat(script, policies=[name for name in POLICIES if name != policy])
    without.send(REQUEST)
    assert not any(complaint in prompt.complaint for prompt in without.prompts)


def test_what_is_untrue_is_never_said_but_what_is_only_unkind_may_be():
    assert Chat([PROMISE]).send(REQUEST) == DESK.fallback
    chat = Chat([NONE, say("None.")])
    assert chat.send(REQUEST) == "None."
    assert "offer an alternative" in chat.prompts[-1].complaint  # of one search, nothing is weighed yet


def test_all_shipped_policies_are_on_by_default():
    for policies, names in ((None, list(POLICIES)), (["name_or_type"], ["name_or_type"]), ([], None)):
        chat = Chat([say("Hello.")], policies=policies)
        chat.send("Hi")
        section = chat.prompts[0].section("policies")
        assert (section and [policy["name"] for policy in section]) == names
        schema = str(chat.prompts[0].schema)
        for query in ("promises", "facts", "half_request", "choice_is_left_to_you"):
            assert (query in schema) is (policies is None)
    assert len(POLICIES) == 10


def test_entries_of_a_result_are_counted_by_its_form():
    results = iter(['{"items": [1, 2, 3, 4, 5, 6], "page": 1}', "[1, 2, 3, 4, 5]", "[" * 20_000, "[]"])

    def find(word: str) -> str:
        """Find."""
        return next(results)

    left_to_us = say("Here.", choice_is_left_to_you=True)
    for section in ("too_many", None, None, "empty"):
        chat = Chat([act("find", {"word": "thai"}), left_to_us], [find])
        assert chat.send("thai, surprise me") == "Here."
        for name in ("too_many", "empty"):
            assert chat.prompts[1].now.get(name) == (["T1"] if name == section else None)
        assert (len(chat.prompts) == 2) is (section != "empty")


def test_a_request_is_whole_once_something_was_found():
    chat = Chat([LOOK, say("It is late.", **HALF)])
    chat.send("A-1 is for")
    assert len(chat.prompts) == 2


NORTH = {"food": "whatever", "area": "north"}


@pytest.mark.parametrize(
    ("arguments", "basis", "policies", "is_confirmed"),
    [
        (A1, "inferred", None, True),
        (A1, "inferred", [], False),
        (NORTH, "does_not_matter", None, False),
        ({"food": "whatever", "guests": 9}, "does_not_matter", None, True),
        (NORTH, "does_not_matter", [], True),
    ],
)
def test_the_customer_confirms_a_guess_except_for_the_tools_own_word_for_any_value(
    arguments, basis, policies, is_confirmed
):
    tool = "get_order" if arguments is A1 else "find_table"
    call = act(tool, arguments, bases=dict.fromkeys(arguments, basis))
    chat = Chat([call, say("Well.")], policies=policies)
    reply = chat.send("And A-1? A table, I do not mind which")
    assert reply.endswith("Reply yes to go ahead.") is is_confirmed
    assert (chat.calls == []) is is_confirmed


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
    chat = frozen([LOOK, say("The books are closed.")])
    assert chat.send("Where is A-1?", closed=True) == "The books are closed."
    assert chat.calls == []
    assert chat.prompts[0].now["candidates"] == ["find_table"]
    assert chat.prompts[0].now["forbidden"] == {"get_order": "frozen", "cancel_order": "frozen"}
    assert FROZEN.rule in chat.prompts[1].complaint
    assert FROZEN.rule in chat.state["tool_insights"][-1]["problem"]
    chat = frozen([LOOK, say("Late.")])
    chat.send("Where is A-1?", closed=False)
    assert chat.calls == [("get_order", A1)]


def test_a_policy_forbids_a_call_that_was_agreed_to_and_the_model_is_told_why():
    chat = frozen([*[CANCEL] * 3, say("It is too late.")])
    chat.send("Cancel A-1", closed=False)
    assert chat.send("Yes", closed=True) == "It is too late."
    assert chat.calls == []
    now = chat.prompts[-1].now
    assert now["refused"][0]["tool"] == "cancel_order"
    assert FROZEN.rule in now["refused"][0]["why"]
    assert "asked_about_again" not in now


def test_a_pending_call_that_a_policy_forbids_by_now_is_not_asked_about_again_and_the_record_says_why():
    chat = frozen([*[CANCEL] * 3, say("The books are closed.", still_wanted=["C1"])])
    assert chat.send("Cancel A-1", closed=False).endswith("Reply yes to go ahead.")
    assert chat.send("When would it arrive?", closed=True) == "The books are closed."
    verdict = chat.state["tool_insights"][-1]
    assert (verdict["tool"], verdict["kind"]) == ("cancel_order", "declined")
    assert FROZEN.rule in verdict["problem"]


def test_a_policy_requires_a_tool_before_anything_else_except_questions():
    chat = Chat([GREEK, say("Fine."), LOOK, GREEK, say("The Owl.")], policies=[FIRST])
    chat.send("greek for A-1")
    assert chat.prompts[0].now["required_first"] == ["get_order"]
    assert "requires get_order first" in chat.prompts[1].complaint
    assert "requires get_order first" in chat.prompts[2].complaint
    assert [tool for tool, _ in chat.calls] == ["get_order", "find_table"]
    assert Chat([ask("Which order?")], policies=[FIRST]).send("Hi") == "Which order?"
    never = Policy("never", "Nothing is looked up.", forbids=lambda state: ["get_order"])
    assert Chat([say("Closed.")], policies=[FIRST, never]).send("Hi") == "Closed."


def test_a_policy_opens_no_gate_and_names_no_tool_that_does_not_exist():
    first = Policy("first", "Cancel first.", requires=lambda state: ["cancel_order"])
    chat = Chat([CANCEL], policies=[first])
    assert chat.send("A-1").endswith("Reply yes to go ahead.")
    assert chat.calls == []
    with pytest.raises(errors.InputError, match="did you mean `name_or_type`"):
        Chat([], policies=["name_or_tipe"])
    wrong = Policy("p", "r", forbids=lambda state: ["get_ordr"])
    with pytest.raises(errors.InputError, match="did you mean `get_order`"):
        Chat([say("Hi.")], [get_order], policies=[wrong]).send("Hi")
