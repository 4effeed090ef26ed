"""Think, speak and act in a chat, one move at a time, under rules that code enforces."""

import pytest

from arq_graph import Agent, Variable, errors
from arq_graph.nodes import Speaker, events
from tests.brain import act, ask, brain, say, think
from tests.speaking.chat import A1, DESK, THREAD, Chat, cancel_order, find_table, get_order

LOOK, CANCEL = act("get_order", A1), act("cancel_order", A1)
QUESTION = 'Cancel order (order id: "A-1")\nReply yes to go ahead.'


def test_a_turn_thinks_acts_and_speaks():
    chat = Chat([think("An order."), LOOK, say("It is late.")])
    assert chat.send("Where is A-1?") == "It is late."
    assert chat.calls == [("get_order", A1)]
    assert chat.moves == [("think", "An order."), ("act", "get_order"), ("speak", "It is late.")]
    assert chat.prompts[1].section("thoughts") == [{"thought": "An order.", "observed": "OK"}]
    assert chat.prompts[2].section("thoughts") == [{"thought": "An order.", "after": "M1", "observed": "OK"}]


def test_thoughts_and_utterances_are_streamed():
    app = Chat([think("An order."), ask("Which one?")]).app
    thought, spoke, sent = app.stream({"messages": [("user", "Where is it?")]}, THREAD, stream_mode="custom")
    assert (type(thought), thought.text) == (events.Thought, "An order.")
    assert (spoke.text, spoke.category, spoke.asks) == ("Which one?", "probing_question", True)
    assert (sent.type, sent.content) == ("reply_sent", "Which one?")


WHICH = ask("Which order?")
REFUSED_MOVES = {
    "this was thought before": [think("Hm."), LOOK, think("hm"), say("Late.")],
    "2 thoughts before a move are enough": [think("a"), think("b"), think("c"), say("Well.")],
    "it is empty: speak or act": [think(" "), say("Well.")],
    "'get_order' is internal": [LOOK, say("get_order says T1."), say("A-1 is late.")],
    "it is empty": [say(" "), say("Well.")],
    "this was just said": [WHICH, ask("which ORDER"), say("Then I cannot.")],
}


@pytest.mark.parametrize("complaint", REFUSED_MOVES)
def test_a_refused_move_is_asked_for_again(complaint):
    script = REFUSED_MOVES[complaint]
    chat = Chat(script)
    if script[0] is WHICH:
        chat.send("Where is it?")
    assert chat.send("Where is A-1?") == script[-1].text
    assert complaint in chat.prompts[-1].complaint


def test_thoughts_and_calls_of_a_turn_are_bounded():
    thinker = Chat([think(str(number)) for number in range(99)])
    assert thinker.send("Hi") == DESK.fallback
    assert len(thinker.prompts) == 2 + 3  # two thoughts, and the candidates of one move
    caller = Chat([LOOK, act("get_order", {"order_id": "A-2"})] * 4, max_steps=3)
    caller.send("Where are A-1 and A-2?")
    assert len(caller.calls) == 3
    assert caller.prompts[-1].now["steps_left"] == 0


def test_an_utterance_is_labelled_after_it_is_written():
    categories = {
        "alternative_suggestion": say("One.", mentions_failure=True, closes=True, asks=True),
        "follow_up": say("Two.", closes=True, states_belief=True),
        "status_update": say("Three."),
        "assumption_verification": ask("Four.", states_belief=True, offers_choice=True),
        "clarification_request": ask("Five.", offers_choice=True),
        "probing_question": say("أي طلب؟", asks=False),  # code sees the question mark
    }
    chat = Chat(list(categories.values()), max_questions=9)
    for category in categories:
        chat.send("Hello")
        assert chat.state["moves"][-1]["category"] == category
        assert chat.messages[-1].response_metadata["speech"]["category"] == category


def test_speech_can_be_limited_to_dialogue_acts():
    acts = {"Ask": "ask something", "Affirm": "say yes"}
    chat = Chat([ask("Where?", dialogue_act="Ask")], dialogue_acts=acts, setting="task")
    chat.send("Find the mug")
    assert chat.interrupt["dialogue_act"] == chat.state["moves"][-1]["dialogue_act"] == "Ask"
    assert chat.prompts[0].section("dialogue_acts") == acts
    with pytest.raises(errors.BlueprintError):
        Chat([ask("Where?", dialogue_act="Sing")], dialogue_acts=acts).send("Find the mug")


