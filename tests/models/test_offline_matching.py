"""How the offline model judges guidelines: conditions of many desks, continuity, what was done before."""

import pytest

from tests.models.prompts import ask, closed, judge, nullable, prompt

ORDER = ("get_order", {"order_id": "ORD-1"})
HOLDS = [
    ("the customer asks where their order is", ["Where is my order?"]),
    ("the customer asks where their order is", ["What's the status of my order?"]),
    (
        "the customer asks where their order is",
        ["Where is my order?", "agent: What is your order id?", "ORD-1"],
    ),
    ("the customer wants to cancel their booking", ["I want to cancel"]),
    ("the customer wants to cancel or change a booking", ["I need to change my reservation"]),
    ("the customer asks about opening hours", ["When do you open?"]),
    ("the customer asks about opening hours, location or parking", ["Can I park there?"]),
    ("the customer asks about prices", ["How much is a double room?"]),
    ("the customer asks about clothes", ["Where is my wool coat?"]),
    ("the customer wants to rent an instrument", ["I'd like to rent a cello"]),
    ("the garment is damaged", ["Where is my coat?", ("find", {}, {"coat": "grey", "state": "damaged"})]),
    ("the guest asks for a late check-out", ["Can I check out later tomorrow?"]),
    ("the reader asks whether the library has a book", ["Hi, do you have Dune?"]),
    ("the customer asks to renew a loan", ["Can you extend my loan of Dune?"]),
    ("a patient reports chest pain", ["I have a strong pain in my chest"]),
    ("the customer wants to book an appointment", ["I need an appointment with Dr. Smith"]),
    ("the customer asks for their balance", ["what's my balance"]),
    ("the customer wants to transfer money", ["Please transfer $50 to Bob"]),
    ("the customer's card is lost or stolen", ["Someone stole my card"]),
    ("the customer wants to order a pizza", ["I'd like a large margherita pizza"]),
    ("the customer mentions an allergy", ["I'm allergic to peanuts"]),
    ("the user forgot their password", ["i forgot my pasword"]),
    ("the user cannot log in", ["I can't log in to my laptop"]),
    ("the user's laptop is slow", ["My computer is very slow since yesterday"]),
    ("the customer wants to speak to a human", ["Let me talk to a real person"]),
    ("the customer complains about noise", ["The room next door is super loud"]),
    ("the customer is angry", ["This is ridiculous!! I have waited for an hour"]),
    ("the customer greets", ["Good morning, is the pool open?"]),
    ("the conversation starts", ["Hi"]),
    ("the customer says goodbye", ["That's all, bye"]),
    ("the customer thanks the agent", ["Thank you so much"]),
    ("the customer has not given their order id", ["Where is my order?"]),
    (
        "the customer wants to reserve a table without giving the number of guests",
        ["I want to reserve a table"],
    ),
    (
        "the customer asks for a refund, unless the order is older than 30 days",
        ["I want a refund for my order"],
    ),
    (
        "the customer confirms the cancellation",
        ["cancel it", "agent: Shall I cancel order 1?", "Yes, go ahead"],
    ),
    ("the customer asks about something unrelated to the library", ["What is the weather in Paris?"]),
    ("the customer writes in a language other than English", ["Hola, ¿dónde está mi pedido?"]),
    ("the customer is under 18", ["I'm 16 years old and want a card"]),
    ("the party is larger than 8 people", ["a table for 12 people please"]),
    ("the order is delayed", ["My order is delayed"]),
    ("the order is delayed", ["Where is it?", (*ORDER, {"status": "delayed"})]),
    ("the order is in transit", ["Where is my order?", (*ORDER, {"status": "in_transit"})]),
    ("the order has not been delivered", ["Where is my order?", (*ORDER, {"status": "in_transit"})]),
    ("the order has been delivered", ["Where is it?", (*ORDER, "Your order was delivered on Monday.")]),
    ("the order total is over 100 dollars", ["ok", (*ORDER, {"total": 150})]),
    ("the payment failed", ["Pay please", ("charge_card", {}, {"payment": "failed"})]),
    ("the balance is below 100", ["my balance?", ("get_balance", {}, {"balance": 42.5})]),
    ("no rooms are available", ["Any room?", ("search_rooms", {}, [])]),
    ("no rooms are available", ["Any room?", ("search_rooms", {}, {"rooms": []})]),
    ("a room is available", ["Any room?", ("search_rooms", {}, {"rooms": [{"number": 4}]})]),
    ("the room is not available", ["Is the suite free?", ("check_room", {}, {"available": False})]),
    ("the book is on loan", ["Do you have Dune?", ("find_book", {"title": "Dune"}, {"status": "on loan"})]),
    (
        "the book is not in the catalogue",
        ["Do you have Dune?", ("find_book", {"title": "Dune"}, "not found")],
    ),
    ("there is an outage", ["The VPN is down", ("check_service", {"service": "vpn"}, {"status": "outage"})]),
    (None, ["anything at all"]),
]
DOES_NOT_HOLD = [
    ("the customer asks about suits", ["Where is my wool coat?"]),
    ("the customer wants to rent an instrument", ["I'd like to rent a kayak"]),
    ("the customer asks where their order is", ["I'd like to order a pizza"]),
    ("the customer asks where their order is", ["Where is my order?", "agent: It is on its way.", "Thanks!"]),
    (
        "the customer asks where their order is",
        ["Where is my order?", "agent: On its way. Anything else I can help with?", "Do you sell shoes?"],
    ),
    (
        "the customer wants to cancel their booking",
        ["I don't want to cancel my booking, I want to change it"],
    ),
    ("the customer wants to cancel their booking", ["please cancel my gym subscription"]),
    ("the customer wants to cancel an order", ["Where is my order?", "agent: Your order id?", "it's ORD-2"]),
    ("the guest asks whether a room is free", ["Do you have a helipad?"]),
    (
        "the guest asks whether a room is free",
        ["Any room?", "agent: I found one room: 204.", "I'd like to book it"],
    ),
    ("the user reports a broken laptop", ["The VPN isn't working"]),
    ("a patient reports chest pain", ["My knee hurts"]),
    ("the customer is angry", ["could you help me?"]),
    ("the conversation starts", ["Hi", "agent: hello", "and now?"]),
    ("the customer has not given their order id", ["Where is my order ORD-77?"]),
    (
        "the customer wants to reserve a table without giving the number of guests",
        ["Reserve a table for 4 guests"],
    ),
    ("the customer confirms the cancellation", ["cancel it", "agent: Shall I cancel order 1?", "No, wait"]),
    ("the customer accepts express shipping", ["What does express shipping mean?"]),
    ("the customer asks about something unrelated to the library", ["Do you have library cards for kids?"]),
    ("the customer writes in a language other than English", ["Hello, where is my order"]),
    ("the customer is under 18", ["I'm 36 years old and want a card"]),
    ("the party is larger than 8 people", ["a table for 4 people please"]),
    ("the order is delayed", ["Where is my order?"]),
    ("the order is delayed", ["Has my order been delayed?"]),
    ("the order is delayed", ["My order is delayed!", (*ORDER, {"status": "in transit"})]),
    ("the order is delivered", ["Where is my order?", (*ORDER, {"status": "in transit"})]),
    ("the order is delivered", ["Where is it?", (*ORDER, {"status": "packed", "delivered_at": None})]),
    (
        "the order is delivered",
        ["Where is it?", (*ORDER, {"status": "packed", "estimated_delivery": "May 2"})],
    ),
    ("the order has been delivered", ["Where is it?", (*ORDER, "Your order will be delivered on Monday.")]),
    ("the order has not been delivered", ["Where is my order?", (*ORDER, {"status": "delivered"})]),
    ("no rooms are available", ["Any room?", ("search_rooms", {}, {"rooms": [{"number": 4}]})]),
    ("the room is available", ["Is the suite free?", ("check_room", {}, {"available": False})]),
    ("the book is on loan", ["Do you have Dune?", ("find_book", {"title": "Dune"}, {"status": "available"})]),
    ("the book is on loan", ["Do you have Dune?", ("find_book", {"title": "Dune"}, "not found")]),
    ("the payment failed", ["Pay please", ("pay_invoice", {}, {"status": "ok"})]),
    ("the balance is below 100", ["my balance?", ("get_balance", {}, {"balance": 420})]),
]


