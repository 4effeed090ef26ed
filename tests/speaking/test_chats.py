"""Think, speak and act in a chat: one move at a time, and code holds what the model cannot be trusted with."""

from __future__ import annotations

import asyncio

import pytest
from langgraph.graph import END, START, MessagesState, StateGraph

from arq_graph import Agent, Variable, errors
from arq_graph.nodes import Speaker, events
from tests.speaking.scripted import DESK, THREAD, Chat, act, ask, cancel_order, get_order, say, speaker, think

A1 = {"order_id": "A-1"}
LOOK = act("get_order", **A1)
PUT = 'Cancel order (order id: "A-1")\nReply yes to go ahead.'


def test_a_turn_thinks_acts_and_speaks():
    desk = Chat([think("An order."), LOOK, say("It is late.")])
    assert desk.hear("Where is A-1?") == "It is late."
    assert desk.calls == [("get_order", A1)]
    assert desk.moves == [("think", "An order."), ("act", "get_order"), ("speak", "It is late.")]
    assert desk.asked[1].section("thoughts") == [{"thought": "An order.", "observed": "OK"}]
    assert desk.asked[2].section("thoughts") == [{"thought": "An order.", "after": "M1", "observed": "OK"}]


def test_it_works_alone_in_a_graph_that_knows_only_messages_sync_and_async():
    builder = StateGraph(MessagesState)
    builder.add_node("speak", Speaker(speaker([think("Greet."), say("Hello!")]), Agent("Desk", "You help.")))
    builder.add_edge(START, "speak")
    builder.add_edge("speak", END)
    app, hello = builder.compile(), {"messages": [("user", "Hi")]}
    for state in (app.invoke(hello), asyncio.run(app.ainvoke(hello))):
        assert [message.text for message in state["messages"]] == ["Hi", "Hello!"]


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_every_mode_has_the_move_and_its_labels(mode):
    desk = Chat([ask("Which order is it?")], mode=mode)
    desk.hear("Where is it?")
    assert desk.state["moves"][-1]["category"] == "probing_question"


def test_thoughts_and_utterances_are_streamed():
    app = Chat([think("An order."), ask("Which one?")]).app
    thought, spoke = app.stream({"messages": [("user", "Where is it?")]}, THREAD, stream_mode="custom")
    assert (type(thought), thought.text) == (events.Thought, "An order.")
    assert (spoke.text, spoke.category, spoke.asks, spoke.calls) == (
        "Which one?",
        "probing_question",
        True,
        2,
    )


def test_thoughts_are_bounded_and_none_comes_twice():
    script = [
        think("Hm."),
        think("hm"),
        think("So."),
        think("And so."),
        LOOK,
        think("so"),
        say("It is late."),
    ]
    desk = Chat(script)
    desk.hear("Where is A-1?")
    assert "thought before" in desk.asked[2].complaint
    assert "2 thoughts before a move are enough" in desk.asked[4].complaint
    assert "thought before" in desk.asked[6].complaint  # also where something was done in between
    assert [kind for kind, _ in desk.moves] == ["think", "think", "act", "speak"]
    endless = Chat([think(str(n)) for n in range(99)])
    assert endless.hear("Hi") == DESK.fallback
    assert len(endless.asked) == 2 + 3  # two thoughts, and the candidates of one move


def test_calls_of_a_turn_are_bounded():
    desk = Chat([act("get_order", order_id="A-1"), act("get_order", order_id="A-2")] * 4, max_steps=3)
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


@pytest.mark.parametrize("wrong", [{"max_questions": -1}, {"setting": "theatre"}])
def test_a_setting_out_of_its_range_is_told(wrong):
    with pytest.raises(errors.InputError, match=next(iter(wrong))):
        Speaker(speaker([]), DESK, **wrong)


def test_an_utterance_gives_away_no_tool_and_no_id_but_may_name_the_customers_own():
    desk = Chat([LOOK, say("get_order says T1."), say("A-1 is late.")])
    assert desk.hear("Where is A-1?") == "A-1 is late."
    assert "'get_order' is internal" in desk.asked[2].complaint


def test_every_id_of_the_prompt_is_a_source_and_no_other():
    def fact(source):
        return say("It cannot be undone.", facts=[{"fact": "it cannot be undone", "source": source}])

    for source in ("M1", "T1", "P", "V1", "get_order", "M1, T1"):
        desk = Chat([LOOK, fact(source)], agent=with_variable("gold"))
        desk.hear("Where is A-1?")
        assert len(desk.asked) == 2
    for source in ("T7", "M1, T7", None, ""):
        desk = Chat([LOOK, fact(source), say("I do not know.")])
        assert desk.hear("Where is A-1?") == "I do not know."


