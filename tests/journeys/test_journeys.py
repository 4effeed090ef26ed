"""Journeys: which step is open, what settles it, and what happens when the customer doesn't go straight ahead."""

import pytest

from arq_graph import Journey, JourneyStep, Variable
from tests.brain import act, get_prompts, say
from tests.journeys.returns import RETURN, Talk, get_order, make_shop

A301 = {"order_id": "A-301"}
ASKS = {"asks_for_something": True}


def make_faulty_lamp_talk() -> Talk:
    """Return a talk in which the first message says which order it is, and that the item is faulty."""
    talk = Talk()
    talk.call["get_order"] = A301
    talk.steps["return-reason"] = ASKS | {"answered_by": "M1"}
    talk.steps["return-exchange"] = {"condition_holds": "no"}
    return talk


def test_a_journey_begins_with_its_first_step_and_goes_on_in_the_same_turn_once_its_tool_has_run():
    talk = Talk()
    talk.steps["return-reason"] = ASKS
    talk.say("I want to return a lamp.")
    assert talk.active == ["order"]
    talk.call["get_order"] = A301
    talk.say("It is order A-301.")
    assert talk.results == ["A-301 has a lamp"]
    assert talk.active == ["reason"]


def test_a_step_that_asks_is_done_when_its_answer_is_known_and_not_when_it_was_asked():
    talk = Talk()
    talk.call["get_order"] = A301
    talk.steps["return-reason"] = ASKS
    talk.say("I want to return order A-301.")
    talk.say("Hm.")
    assert talk.active == ["reason"]
    talk.steps["return-reason"] = ASKS | {"answered_by": "M5"}
    talk.steps["return-exchange"] = {"condition_holds": "no"}
    talk.say("It is broken.")
    assert talk.active == ["refund"]
    assert talk.journey == {
        "": "active",
        "order": "done",
        "reason": "done",
        "refund": "open",
        "exchange": "skipped",
    }


def test_two_answers_in_one_message_settle_two_steps():
    talk = make_faulty_lamp_talk()
    talk.call["refund"] = A301
    talk.say("Order A-301 is broken, I want to return it.")
    assert talk.results == ["A-301 has a lamp", "refunded A-301"]
    assert talk.active == ["close"]


def test_the_last_step_ends_the_journey_once_a_reply_has_told_it():
    talk = make_faulty_lamp_talk()
    talk.call["refund"] = A301
    talk.say("Order A-301 is broken, I want to return it.")
    talk.say("Thanks.")
    assert talk.active == []
    assert talk.journey[""] == "done"


def test_another_topic_leaves_the_journey_where_it_is():
    talk = Talk()
    talk.call["get_order"] = A301
    talk.steps["return-reason"] = ASKS
    talk.say("I want to return order A-301.")
    talk.judge["return"] = 2
    talk.say("When do you close?")
    assert talk.active == []
    assert talk.journey[""] == "left"
    talk.judge["return"] = 9
    talk.say("Back to my lamp.")
    assert talk.active == ["reason"]


def test_a_changed_value_opens_the_later_steps_again_once_the_tool_ran_with_it():
    talk = make_faulty_lamp_talk()
    talk.say("Order A-301 is broken, I want to return it.")
    assert talk.active == ["refund"]
    talk.steps["return-reason"] = ASKS
    talk.call["get_order"] = {"order_id": "A-302"}
    talk.journeys = {"changed": [{"step": "return-order", "answered_by": "M3"}]}
    talk.say("Sorry, it is A-302.")
    assert talk.results == ["A-301 has a lamp", "A-302 has a lamp"]
    assert talk.active == ["reason"]


def test_a_call_that_did_a_step_is_not_repeated_when_the_step_is_open_again():
    talk = Talk()
    talk.call["get_order"] = A301
    talk.steps["return-reason"] = ASKS
    talk.say("I want to return order A-301.")
    talk.journeys = {"changed": [{"step": "return-order", "answered_by": "M3"}]}
    talk.say("No, wait. It is A-301.")
    assert talk.results == ["A-301 has a lamp"]
    talk.journeys = {}
    talk.say("Well?")
    assert talk.active == ["reason"]


def test_a_changed_answer_opens_what_depends_on_it():
    talk = make_faulty_lamp_talk()
    talk.say("Order A-301 is broken, I want to return it.")
    talk.steps["return-exchange"] = {}
    talk.steps["return-refund"] = {"condition_holds": "no"}
    talk.journeys = {"changed": [{"step": "return-reason", "answered_by": "M3"}]}
    talk.say("To be honest, it does not fit.")
    assert talk.active == ["exchange"]