KNOWING = Agent(
    "Desk",
    "All of today's are in A-7.",
    tools=[get_order, find_table],
    variables=[Variable("v", "-", "A-8")],
)


@pytest.mark.parametrize(
    ("source", "exists"),
    [("M1, T1", True), ("P, V1, get_order", True), ("M1, T7", False), ("", False)],
)
def test_a_fact_needs_a_source_that_the_prompt_has(source, exists):
    fact = say("It is late.", facts=[{"fact": "it is late", "source": source}])
    chat = Chat([LOOK, fact, say("I do not know.")], KNOWING)
    assert chat.send("Where is A-1?") == ("It is late." if exists else "I do not know.")


def test_a_value_of_the_profile_a_variable_or_a_default_is_no_guess():
    calls = [
        act("get_order", {"order_id": "A-7"}, bases={"order_id": "known"}),
        act("get_order", {"order_id": "A-8"}, bases={"order_id": "known"}),
        act("find_table", {"food": "greek", "guests": 2}),
    ]
    chat = Chat([*calls, say("Well.")], KNOWING)
    chat.send("Where are my orders, and a table, greek?")
    assert chat.calls == [(call.tool, call.args) for call in calls]


def test_the_customer_confirms_a_value_that_nobody_gave_whatever_it_is_said_to_rest_on():
    chat = Chat([act("get_order", {"order_id": "A-9"}), say("One moment.")])
    question = 'Get order (order id: "A-9")\nReply yes to go ahead.'
    assert chat.send("Where is my order?") == f"One moment.\n\n{question}"
    assert chat.state["moves"][-1]["category"] == "assumption_verification"
    assert "isn't in any customer message or tool result" in chat.prompts[1].complaint
    assert chat.calls == []
    chat.send("Yes")
    assert chat.results == ["A-9 is late"]


def test_a_call_that_was_given_up_for_another_is_not_pending():
    chat = Chat([CANCEL, LOOK, errors.BlueprintError("gone")])
    with pytest.raises(errors.BlueprintError):
        chat.send("Cancel A-1")
    kinds = [(insight["tool"], insight["kind"]) for insight in chat.state["tool_insights"]]
    assert sorted(kinds) == [("cancel_order", "declined"), ("get_order", "run")]


def test_the_customer_is_asked_again_about_a_call_behind_one_that_failed():
    confirm = dict.fromkeys(("get_order", "cancel_order"), "customer")
    agent = Agent("Desk", "You help.", tools=[get_order, cancel_order], confirm=confirm)
    chat = Chat([act("get_order", {"order_id": "A-0"}), CANCEL, say("Both."), say("It is locked.")], agent)
    assert chat.send("Look up A-0 and cancel A-1").startswith("Both.\n\n1. Get order")
    assert chat.send("Yes") == f"It is locked.\n\n{QUESTION}"
    now = chat.prompts[-1].now
    assert now["asked_about_again"] == [{"tool": "cancel_order", "arguments": A1}]
    assert "refused" not in now


def test_questions_in_a_row_are_bounded_except_for_codes_own():
    chat = Chat([ask("One?"), LOOK, ask("Two?"), ask("Three?"), ask("Four?"), CANCEL], max_questions=2)
    for text in ("Help me", "A-1", "Hm"):
        chat.send(text)
    assert chat.send("Cancel A-1") == QUESTION
    questions_left = [prompt.now["questions_left"] for prompt in chat.prompts]
    assert questions_left == [2, 1, 2, 1, 0, 0, 0]  # the call in between ends the first row
    assert "2 questions in a row are enough" in chat.prompts[5].complaint
    assert Chat([say("I see.")], max_questions=0).send("Hm") == "I see."


@pytest.mark.parametrize("options", [{"setting": "task"}, {"in_world": True}])
def test_a_draft_is_written_only_in_a_chat_with_tools(options):
    with pytest.raises(
        errors.InputError, match='draft=True works only with setting="chat" and in_world=False'
    ):
        Speaker(brain(), Agent("Desk", "You help."), draft=True, **options)
