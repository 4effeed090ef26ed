"""A task: an utterance waits for its answer, which joins the context, until one ends the task."""

from typing import Annotated, TypedDict

import pytest
from langchain_core.messages import AnyMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command

from arq_graph import errors
from arq_graph.nodes import Listener, Speaker, route_moves
from tests.brain import act, ask, brain, say
from tests.speaking.chat import A1, DESK, THREAD, Chat

LOOK = act("get_order", A1)
DONE = say("All is done.", ends_task=True)


def task(script, **settings):
    return Chat(script, setting="task", **settings)


def test_an_utterance_waits_and_its_answer_joins_the_context():
    chat = task([ask("Which order?"), LOOK, DONE])
    chat.send("Look it up.")
    assert chat.interrupt == {"type": "speak", "text": "Which order?", "category": "probing_question"}
    assert chat.answer("A-1") == "All is done."
    assert [message.type for message in chat.messages] == ["human", "ai", "human", "ai", "tool", "ai"]
    assert chat.prompts[1].lines[-1]["text"] == "A-1"
    assert not chat.app.get_state(THREAD).next


class Mood(TypedDict):
    mood: str


class ChatState(TypedDict):
    chat: Annotated[list[AnyMessage], add_messages]


@pytest.mark.parametrize(("input_schema", "key"), [(MessagesState, "messages"), (ChatState, "chat")])
def test_its_nodes_declare_the_channels_that_a_graph_lacks(input_schema, key):
    builder = StateGraph(Mood, input_schema=input_schema)
    model = brain(moves=[ask("Which order?"), DONE])
    builder.add_node("speak", Speaker(model, DESK, setting="task", messages_key=key))
    builder.add_node("listen", Listener(messages_key=key))
    builder.add_edge(START, "speak")
    route = route_moves(DESK, otherwise=END, messages_key=key)
    builder.add_conditional_edges("speak", route, ["listen", END])
    builder.add_edge("listen", "speak")
    app = builder.compile(checkpointer=MemorySaver())
    app.invoke({key: [("user", "Look it up.")]}, THREAD)
    app.invoke(Command(resume="A-1"), THREAD)
    texts = [message.text for message in app.get_state(THREAD).values[key]]
    assert texts == ["Look it up.", "Which order?", "A-1", "All is done."]


@pytest.mark.parametrize("answer", ["  ", 7])
def test_an_answer_that_says_nothing_can_be_given_again(answer):
    chat = task([ask("Which order?"), DONE])
    chat.send("Look it up.")
    with pytest.raises(errors.InputError, match="a non-blank string"):
        chat.answer(answer)
    assert chat.answer("A-1") == "All is done."


def test_an_utterance_that_waits_counts_as_a_question_so_waiting_ends():
    chat = task([say(f"I am at {n}.") for n in range(99)], max_questions=3)
    chat.send("Look it up.")
    for _ in range(3):
        assert chat.interrupt["category"] == "status_update"
        chat.answer("Hm.")
    assert chat.interrupt is None
    assert chat.messages[-1].text == DESK.fallback


def test_an_event_says_that_the_task_waits_though_nothing_was_asked():
    app = task([say("I am at it.")]).app
    spoke, _ = app.stream({"messages": [("user", "Look it up.")]}, THREAD, stream_mode="custom")
    assert (spoke.asks, spoke.waits) == (False, True)


def test_steps_are_counted_across_answers_and_a_new_message_is_a_new_task():
    chat = task([ask("One?"), LOOK, ask("Two?"), ask("Three?"), DONE, DONE], max_steps=3, name="Front desk")
    chat.send("Look up A-1.")
    chat.answer("Yes.")
    assert chat.answer("Go on.") == "All is done."
    assert "end the task, and say how far it got" in chat.prompts[-1].complaint
    assert [prompt.now["steps_left"] for prompt in chat.prompts] == [3, 2, 1, 0, 0]
    chat.send("And another thing.")
    assert chat.prompts[-1].now["steps_left"] == 3


@pytest.mark.parametrize(("answer", "done"), [("Yes.", ["A-1 is cancelled"]), ("Hm.", [])])
def test_a_call_is_agreed_to_within_a_task(answer, done):
    # Code's question waits for its answer, also where the model takes the task for done.
    script = [act("cancel_order", A1), say("Gladly.", ends_task=True), say("Well.", ends_task=True)]
    chat = task(script, max_questions=0)
    assert chat.send("Cancel A-1") == 'Gladly.\n\nCancel order (order id: "A-1")\nReply yes to go ahead.'
    chat.answer(answer)
    assert chat.results == done


def test_what_a_long_task_is_about_is_summarised_before_its_next_move():
    script = [move for number in range(9) for move in (ask(f"What is number {number}?"), LOOK)]
    points = [{"text": "Look up ORD-77.", "sources": ["M1"]}]
    chat = task([*script, DONE], history_tokens=600, points=points)
    chat.send("Look up ORD-77.")
    for _ in range(9):
        chat.answer("word " * 60)
    assert chat.prompts[-1].section("summary")["points"][0]["text"] == "Look up ORD-77."
    assert '"id": "M1"' not in chat.prompts[-1].tail