@pytest.mark.parametrize(("condition", "entries"), HOLDS)
def test_a_condition_that_holds_is_seen(condition, entries):
    judgement = judge(condition, *entries)
    assert judgement["condition_applies"], judgement["condition_application_rationale"]
    assert judgement["score"] >= 6


@pytest.mark.parametrize(("condition", "entries"), DOES_NOT_HOLD)
def test_a_condition_that_does_not_hold_is_not_taken_to(condition, entries):
    judgement = judge(condition, *entries)
    assert not judgement["condition_applies"], judgement["condition_application_rationale"]
    assert judgement["score"] < 6


def test_what_is_known_of_the_customer_counts():
    premium = [{"id": "V1", "name": "tier", "value": "premium"}]
    basic = [{"id": "V1", "name": "tier", "value": "basic"}]
    flag = [{"id": "V1", "name": "is_premium", "value": True}]
    verdicts = [
        judge("the customer is a premium member", "Hi", variables=known)["condition_applies"]
        for known in (premium, basic, flag)
    ]
    assert verdicts == [True, False, True]


def test_the_rationale_names_the_words_that_overlap():
    judgement = judge("the customer asks where their order is", "Where is my order?")
    assert "M1" in judgement["condition_application_rationale"]
    assert '"order"' in judgement["condition_application_rationale"]