def test_a_journey_that_was_given_up_goes_on_where_it_was_when_the_customer_comes_back():
    talk = Talk()
    talk.call["get_order"] = A301
    talk.steps["return-reason"] = ASKS
    talk.say("I want to return order A-301.")
    talk.judge["return"] = 2
    talk.journeys = {"given_up": ["return"]}
    talk.say("I will keep it.")
    assert talk.journey[""] == "given_up"
    talk.judge["return"] = 9
    talk.journeys = {"begun_anew": ["return"]}
    talk.say("I do want to return it.")
    assert talk.active == ["reason"]


def test_a_journey_that_is_done_begins_again_from_the_start():
    talk = make_faulty_lamp_talk()
    talk.call["refund"] = A301
    talk.say("Order A-301 is broken, I want to return it.")
    talk.say("Thanks.")
    talk.call.clear()
    talk.journeys = {"begun_anew": ["return"]}
    talk.say("I also want to return another one.")
    assert talk.active == ["order"]


def test_several_steps_that_are_known_are_passed_in_one_turn_with_few_questions():
    steps = [
        JourneyStep(f"s{number}", f"ask {number}", after=f"s{number - 1}" if number else ())
        for number in range(8)
    ]
    talk = Talk(make_shop(journeys=[Journey("return", "the customer wants to return an item", steps)]))
    for number in range(6):
        talk.steps[f"return-s{number}"] = ASKS | {"answered_by": "M1"}
    talk.steps["return-s6"] = ASKS
    talk.say("All at once.")
    assert talk.active == ["s6"]
    questions = [
        prompt for prompt in get_prompts(talk.model, "matcher") if "begun_anew" in prompt.schema["properties"]
    ]
    assert [len(prompt.now["judge"]) for prompt in questions] == [3, 3, 2]


def test_a_step_may_be_another_journey_which_is_gone_through_once():
    identify = Journey("identify", None, [JourneyStep("name", "ask for the name")])
    order = Journey(
        "return",
        "the customer wants to return an item",
        [
            JourneyStep("who", journey="identify"),
            JourneyStep("order", "look the order up", tools=[get_order], after="who"),
        ],
    )
    talk = Talk(make_shop(journeys=[order, identify]))
    talk.steps["identify-name"] = ASKS
    talk.say("I want to return a lamp.")
    assert talk.active == ["name"]
    talk.steps["identify-name"] = ASKS | {"answered_by": "M3"}
    talk.say("I am Ada.")
    assert talk.active == ["order"]


def test_two_journeys_are_active_at_once():
    change = Journey("address", "the customer moves", [JourneyStep("new", "ask for the new address")])
    talk = Talk(make_shop(journeys=[RETURN, change]))
    talk.steps["address-new"] = ASKS
    talk.judge["address"] = 9
    talk.say("I move, and I want to return a lamp.")
    assert talk.active == ["order", "new"]


def test_a_step_that_requires_all_waits_until_each_step_before_it_is_done_or_skipped():
    steps = [
        JourneyStep("name", "ask for the name"),
        JourneyStep("mail", "ask for the address", condition="the customer has no account"),
        JourneyStep("end", "say thanks", after=["name", "mail"], requires="all"),
    ]
    talk = Talk(make_shop(journeys=[Journey("return", "the customer wants to return an item", steps)]))
    talk.steps["return-name"] = ASKS | {"answered_by": "M1"}
    talk.steps["return-mail"] = ASKS
    talk.say("I am Ada.")
    assert talk.active == ["mail"]
    talk.steps["return-mail"] = {"condition_holds": "no"}
    talk.say("I do have an account.")
    assert talk.active == ["end"]


def test_a_step_that_was_skipped_by_mistake_is_open_again_once_its_condition_holds():
    steps = [
        JourneyStep("account", "ask for the account", condition="the customer has an account"),
        JourneyStep("name", "ask for the name", after="account"),
    ]
    talk = Talk(make_shop(journeys=[Journey("return", "the customer wants to return an item", steps)]))
    talk.steps["return-account"] = {"condition_holds": "no"}
    talk.steps["return-name"] = ASKS
    talk.say("I want to return it.")
    assert talk.active == ["name"]
    talk.steps["return-account"] = ASKS
    talk.say("I do have an account.")
    assert talk.active == ["account"]
    (account, _) = talk.state["journeys"][0]["journeys"][0]["steps"]
    assert account["reason"] == ""  # no longer why it was skipped


