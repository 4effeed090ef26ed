"""Scripts: tests of an agent that say what its model answers, in the words of whoever wrote the agent."""

from dataclasses import replace
from typing import Any

import pytest

from arq_graph import ARQ, Agent, Matching, Reply, respond
from arq_graph.errors import InputError
from arq_graph.milestones import MilestoneGraph
from arq_graph.nodes import BlueprintNode, get_active_guidelines
from arq_graph.testing import Chat, Script, assert_reached, scripted_app, scripted_model
from tests.journeys.returns import make_shop
from tests.testing.desk import DESK, STATUS, cancel_order, get_order, give_discount

LATE = Script(
    active=["the customer asks where an order is"],
    active_after_tools=["the order is delayed"],
    calls=[("get_order", {"order_id": "A-1"}), ("give_discount", {"order_id": "A-1"})],
    reply="It is late, and you get 5% off.",
)
CANCEL = Script(active=["cancel"], calls=[(cancel_order, {"order_id": "A-1", "notes": {"why": "late"}})])
CANCELLED = ("cancel_order", {"order_id": "A-1", "notes": {"why": "late"}})


def check_conversation(chat: Chat) -> None:
    assert chat.say("Where is my order A-1?") == "It is late, and you get 5% off."
    assert [tool for tool, _ in chat.calls] == ["get_order", "give_discount"]
    assert chat.say("Cancel it!").endswith("Reply yes to go ahead.")
    assert len(chat.calls) == 2
    assert chat.say("Yes, please go ahead with it.") == "It is cancelled."
    assert chat.calls[2:] == [CANCELLED]


@pytest.mark.parametrize("strategy", ["tools", "pre-act", "react", "respact"])
@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_a_conversation_goes_as_its_scripts_say(strategy: Any, mode: Any) -> None:
    scripts = [LATE, CANCEL, Script(agrees=True, reply="It is cancelled.")]
    check_conversation(Chat(scripted_app(DESK, scripts, strategy=strategy, mode=mode)))


@pytest.mark.parametrize("settings", [{"eager": True}, {"matching": Matching(batch_size=1)}])
async def test_it_goes_the_same_ahead_of_time_in_small_batches_and_async(settings: dict[str, Any]) -> None:
    app = scripted_app(DESK, [LATE, CANCEL], stream=True, **settings)
    chat = Chat(app)
    assert await chat.asay("Where is my order A-1?") == "It is late, and you get 5% off."
    assert "Reply yes" in await chat.asay("Cancel it!")


def test_a_call_is_not_made_while_its_tool_is_locked() -> None:
    chat = Chat(scripted_app(DESK, [Script(calls=CANCEL.calls, reply="What can I do for you?")]))
    assert chat.say("Hello") == "What can I do for you?"
    assert chat.calls == []


def test_what_the_customer_has_not_given_up_is_asked_again() -> None:
    chat = Chat(scripted_app(DESK, [CANCEL, CANCEL, Script(reply="As you like.")]))
    chat.say("Cancel A-1")
    assert "Reply yes" in chat.say("Hm, what would that cost?")
    assert chat.say("No.") == "As you like."
    assert chat.calls == []


@pytest.mark.parametrize("strategy", ["tools", "pre-act", "react", "respact"])
@pytest.mark.parametrize("guidelines", [[], DESK.guidelines])
def test_a_customer_may_agree_in_the_words_of_the_request(strategy: Any, guidelines: list[Any]) -> None:
    desk = DESK.replace(guidelines=guidelines, tools=[cancel_order])
    call = Script(calls=CANCEL.calls, active=["cancel"] if guidelines else [])
    scripts = [call, replace(call, agrees=False), Script(agrees=True, reply="Done.")]
    chat = Chat(scripted_app(desk, scripts, strategy=strategy))
    assert "Reply yes" in chat.say("Do it for me")
    assert "Reply yes" in chat.say("Do it for me")
    assert chat.calls == []
    assert chat.say("Do it for me") == "Done."
    assert chat.calls == [CANCELLED]


def test_guidelines_are_named_by_id_words_or_object() -> None:
    chat = Chat(scripted_app(DESK, [Script(active=[STATUS, "offer a call", "cancel"], reply="Certainly.")]))
    chat.say("Hello")
    active = [guideline.action for guideline in get_active_guidelines(DESK, chat.state)]
    assert active == ["look it up", "cancel it", "offer a call", "never promise a date"]