def test_condition_and_action_are_repeated_word_for_word():
    judgement = judge('the customer asks, "Why <b>me</b>?"', "Hello", action="say {it's} you")
    assert judgement["condition"] == 'the customer asks, "Why <b>me</b>?"'
    assert judgement["action"] == "say {it's} you"


@pytest.mark.parametrize(
    ("action", "continuous"),
    [
        ("never give medical advice", True),
        ("do not promise a delivery date, but offer to check", True),
        ("avoid jargon", True),
        ("always answer in Spanish", True),
        ("be polite and concise", True),
        ("keep the answer under two sentences", True),
        ("use a friendly tone", True),
        ("only discuss topics related to the bank", True),
        ("explain that pets are not allowed, but never sound unfriendly", True),
        ('say "Have a lovely day"', False),
        ('say "Never mind!"', False),
        ("tell them that we do not ship abroad and do not take calls", False),
        ("look the order up and tell its status", False),
        ("apologise and offer a refund", False),
        ("ask for the order id", False),
        ("ask whether they always travel alone", False),
    ],
)
def test_continuous_is_what_shapes_every_reply(action, continuous):
    assert judge(None, "Hi", action=action)["guideline_is_continuous"] is continuous


def test_a_one_time_guideline_is_not_applied_twice():
    said = judge(None, "Hi", "agent: Welcome!", "Where is it?", action='say "Welcome!"', applied="M2")
    assert said["guideline_previously_applied"] == "fully"
    assert said["guideline_should_reapply"] is False
    assert said["should_apply"] is False


def test_without_any_record_the_agents_own_message_is_evidence():
    said = judge(None, "Hi", "agent: Welcome to us! How are you?", "Fine", action='say "Welcome to us!"')
    assert said["guideline_previously_applied"] == "fully"
    assert "WELCOME TO US!" in said["guideline_previously_applied_rationale"][0]["explanation"]


def test_a_part_that_is_missing_is_functional_unless_it_is_mere_form():
    entries = ("Hi", "agent: We are open from 9 to 5.", "And?")
    functional = judge(None, *entries, action='say "We are open from 9 to 5." and ask for the order id')
    cosmetic = judge(None, *entries, action='say "We are open from 9 to 5." and thank the customer')
    assert (
        functional["guideline_previously_applied"] == cosmetic["guideline_previously_applied"] == "partially"
    )
    assert (functional["is_missing_part_cosmetic_or_functional"], functional["should_apply"]) == (
        "functional",
        True,
    )
    assert (cosmetic["is_missing_part_cosmetic_or_functional"], cosmetic["should_apply"]) == (
        "cosmetic",
        False,
    )


def test_a_question_that_comes_up_anew_is_answered_anew():
    condition = "the customer asks about an order"
    entries = ("Where is my order 1?", "agent: On its way.", "And my order 2?")
    judgement = judge(condition, *entries, applied="M2")
    assert judgement["guideline_previously_applied"] == "fully"
    assert judgement["should_apply"] is True
    assert "M3" in judgement["new_or_subtly_different_context"]


def test_a_question_that_did_not_come_up_anew_is_not():
    judgement = judge(
        "the customer is a student", "I am a student", "agent: Noted.", "Where are you?", applied="M2"
    )
    assert judgement["should_apply"] is False


def test_a_greeting_is_not_said_again_for_a_second_hello():
    judgement = judge(
        "the conversation starts", "Hi", "agent: Hello!", "Hi?", action="greet them", applied="M2"
    )
    assert judgement["should_apply"] is False


