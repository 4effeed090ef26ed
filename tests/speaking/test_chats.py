"""Think, speak and act in a chat: one move at a time, and code holds what the model cannot be trusted with."""

from __future__ import annotations

import pytest

from arq_graph import Agent, Variable, errors
from arq_graph.nodes import events
from tests.brain import act, ask, say, think
from tests.speaking.chat import A1, DESK, THREAD, Chat, cancel_order, find_table, get_order

LOOK, CANCEL = act("get_order", A1), act("cancel_order", A1)
PUT = 'Cancel order (order id: "A-1")\nReply yes to go ahead.'


def test_a_turn_thinks_acts_and_speaks():
    desk = Chat([think("An order."), LOOK, say("It is late.")])
    assert desk.hear("Where is A-1?") == "It is late."
    assert desk.calls == [("get_order", A1)]
    assert desk.moves == [("think", "An order."), ("act", "get_order"), ("speak", "It is late.")]
    assert desk.asked[1].section("thoughts") == [{"thought": "An order.", "observed": "OK"}]
    assert desk.asked[2].section("thoughts") == [{"thought": "An order.", "after": "M1", "observed": "OK"}]


def test_thoughts_and_utterances_are_streamed():
    app = Chat([think("An order."), ask("Which one?")]).app
    thought, spoke = app.stream({"messages": [("user", "Where is it?")]}, THREAD, stream_mode="custom")
    assert (type(thought), thought.text) == (events.Thought, "An order.")
    assert (spoke.text, spoke.category, spoke.asks) == ("Which one?", "probing_question", True)


WHICH = ask("Which order?")
REFUSED = {
    "this was thought before": [think("Hm."), LOOK, think("hm"), say("Late.")],
    "2 thoughts before a move are enough": [*map(think, "abc"), say("Well.")],
    "'get_order' is internal": [LOOK, say("get_order says T1."), say("A-1 is late.")],
    "it is empty": [say(" "), say("Well.")],
    "this was just said": [WHICH, ask("which ORDER"), say("Then I cannot.")],
}


@pytest.mark.parametrize("complaint", REFUSED)
def test_a_move_that_cannot_be_made_is_asked_for_again(complaint):
    script = REFUSED[complaint]
    desk = Chat(script)
    if script[0] is WHICH:
        desk.hear("Where is it?")
    assert desk.hear("Where is A-1?") == script[-1].text
    assert complaint in desk.asked[-1].complaint


def test_a_model_that_only_thinks_is_not_asked_for_ever():
    endless = Chat([think(str(n)) for n in range(99)])
    assert endless.hear("Hi") == DESK.fallback
    assert len(endless.asked) == 2 + 3  # two thoughts, and the candidates of one move


def test_calls_of_a_turn_are_bounded():
    desk = Chat([LOOK, act("get_order", {"order_id": "A-2"})] * 4, max_steps=3)
    desk.hear("Where are A-1 and A-2?")
    assert len(desk.calls) == 3
    assert desk.asked[-1].now["steps_left"] == 0


@pytest.mark.parametrize(
    ("words", "flags", "category"),
    [
        ("Hm.", {"mentions_failure": True, "closes": True, "asks": True}, "alternative_suggestion"),
        ("Hm.", {"closes": True, "states_belief": True}, "follow_up"),
        ("Hm.", {}, "status_update"),
        ("Hm.", {"states_belief": True, "asks": True, "offers_choice": True}, "assumption_verification"),
        ("Hm.", {"asks": True, "offers_choice": True}, "clarification_request"),
        ("Hm.", {"asks": True}, "probing_question"),
        ("أي طلب؟", {"asks": False}, "probing_question"),  # whatever the model says of it
    ],
)
def test_an_utterance_is_labelled_after_it(words, flags, category):
    desk = Chat([say(words, **flags)])
    desk.hear("Hello")
    assert desk.state["moves"][-1]["category"] == category
    assert desk.messages[-1].response_metadata["speech"]["category"] == category


def test_speech_can_be_limited_to_acts():
    acts = {"Ask": "ask something", "Affirm": "say yes"}
    desk = Chat([ask("Where?", dialogue_act="Ask")], dialogue_acts=acts, setting="task")
    desk.hear("Find the mug")
    assert desk.waits["dialogue_act"] == "Ask"
    assert desk.state["moves"][-1]["dialogue_act"] == "Ask"
    assert desk.asked[0].section("dialogue_acts") == acts
    with pytest.raises(errors.BlueprintError):
        Chat([ask("Where?", dialogue_act="Sing")], dialogue_acts=acts).hear("Find the mug")