def test_a_journey_is_taken_step_by_step() -> None:
    scripts = [
        Script(active=["the customer wants to return an item"], reply="Which order?"),
        Script(calls=[("get_order", {"order_id": "A-1"})], reply="What is wrong?"),
        Script(
            answered=["reason"], active=["refund"], calls=[("refund", {"order_id": "A-1"})], reply="Done."
        ),
        Script(active=["close"], reply="All is settled."),
    ]
    shop = make_shop()
    chat = Chat(scripted_app(shop, scripts))
    for text in ("I want to return it.", "It is A-1.", "It is broken.", "Thank you."):
        chat.say(text)
    journey = MilestoneGraph.from_journey(shop, "return")
    path = assert_reached(journey, chat).path_taken
    assert path == ("Start", "order", "reason", "refund", "close", "End")


def test_answers_in_a_journey_are_changed_and_the_journey_is_given_up() -> None:
    scripts = [
        Script(active=["return"], calls=[("get_order", {"order_id": "A-1"})], reply="What is wrong?"),
        Script(
            changed=["order"], calls=[("get_order", {"order_id": "A-2"})], reply="A-2, then. What is wrong?"
        ),
        Script(given_up=["return"], reply="As you like."),
    ]
    chat = Chat(scripted_app(make_shop(), scripts))
    chat.say("I want to return A-1.")
    chat.say("No, A-2.")
    assert [arguments["order_id"] for _, arguments in chat.calls] == ["A-1", "A-2"]
    chat.say("I'd rather keep it.")
    assert chat.state["journeys"][0]["journeys"][0]["state"] == "given_up"


def test_prepared_replies_are_chosen_by_id() -> None:
    replies = [
        Reply(id="late", text="Your order is {status}.", fields={"status": {"result": "get_order.status"}}),
        Reply(id="sorry", text="I cannot help with that.", otherwise=True),
    ]
    desk = DESK.replace(replies=replies, composition="strict")
    scripts = [Script(active=[STATUS], calls=[(get_order, {"order_id": "A-1"})], reply="late")]
    assert Chat(scripted_app(desk, scripts)).say("Where is A-1?") == "Your order is delayed."


class Mood(ARQ):
    """Judge the customer's mood."""

    mood: str = respond("One word.")


def test_a_step_of_ones_own_is_answered_by_the_name_of_its_blueprint() -> None:
    template = "{% block head %}Judge.{% endblock %}{% block tail %}{% endblock %}"
    agent = Agent("Desk", "You help.", [])

    def ask(script: Script) -> Any:
        node = BlueprintNode(
            scripted_model(agent, [script]), Mood, template, write={"mood": lambda answer: answer.value.mood}
        )
        return node.invoke({"messages": [("user", "Hello")]})

    assert ask(Script(answers={"Mood": {"mood": "calm"}})) == {"mood": "calm"}
    with pytest.raises(InputError, match=r"scripts\[0\]: nothing answers 'Mood': add answers="):
        ask(Script())


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (
            Script(active=["cancle"]),
            r"scripts\[0\]: .* no guideline or step .cancle.; did you mean `cancel`",
        ),
        (Script(active=["the customer is angry"]), "fits 2 guidelines or steps: name its id or its action"),
        (Script(calls=[("cancel", {})]), "no tool 'cancel'; did you mean `cancel_order`"),
        (Script(calls=[("get_order", {"order": "A-1"})]), "no argument 'order'; did you mean `order_id`"),
        (Script(calls=["get_order"]), "a call is a tool with its arguments, .* not 'get_order'"),
    ],
)
def test_unknown_names_are_refused_before_anything_runs(script: Script, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        scripted_app(DESK, [script])


@pytest.mark.parametrize(
    ("scripts", "problem"),
    [
        ([], "turn 1 has no script: the agent asks 'matcher' about 'Hello'. Add Script"),
        ([Script()], r"scripts\[0\]: it has no reply to 'Hello': add reply="),
        (
            [
                Script(
                    active=["the order is delayed"],
                    calls=[(give_discount, {"order_id": 1, "percent": "lots"})],
                )
            ],
            "1 is not what is asked for there: string",
        ),
    ],
)
def test_what_no_script_says_is_named(scripts: list[Script], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        Chat(scripted_app(DESK, scripts)).say("Hello")


def test_a_cut_history_does_not_mix_up_the_turns() -> None:
    scripts = [Script(reply=f"{word} " * 200) for word in ("One", "Two", "Three")]
    chat = Chat(scripted_app(DESK, scripts, history_tokens=100))
    chat.say("Hello")
    chat.say("Hello again")
    with pytest.raises(InputError, match="no longer shows the whole conversation: set a higher history_to"):
        chat.say("Hello once more")