def test_a_new_result_raises_its_condition_anew():
    entries = ("Where is 1?", (*ORDER, {"status": "delayed"}), "agent: Sorry, it is delayed.", "And order 2?")
    second = ("get_order", {"order_id": "ORD-2"}, {"status": "delayed"})
    before = judge("the order is delayed", *entries, action="apologise", applied="M2")
    after = judge("the order is delayed", *entries, second, action="apologise", applied="M2")
    assert (before["should_apply"], after["should_apply"]) == (False, True)


def test_the_need_stays_open_while_the_customer_answers_what_was_asked_for_it():
    judgement = judge(
        "the customer asks where their order is",
        "Where is my order?",
        "agent: I am sorry about the wait. What is your order id?",
        "ORD-1",
        action="apologise for the wait, look the order up and tell its status",
        applied="M2",
    )
    assert (judgement["score"] >= 6, judgement["should_apply"]) == (True, True)


def test_should_apply_follows_from_the_answers_before_it():
    for condition, entries in [*HOLDS, *DOES_NOT_HOLD]:
        for applied in (None, "M2"):
            said = judge(condition, *entries, applied=applied)
            due = said["guideline_is_continuous"] or said["guideline_previously_applied"] == "no"
            assert said["should_apply"] == bool(due or said["guideline_should_reapply"]), condition


def test_what_is_known_beforehand_is_not_answered_otherwise():
    one_time = {k: v for k, v in _properties().items() if k != "guideline_is_continuous"}
    said = judge(None, "Hi", "agent: x", "y", action="never lie", applied="M2", schema=closed(**one_time))
    assert said["should_apply"] is False  # the designer says that it is done once
    known = ("condition", "condition_applies", "action", "score", "should_apply")
    continuous = closed(**{k: v for k, v in _properties().items() if k in known})
    said = judge(None, "Hi", "agent: x", "y", action="say hello", applied="M2", schema=continuous)
    assert said["should_apply"] is True  # the designer says that it is continuous


def test_modes_without_queries_get_the_same_verdict():
    response = closed(score={"type": "integer"}, should_apply={"type": "boolean"})
    for condition, entries in [*HOLDS[:10], *DOES_NOT_HOLD[:10]]:
        full = judge(condition, *entries)
        short = judge(condition, *entries, schema=response)
        assert short == {"score": full["score"], "should_apply": full["should_apply"]}


def test_free_reasoning_tells_why():
    head = {"guidelines": [{"id": "G1", "condition": "the customer asks for a refund", "action": "help"}]}
    schema = closed(reasoning={"type": "string"}, G1=closed(score={"type": "integer"}))
    answer = ask(prompt("I want a refund", head=head, now={"judge": ["G1"]}), schema)
    assert "G1" in answer["reasoning"]
    assert "refund" in answer["reasoning"]


def test_a_guideline_that_is_not_to_be_judged_is_passed_over():
    judgement = judge("the customer asks for a refund", "I want a refund", now={"judge": []})
    assert judgement["score"] < 6
    assert judgement["condition"] == "the customer asks for a refund"


def test_a_condition_that_code_has_checked_holds():
    judgement = judge("is_vip", "Hi", now={"holds": ["G1"]})
    assert (judgement["condition_applies"], judgement["score"]) == (True, 10)


def test_preparation_settles_what_never_changes():
    head = {
        "guidelines": [
            {"id": "G1", "condition": "the order is delayed", "action": "apologise"},
            {"id": "G2", "condition": "the customer asks for a refund", "action": "never promise one"},
            {"id": "G3", "condition": None, "action": "be brief"},
        ]
    }
    properties = closed(
        continuous_rationale={"type": "string"},
        sensitive_to_tools_rationale={"type": "string"},
        continuous={"type": "boolean"},
        sensitive_to_tools={"type": "boolean"},
    )
    answer = ask(prompt(head=head), closed(G1=properties, G2=properties, G3=properties))
    settled = {id: (given["continuous"], given["sensitive_to_tools"]) for id, given in answer.items()}
    assert settled == {"G1": (False, True), "G2": (True, False), "G3": (True, False)}


def _properties():
    from tests.models.prompts import JUDGEMENT

    return JUDGEMENT["properties"]


def test_a_condition_that_may_be_null_is_given_as_null():
    schema = closed(condition=nullable({"type": "string"}), score={"type": "integer"})
    assert judge(None, "Hi", schema=schema) == {"condition": None, "score": 10}
