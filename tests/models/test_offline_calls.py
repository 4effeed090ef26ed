"""When the offline tool caller proposes a call, when it does not, and how customers confirm one."""

import pytest

from tests.models.prompts import TEXT, WHOLE, one_of, propose, tool

GET_ORDER = tool(
    "get_order",
    "Look up an order.",
    "the customer asks where their order is: look the order up and tell its status",
    order_id=(TEXT, "Id of the order, like ORD-1."),
)
CANCEL_ORDER = tool(
    "cancel_order",
    "Cancel an order.",
    "the customer wants to cancel an order: cancel the order",
    order_id=(TEXT, "Id of the order, like ORD-1."),
)


def runs(described, *entries, **kwargs):
    """The arguments of the calls that should run and lack nothing."""
    return [
        {key: decision["value"] for key, decision in call["arguments"].items()}
        for call in propose(described, *entries, **kwargs)
        if call["should_run"] and call["score"] >= 5 and all(d["given"] for d in call["arguments"].values())
    ]


def test_a_need_with_everything_given_leads_to_a_call():
    assert runs(GET_ORDER, "Where is my order ORD-9?") == [{"order_id": "ORD-9"}]


def test_what_is_missing_is_not_given_and_the_call_is_proposed_all_the_same():
    (call,) = propose(GET_ORDER, "Where is my order?")
    decision = call["arguments"]["order_id"]
    assert (decision["given"], decision["value"]) == (False, None)
    assert decision["customer_should_provide_it"] is True
    assert (call["should_run"], call["score"] >= 5) == (True, True)


def test_an_optional_argument_that_nobody_gave_is_left_out():
    described = tool(
        "get_order", order_id=(TEXT, "Like ORD-1."), language=(TEXT, "Language of the answer.", False)
    )
    (call,) = propose(described, "Where is ORD-9?")
    assert call["arguments"]["language"]["given"] is False
    assert call["arguments"]["language"]["customer_should_provide_it"] is False


def test_several_values_lead_to_several_calls():
    found = runs(GET_ORDER, "Where are my orders ORD-1 and ORD-2?")
    assert found == [{"order_id": "ORD-1"}, {"order_id": "ORD-2"}]


def test_a_call_whose_result_is_here_is_not_repeated():
    result = ("get_order", {"order_id": "ORD-9"}, {"status": "delayed"})
    (call,) = propose(GET_ORDER, "Where is my order ORD-9?", result, now={"staged": ["T1"]})
    assert (call["same_call_is_already_staged"], call["should_run"]) == (True, False)
    assert runs(GET_ORDER, "Where is my order ORD-8?", result) == [{"order_id": "ORD-8"}]


def test_a_look_up_may_be_repeated_when_it_is_asked_for_again_later():
    result = ("get_order", {"order_id": "ORD-9"}, {"status": "delayed"})
    entries = ("Where is ORD-9?", result, "agent: It is delayed.", "And where is my order ORD-9 now?")
    assert runs(GET_ORDER, *entries) == [{"order_id": "ORD-9"}]


def test_what_was_done_is_not_done_twice():
    result = ("cancel_order", {"order_id": "ORD-9"}, {"ok": True})
    entries = ("cancel ORD-9", result, "agent: I have cancelled it.", "Did you cancel it?")
    assert runs(CANCEL_ORDER, *entries) == []


def test_what_failed_may_be_tried_again():
    result = ("cancel_order", {"order_id": "ORD-9"}, "time-out", "error")
    entries = ("cancel ORD-9", result, "agent: That did not work.", "Please cancel ORD-9 again")
    assert runs(CANCEL_ORDER, *entries) == [{"order_id": "ORD-9"}]


def test_a_tool_that_changes_something_is_not_called_for_a_question():
    both = {"other_candidates": ["get_order"]}
    granted = "the customer asks about an order: look the order up"
    cancel = tool("cancel_order", "Cancel an order.", granted, order_id=(TEXT, "Like ORD-1."))
    assert propose(cancel, "Where is my order ORD-9?", now=both) == []


def test_what_is_only_offered_waits_for_the_customer():
    granted = "the book is on loan: tell when it is due and offer to place a hold"
    hold = tool("place_hold", "Place a hold on a book.", granted, title=(TEXT, "Title of the book."))
    found = ("find_book", {"title": "Dune"}, {"status": "on loan"})
    assert propose(hold, "Do you have Dune?", found, now={"other_candidates": ["find_book"]}) == []
    entries = (
        "Do you have Dune?",
        found,
        "agent: It is on loan. Would you like me to place a hold?",
        "Yes please",
    )
    assert runs(hold, *entries) == [{"title": "Dune"}]