def with_variable(value):
    return Agent(
        "Desk", "All of today's are in A-7.", tools=[get_order], variables=[Variable("v", "-", value)]
    )


@pytest.mark.parametrize("order_id", ["A-7", "A-8"])
def test_what_the_profile_or_a_variable_tells_is_no_guess(order_id):
    desk = Chat([act("get_order", order_id=order_id).resting_on(order_id="known")], with_variable("A-8"))
    desk.hear("Where is my order?")
    assert desk.calls[0] == ("get_order", {"order_id": order_id})


def test_a_default_of_the_tool_is_no_guess():
    desk = Chat([act("find_table", food="greek", guests=2), say("The Owl.")])
    desk.hear("A table, greek")
    assert [tool for tool, _ in desk.calls] == ["find_table"]


def test_a_value_that_nobody_told_is_put_to_the_customer_whatever_it_is_said_to_rest_on():
    desk = Chat([act("get_order", order_id="A-9"), say("One moment.")])
    put = 'Get order (order id: "A-9")\nReply yes to go ahead.'
    assert desk.hear("Where is my order?") == f"One moment.\n\n{put}"
    assert desk.state["moves"][-1]["category"] == "assumption_verification"
    assert "was told by no customer message and no tool" in desk.asked[1].complaint
    assert desk.calls == []
    desk.hear("Yes")
    assert desk.results == ["A-9 is late"]


def test_a_call_that_was_given_up_for_another_does_not_wait():
    desk = Chat([act("cancel_order", **A1), LOOK, errors.BlueprintError("gone")])
    with pytest.raises(errors.BlueprintError):
        desk.hear("Cancel A-1")
    kinds = [(each["tool"], each["kind"]) for each in desk.state["tool_insights"]]
    assert sorted(kinds) == [("cancel_order", "declined"), ("get_order", "run")]


def test_nothing_is_said_twice_in_a_row():
    desk = Chat([ask("Which order?"), ask("Which order, then"), ask("which ORDER"), say("Then I cannot.")])
    desk.hear("Help me")
    assert desk.hear("Hm") == "Which order, then"
    assert desk.hear("Hm") == "Then I cannot."
    assert "this was just said" in desk.asked[3].complaint


def test_questions_in_a_row_are_bounded_but_not_those_that_code_must_ask():
    desk = Chat([ask("One?"), ask("Two?"), ask("Three?"), act("cancel_order", **A1)], max_questions=2)
    desk.hear("Help me")
    assert desk.asked[0].now["questions_left"] == 2
    desk.hear("Hm")
    assert desk.hear("Cancel A-1") == PUT
    assert desk.asked[2].now["questions_left"] == 0
    assert "2 questions in a row are enough" in desk.asked[3].complaint
    assert Chat([say("I see.")], max_questions=0).hear("Hm") == "I see."


def test_a_statement_or_a_deed_ends_the_row_of_questions():
    desk = Chat([ask("One?"), say("I see."), LOOK, ask("Two?")])
    for text in ("Help me", "Hm", "A-1"):
        desk.hear(text)
    assert [asked.now["questions_left"] for asked in desk.asked] == [3, 2, 3, 3]


def test_the_head_and_the_schema_stay_the_same_over_a_conversation():
    desk = Chat([say("Which one."), LOOK, say("It is late.")])
    desk.hear("Hi")
    desk.hear("A-1")
    first, *_, last = desk.asked
    assert (first.head, first.schema) == (last.head, last.schema)
    assert last.tail.startswith(first.tail.partition("\n</conversation>")[0])


def test_an_operator_approves_before_a_call_runs():
    agent = Agent("Desk", "You help.", tools=[get_order, cancel_order], confirm={"get_order": "operator"})
    desk = Chat([LOOK, say("Done.")], agent)
    desk.hear("Where is A-1?")
    assert desk.waits["action_requests"][0]["args"] == A1
    desk.answer({"decisions": [{"type": "approve"}]})
    assert desk.results == ["A-1 is late"]


def test_a_turn_that_was_cut_off_goes_on():
    desk = Chat([think("An order."), LOOK, errors.BlueprintError("gone"), say("Late.")])
    with pytest.raises(errors.BlueprintError):
        desk.hear("Where is A-1?")
    desk.app.invoke(None, THREAD)
    assert desk.results == ["A-1 is late"]
    assert [kind for kind, _ in desk.moves] == ["think", "act", "speak"]
