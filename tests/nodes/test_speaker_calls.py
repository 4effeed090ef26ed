"""What code holds of calls: none that matters runs unconfirmed, and no argument is guessed."""

from __future__ import annotations

import pytest

from arq_graph import Agent
from tests.nodes.order_tools import A1, called, ran
from tests.nodes.speaker_desk import agent, customer, kinds, move, said
from tests.speaking import act, ask, say, think

PUT = "Shall I cancel A-1?"
WANTED = customer("Cancel A-1, please.")


def confirmed(answer, *, affirmed_in="M3", args=A1, question=PUT):
    """A consequential call, put to the customer and then made again after their answer."""
    first, _ = move([act("cancel", A1), ask(question, asks_for=[("cancel", None)])], WANTED)
    state = {"tool_insights": first["tool_insights"], "moves": first["moves"]}
    thread = [WANTED, *first["messages"], customer(answer, "h2")]
    return move([act("cancel", args, affirmed_in=affirmed_in), say("Done then.")], *thread, state=state)


def test_a_consequential_call_is_put_to_the_customer_first():
    update, asked = move([act("cancel", A1), ask(PUT, asks_for=[("cancel", None)])], WANTED)
    assert "has not agreed" in asked[1].complaint
    assert (called(update), said(update)) == ([], PUT)
    assert kinds(update) == [("confirm", "cancel")]


@pytest.mark.parametrize(
    "answer",
    [
        "Yes.",
        "yes please",
        "Go ahead",
        "Sure, do it",
        "ja bitte",
        "Yes, no problem",
        "Yes. Can you also check A-2?",
        "Yes, why not",
    ],
)
def test_it_runs_once_the_customer_agrees(answer):
    update, asked = confirmed(answer)
    assert asked[0].now["awaiting_confirmation"][0]["arguments"] == A1
    assert called(update) == [("cancel", A1)]


@pytest.mark.parametrize(
    "answer",
    [
        "No.",
        "No, thanks",
        "nope",
        "Don't!",
        "please don't",
        "Wait",
        "Never mind",
        "What does it cost?",
        "I'd rather not",
        "OK, but wait",
        "Yes, but A-2",
        "Sure, but do A-2 instead",
        "Yes... no!",
        "Right, what does it cost?",
        "",
    ],
)
def test_a_no_is_a_no_whatever_the_model_makes_of_it(answer):
    update, _ = confirmed(answer)
    assert called(update) == []


@pytest.mark.parametrize(
    "answer",
    [
        "Forget it",
        "Cancel",
        "Scrap that",
        "Hell no",
        "I said A-2",
        "Let me think",
        "Nein",
        "👎",
        "The dog barks.",
    ],
)
def test_what_is_no_plain_yes_is_none_whatever_the_model_makes_of_it(answer):
    update, asked = confirmed(answer)
    assert called(update) == []
    assert "has not agreed" in asked[1].complaint


@pytest.mark.parametrize(
    "answer", ["Cancel A-1", "A-1, please.", "Ja, bitte", "Oui", "да", "はい", "👍", "Sure, why not?"]
)
def test_saying_it_again_is_a_yes_and_so_is_one_in_another_language(answer):
    assert called(confirmed(answer)[0]) == [("cancel", A1)]


def test_what_a_yes_is_can_be_said_by_a_function():
    options = {"agrees": lambda text: text == "Tha"}
    first, _ = move([act("cancel", A1), ask(PUT, asks_for=[("cancel", None)])], WANTED, **options)
    thread = [WANTED, *first["messages"], customer("Tha", "h2")]
    state = {"tool_insights": first["tool_insights"]}
    update, _ = move([act("cancel", A1, affirmed_in="M3")], *thread, state=state, **options)
    assert called(update) == [("cancel", A1)]


def close_dome(now: bool = False) -> str:
    """Close the roof of the dome.

    Args:
        now: At once.
    """
    return "closed"


DOME = Agent("Dome", "You help.", tools=[close_dome], confirm={"close_dome": "customer"})


def test_a_call_without_a_value_to_name_has_to_be_named_itself():
    script = [
        act("close_dome", {}),
        ask("Do you like tea?", asks_for=[("close_dome", None)]),
        ask("Shall I close the roof?", asks_for=[("close_dome", None)]),
    ]
    update, asked = move(script, customer("Close the dome"), desk=DOME)
    assert "without saying to what: Close the roof of the dome" in asked[2].complaint
    assert said(update) == "Shall I close the roof?"
    update, _ = move(script[:2], customer("Close the dome"), desk=DOME)
    assert (
        said(update) == "Before I go on, please confirm this: Close the roof of the dome. Shall I go ahead?"
    )