@pytest.mark.parametrize(
    ("granted", "name", "said"),
    [
        ("the customer's card is lost: block the card", "block_card", "I lost my card"),
        ("the user forgot their password: reset the password", "reset_password", "i forgot my password"),
        ("the user reports a broken device: open a ticket", "create_ticket", "My screen is broken"),
        ("the guest wants to book a room: book the room", "reserve_room", "I'd like to book a room"),
        ("the customer wants a refund: give the money back", "issue_refund", "I want my money back"),
        (
            "the customer is angry: hand the conversation over",
            "escalate_to_human",
            "I want to speak to a human",
        ),
        ("the reader wants to renew a loan: renew the loan", "extend_loan", "Please renew my loan"),
        ("the guest asks what is on the menu: show it", "menu", "What is on the menu?"),
    ],
)
def test_tools_of_many_names_are_called_for_what_they_do(granted, name, said):
    described = tool(name, "", granted, note=(TEXT, "A note.", False))
    (call,) = propose(described, said)
    assert (call["should_run"], call["score"] >= 5) == (True, True)


def test_a_tool_that_no_active_guideline_grants_is_not_called():
    assert propose(CANCEL_ORDER, "Please cancel ORD-9", now={"active": []}) == []


def test_a_tool_that_is_not_a_candidate_is_not_called():
    assert propose(CANCEL_ORDER, "Please cancel ORD-9", now={"candidates": []}) == []


def test_an_always_available_tool_is_called_only_for_a_need_that_speaks_of_it():
    weather = tool("get_weather", "The weather in a city.", None, city=(TEXT, "The city."))
    assert runs(weather, "What is the weather in Oslo?") == [{"city": "Oslo"}]
    assert propose(weather, "Hello there!") == []
    assert propose(weather, "Where is my order?") == []
    search = tool("search_articles", "Search the help articles.", None, query=(TEXT, "What to search for."))
    assert runs(search, "Can you find articles about billing?") == [{"query": "billing"}]
    ticket = tool("close_account", "Close the account of a customer.", None, note=(TEXT, "", False))
    assert propose(ticket, "What is the balance of my account?") == []


def test_each_of_several_choices_is_looked_up():
    described = tool("check_service", "Check a service.", "the user has a problem: check the service",
                     service=(one_of("mail", "vpn", "wifi"), "Which service."))  # fmt: skip
    assert runs(described, "I have a problem with the vpn and the wifi") == [
        {"service": "vpn"},
        {"service": "wifi"},
    ]


def awaiting(**arguments):
    return {"awaiting_confirmation": [{"tool": "cancel_order", "arguments": arguments, "asked_after": "M1"}]}


ASKED = ("Please cancel ORD-9", "agent: Shall I cancel the order ORD-9? Please confirm.")


@pytest.mark.parametrize(
    "said", ["Yes", "yes, go ahead", "Please do.", "OK, do it", "I confirm", "Sure, thanks!"]
)
def test_a_yes_affirms_what_was_put_to_the_customer(said):
    (call,) = propose(CANCEL_ORDER, *ASKED, said, now=awaiting(order_id="ORD-9"), confirmed=True)
    assert call["affirmed_in"] == "M3"
    assert (call["should_run"], call["arguments"]["order_id"]["value"]) == (True, "ORD-9")


@pytest.mark.parametrize(
    "said",
    [
        "No",
        "wait",
        "don't",
        "No, thank you",
        "hold on a second",
        "Yes, but first tell me the fee",
        "What would it cost?",
    ],
)
def test_anything_less_than_a_yes_affirms_nothing(said):
    calls = propose(CANCEL_ORDER, *ASKED, said, now=awaiting(order_id="ORD-9"), confirmed=True)
    assert [call["affirmed_in"] for call in calls] in ([], [None])


def test_another_value_is_put_to_the_customer_anew():
    calls = propose(
        CANCEL_ORDER, *ASKED, "No, cancel ORD-8 instead", now=awaiting(order_id="ORD-9"), confirmed=True
    )
    assert [(c["arguments"]["order_id"]["value"], c["affirmed_in"]) for c in calls] == [("ORD-8", None)]


def test_the_first_request_is_no_confirmation():
    (call,) = propose(CANCEL_ORDER, "Yes, please cancel ORD-9", confirmed=True)
    assert (call["should_run"], call["affirmed_in"]) == (True, None)


def test_a_tool_without_arguments_can_be_called():
    described = tool(
        "list_branches", "List the branches.", "the customer asks for a branch: list the branches"
    )
    (call,) = propose(described, "Where is your nearest branch?")
    assert call["should_run"] is True


def test_the_need_is_told_in_the_customers_words():
    from tests.models.prompts import ask, call_schema, closed, prompt

    schema = closed(
        last_customer_message=TEXT,
        most_recent_customer_inquiry_or_need=TEXT,
        get_order=call_schema(GET_ORDER),
    )
    entries = ("Where is my order?", "agent: What is your order id?", "ORD-1")
    answer = ask(
        prompt(*entries, head={"tools": [GET_ORDER["shown"]]}, now={"candidates": ["get_order"]}), schema
    )
    assert answer["last_customer_message"] == "ORD-1"
    assert answer["most_recent_customer_inquiry_or_need"] == "Where is my order? ORD-1"


def test_a_number_that_is_given_twice_does_not_make_two_calls():
    described = tool("search_tables", party_size=(WHOLE, "How many people."))
    assert runs(described, "a table for 4 people, or for 6 people") in (
        [{"party_size": 4}],
        [{"party_size": 6}],
    )