def test_a_step_that_several_lead_to_is_not_skipped_while_one_of_them_is_still_to_come():
    steps = [
        JourneyStep("offer", "name times and ask"),
        JourneyStep("later", "name later times and ask", condition="none suits", after="offer"),
        JourneyStep("book", "book it", condition="one suits", after=["offer", "later"]),
        JourneyStep("close", "say goodbye", after="book"),
    ]
    talk = Talk(make_shop(journeys=[Journey("return", "the customer wants to return an item", steps)]))
    talk.steps["return-offer"] = ASKS | {"answered_by": "M1"}
    talk.steps["return-later"] = ASKS
    talk.steps["return-book"] = {"condition_holds": "no"}
    talk.say("I want to return it, but none of your times suits.")
    assert talk.active == ["later"]
    assert talk.journey["book"] == "waiting"
    talk.steps["return-later"] = ASKS | {"answered_by": "M3"}
    talk.steps["return-book"] = {}
    talk.say("This one does.")
    assert talk.active == ["book"]


def test_a_condition_that_is_not_known_yet_holds_its_step_back_and_is_an_insight_for_the_reply():
    talk = Talk()
    talk.call["get_order"] = A301
    talk.steps["return-reason"] = ASKS | {"answered_by": "M1"}
    for step in ("return-refund", "return-exchange"):
        talk.steps[step] = {"condition_holds": "not_known_yet", "condition_rationale": "it was not said"}
    talk.say("I want to return order A-301, it is not right.")
    assert talk.active == []
    insights = get_prompts(talk.model, "message")[-1].section("insights")
    assert [insight["what_would_decide_it"] for insight in insights] == ["it was not said"] * 2


def test_code_decides_conditions_that_are_functions():
    steps = [
        JourneyStep("vip", "greet the guest", condition=lambda state: state["variables"].get("vip")),
        JourneyStep(
            "name",
            "ask for the name",
            done_when=lambda state: bool(state["variables"].get("name")),
            after="vip",
        ),
        JourneyStep("end", "say thanks", after="name"),
    ]
    journey = Journey("return", "the customer wants to return an item", steps)
    variables = [Variable("vip", "a guest"), Variable("name", "their name", "Ada")]
    talk = Talk(make_shop(journeys=[journey], variables=variables))
    talk.say("I want to return a lamp.")
    assert talk.active == ["end"]


def test_the_model_is_asked_again_about_a_step_that_it_left_out_and_a_message_that_does_not_exist():
    talk = Talk()
    talk.call["get_order"] = A301
    talk.steps["return-reason"] = ASKS | {"answered_by": "M77"}
    talk.say("I want to return order A-301.")
    assert talk.active == ["reason"]
    complaints = [prompt.complaint for prompt in get_prompts(talk.model, "matcher") if prompt.complaint]
    assert any("there is no 'M77'" in complaint for complaint in complaints)


@pytest.mark.parametrize("strategy", ["pre-act", "react", "respact"])
def test_a_journey_unlocks_its_tools_step_by_step_in_every_strategy(strategy):
    talk = Talk(moves=[act("refund", A301), act("get_order", A301), say("Here.")], strategy=strategy)
    talk.steps["return-reason"] = ASKS
    talk.say("I want to return order A-301.")
    assert talk.results == ["A-301 has a lamp"]
    assert talk.active == ["reason"]


@pytest.mark.parametrize("mode", ["cot", "direct"])
def test_a_journey_needs_no_queries(mode):
    talk = Talk(mode=mode)
    talk.call["get_order"] = A301
    talk.steps["return-reason"] = ASKS
    talk.say("I want to return order A-301.")
    assert talk.active == ["reason"]


def test_an_eager_turn_goes_through_a_journey_too():
    talk = Talk(eager=True)
    talk.call["get_order"] = A301
    talk.steps["return-reason"] = ASKS
    talk.say("I want to return order A-301.")
    assert talk.results == ["A-301 has a lamp"]
    assert talk.active == ["reason"]


def test_a_journey_that_has_ended_is_asked_about_once_a_turn_and_only_if_the_customer_is_in_it():
    talk = Talk(
        make_shop(journeys=[Journey("return", "they want to return", [JourneyStep("why", "ask why")])])
    )
    talk.steps["return-why"] = ASKS | {"answered_by": "M1"}
    talk.say("It is broken.")
    counts: list[int] = []
    for score in (2, 9):
        talk.judge["return"] = score
        before = len(talk.model.calls)
        talk.say("Thanks.")
        counts.append(len(talk.model.calls) - before)
    assert counts == [2, 3]


def test_another_journey_begins_in_the_turn_in_which_its_step_opens_wherever_it_is_listed():
    identify = Journey("identify", None, [JourneyStep("name", "ask for the name")])
    step = JourneyStep("who", journey="identify", condition="the customer is unknown")
    journey = Journey("return", "the customer wants to return an item", [step])
    talk = Talk(make_shop(journeys=[identify, journey]))
    talk.steps["return-who"] = {"condition_holds": "not_known_yet"}
    talk.steps["identify-name"] = ASKS
    talk.say("I want to return a lamp.")
    assert talk.active == []
    talk.steps["return-who"] = {}
    talk.say("You do not know me.")
    assert talk.active == ["name"]