def test_a_statement_is_no_question_that_a_yes_could_answer():
    script = [act("cancel", A1), say("A-1 is an order.", asks_for=[("cancel", None)])]
    update, asked = move(script, WANTED)
    assert "it states and does not ask" in asked[2].complaint
    assert said(update).endswith("Shall I go ahead?")


def test_a_flag_that_nobody_spoke_of_is_put_to_the_customer():
    plain = Agent("Dome", "You help.", tools=[close_dome])
    question = ask("Shall I close the roof now?", asks_for=[("close_dome", None)])
    script = [act("close_dome", {"now": True}), question]
    update, asked = move(script, customer("Shut the roof."), desk=plain)
    assert "true was told by no customer message and no tool" in asked[1].complaint
    assert called(update) == []
    update, _ = move(script, customer("Shut the roof at once."), desk=plain)
    assert called(update) == [("close_dome", {"now": True})]


def test_an_empty_text_and_a_lost_sign_are_no_values_that_were_told():
    _, asked = move([act("get_order", {"order_id": " "}), ask("Which order?")], WANTED)
    assert "an empty text is no value" in asked[1].complaint
    table = {"guests": -4, "area": "north", "food": "soup"}
    wanted = "A table for 4 in the north with soup"
    update, asked = move([act("find_table", table), ask("Four guests?")], customer(wanted))
    assert (called(update), "-4 was told by no" in asked[1].complaint) == ([], True)
    update, _ = move([act("find_table", table)], customer(wanted.replace("4", "minus 4")))
    assert called(update) == [("find_table", table)]


def test_a_yes_to_other_arguments_is_none_to_these():
    update, _ = confirmed("Yes, and A-2.", args={"order_id": "A-2"})
    assert called(update) == []


@pytest.mark.parametrize("cited", [None, "M1", "M2", "T1", "M9"])
def test_agreement_is_a_later_message_of_the_customer(cited):
    update, _ = confirmed("Yes.", affirmed_in=cited)
    assert called(update) == []


def test_a_question_that_does_not_say_to_what_gets_no_yes():
    script = [
        act("cancel", A1),
        ask("Shall I?", asks_for=[("cancel", None)]),
        ask(PUT, asks_for=[("cancel", None)]),
    ]
    update, asked = move(script, WANTED)
    assert "without saying to what" in asked[2].complaint
    assert said(update) == PUT


def test_nor_does_one_after_a_thought_in_between():
    vague = ask("Shall I?", asks_for=[("cancel", None)])
    update, asked = move([act("cancel", A1), think("It must be asked."), vague], WANTED)
    assert "without saying to what" in asked[3].complaint
    assert ("A-1" in said(update), update["moves"][-1].by_code) == (True, True)


def test_code_asks_itself_where_the_model_goes_on_calling():
    update, asked = move([act("cancel", A1)], WANTED)
    assert len(asked) == 3
    assert called(update) == []
    assert "A-1" in said(update)
    assert said(update).endswith("Shall I go ahead?")
    assert update["moves"][-1].by_code
    assert update["moves"][-1].category == "assumption_verification"
    state = {"tool_insights": update["tool_insights"]}
    thread = [WANTED, *update["messages"], customer("Yes!", "h2")]
    assert called(move([act("cancel", A1, affirmed_in="M3")], *thread, state=state)[0]) == [("cancel", A1)]


def test_one_yes_covers_one_call():
    first, _ = move([act("cancel", A1), ask(PUT, asks_for=[("cancel", None)])], WANTED)
    thread = [WANTED, *first["messages"], customer("Yes.", "h2")]
    again = [act("cancel", A1, affirmed_in="M3"), say("Done.")]
    made, _ = move(again, *thread, state={"tool_insights": first["tool_insights"]})
    later, _ = move(
        again, *thread, *ran("cancelled", tool="cancel"), state={"tool_insights": made["tool_insights"]}
    )
    assert called(later) == []


def test_a_missing_argument_is_asked_for_and_not_called_without():
    script = [act("get_order"), ask("Which order is it?", asks_for=[("get_order", "order_id")])]
    update, asked = move(script, customer("Where is my order?"))
    assert "it is missing" in asked[1].complaint
    assert (called(update), said(update)) == ([], "Which order is it?")
    assert ("missing", "get_order") in kinds(update)


def test_code_asks_for_it_where_the_model_does_not():
    update, _ = move([act("get_order")], customer("Where is my order?"))
    assert called(update) == []
    assert "order id" in said(update)
    assert update["moves"][-1].category == "probing_question"


def test_a_guessed_value_is_refused_whatever_the_model_claims():
    guess = act("get_order", {"order_id": "B-77"})
    update, asked = move([guess, ask("Which one?")], customer("Where is my order?"))
    assert "was told by no customer message and no tool" in asked[1].complaint
    assert called(update) == []
    by_code, _ = move([guess], customer("Where is my order?"))
    assert called(by_code) == []
    assert "B-77" in said(by_code), "it is put to the customer"