KNOWING = Agent(
    "Desk",
    "All of today's are in A-7.",
    tools=[get_order, find_table],
    variables=[Variable("v", "-", "A-8")],
)


@pytest.mark.parametrize("source", ["M1", "T1", "P", "V1", "get_order", "M1, T1", "T7", "M1, T7", ""])
def test_every_id_of_the_prompt_is_a_source_and_no_other(source):
    fact = say("It is late.", facts=[{"fact": "it is late", "source": source}])
    desk = Chat([LOOK, fact, say("I do not know.")], KNOWING)
    assert desk.hear("Where is A-1?") == (
        "It is late." if source and "T7" not in source else "I do not know."
    )


@pytest.mark.parametrize(
    "call",
    [
        act("get_order", {"order_id": "A-7"}, bases={"order_id": "known"}),
        act("get_order", {"order_id": "A-8"}, bases={"order_id": "known"}),
        act("find_table", {"food": "greek", "guests": 2}),
    ],
    ids=["profile", "variable", "default"],
)
def test_what_the_profile_a_variable_or_a_default_tells_is_no_guess(call):
    desk = Chat([call, say("Well.")], KNOWING)
    desk.hear("Where is my order, and a table, greek?")
    assert desk.calls == [(call.tool, call.args)]


def test_a_value_that_nobody_told_is_put_to_the_customer_whatever_it_is_said_to_rest_on():
    desk = Chat([act("get_order", {"order_id": "A-9"}), say("One moment.")])
    put = 'Get order (order id: "A-9")\nReply yes to go ahead.'
    assert desk.hear("Where is my order?") == f"One moment.\n\n{put}"
    assert desk.state["moves"][-1]["category"] == "assumption_verification"
    assert "was told by no customer message and no tool" in desk.asked[1].complaint
    assert desk.calls == []
    desk.hear("Yes")
    assert desk.results == ["A-9 is late"]


def test_a_call_that_was_given_up_for_another_does_not_wait():
    desk = Chat([CANCEL, LOOK, errors.BlueprintError("gone")])
    with pytest.raises(errors.BlueprintError):
        desk.hear("Cancel A-1")
    kinds = [(each["tool"], each["kind"]) for each in desk.state["tool_insights"]]
    assert sorted(kinds) == [("cancel_order", "declined"), ("get_order", "run")]


def test_a_call_that_waited_behind_one_that_failed_is_put_again_and_the_model_is_told():
    agent = Agent(
        "Desk",
        "You help.",
        tools=[get_order, cancel_order],
        confirm=dict.fromkeys(("get_order", "cancel_order"), "customer"),
    )
    desk = Chat([act("get_order", {"order_id": "A-0"}), CANCEL, say("Both."), say("It is locked.")], agent)
    assert desk.hear("Look up A-0 and cancel A-1").startswith("Both.\n\n1. Get order")
    assert desk.hear("Yes") == f"It is locked.\n\n{PUT}"
    now = desk.asked[-1].now
    assert now["asked_about_again"] == [{"tool": "cancel_order", "arguments": A1}]
    assert "refused" not in now


def test_questions_in_a_row_are_bounded_but_not_those_that_code_must_ask():
    desk = Chat([ask("One?"), ask("Two?"), ask("Three?"), CANCEL], max_questions=2)
    desk.hear("Help me")
    assert desk.asked[0].now["questions_left"] == 2
    desk.hear("Hm")
    assert desk.hear("Cancel A-1") == PUT
    assert desk.asked[2].now["questions_left"] == 0
    assert "2 questions in a row are enough" in desk.asked[3].complaint
    assert Chat([say("I see.")], max_questions=0).hear("Hm") == "I see."


def test_a_statement_or_a_deed_ends_the_row_of_questions():
    desk = Chat([ask("One?"), LOOK, ask("Two?"), say("I see."), say("Well.")])
    for text in ("Help me", "A-1", "Hm", "So?"):
        desk.hear(text)
    assert [asked.now["questions_left"] for asked in desk.asked] == [3, 2, 3, 2, 3]