def test_a_value_that_a_tool_told_is_no_guess():
    thread = [customer("Where is my order?"), *ran('["B-77"]', tool="find_table", args={})]
    assert called(move([act("get_order", {"order_id": "B-77"})], *thread)[0]) == [
        ("get_order", {"order_id": "B-77"})
    ]


def test_what_the_agent_said_itself_grounds_nothing():
    thread = [customer("Where is my order?"), agent("Perhaps B-77."), customer("Hm.", "h2")]
    assert called(move([act("get_order", {"order_id": "B-77"})], *thread)[0]) == []


def test_a_value_that_was_put_to_the_customer_is_used_after_a_yes():
    guess = act("get_order", {"order_id": "B-77"})
    first, _ = move([guess], customer("Where is my order?"))
    thread = [customer("Where is my order?"), *first["messages"], customer("Yes, right.", "h2")]
    state = {"tool_insights": first["tool_insights"]}
    assert called(move([guess], *thread, state=state)[0]) == [("get_order", {"order_id": "B-77"})]
    refused = [*thread[:-1], customer("No!", "h2")]
    assert called(move([guess], *refused, state=state)[0]) == []


def test_a_default_and_words_that_were_said_apart_are_no_guesses():
    update, _ = move(
        [act("find_table", {"guests": 2, "area": "north", "food": "vegan burgers"})],
        customer("A table for two in the north. Burgers, but they must be vegan."),
    )
    assert called(update)[0][0] == "find_table"


@pytest.mark.parametrize("basis", ["another_request", "inferred"])
def test_a_carried_over_value_is_confirmed_before_it_is_used(basis):
    call = act("get_order", A1, bases={"order_id": basis})
    thread = [customer("Cancel A-1"), agent("Done."), customer("Where is my order?", "h2")]
    update, asked = move([call, ask("Do you mean A-1?", asks_for=[("get_order", None)])], *thread)
    assert "ask the customer whether it is meant" in asked[1].complaint
    assert kinds(update) == [("confirm", "get_order")]
    without, _ = move([call], *thread, policies=[])
    assert called(without) == [("get_order", A1)], "the policy is switched off"


def test_a_word_that_may_be_a_name_or_a_type_is_asked_about():
    call = act("find_table", {"guests": 2, "area": "north", "food": "Indigo"}, bases={"food": "ambiguous"})
    thread = [customer("Table for 2 in the north, Indigo")]
    update, asked = move([call, ask("Is Indigo a place or a cuisine?")], *thread)
    assert "a name or a type" in asked[1].complaint
    assert called(update) == []
    assert called(move([call], *thread, policies=[])[0])


def test_what_the_customer_does_not_care_about_becomes_the_tools_placeholder():
    call = act("find_table", {"guests": 2, "food": "thai"}, bases={"area": "does_not_matter"})
    update, _ = move([call], customer("A table for 2, thai food, I don't care where."))
    assert called(update) == [("find_table", {"guests": 2, "area": "any", "food": "thai"})]


def test_the_model_cannot_make_up_that_it_does_not_matter():
    call = act("find_table", {"guests": 2, "food": "thai"}, bases={"area": "does_not_matter"})
    update, asked = move([call], customer("A table for 2, thai food."))
    assert "has not said that it does not matter" in asked[1].complaint
    assert called(update) == []
    assert "area" in said(update)


def test_a_tool_without_a_word_for_any_value_is_asked_about():
    call = act("find_table", {"area": "north", "food": "thai"}, bases={"guests": "does_not_matter"})
    update, _ = move([call], customer("Thai in the north. I don't care how many."))
    assert called(update) == []


def test_a_call_that_was_not_put_to_the_customer_after_all_gets_no_yes():
    first, _ = move([act("cancel", A1), say("Fine.")], WANTED)
    assert kinds(first) == [("declined", "cancel")]
    thread = [WANTED, *first["messages"], customer("Yes.", "h2")]
    again = [act("cancel", A1, affirmed_in="M3"), say("Done.")]
    assert called(move(again, *thread, state={"tool_insights": first["tool_insights"]})[0]) == []


def test_of_several_proposals_the_last_is_what_the_yes_is_to():
    other = {"order_id": "A-2"}
    thread = [customer("Cancel A-1. No, A-2."), agent("Which?"), customer("A-2", "h2")]
    put = ask("Shall I cancel A-2?", asks_for=[("cancel", None)])
    first, _ = move([act("cancel", A1), act("cancel", other), put], *thread)
    kept = [insight.arguments for insight in first["tool_insights"] if insight.kind == "confirm"]
    assert kept == [other]
