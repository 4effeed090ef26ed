"""Conversations of an app with a user: what each of them gets, and how they end."""

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Interrupt, interrupt

from arq_graph import Agent, Guideline, ScriptedChatModel, create_guided_agent, hand_over
from arq_graph.milestones import Limits, aconverse, converse
from tests.brain import brain
from tests.milestones.evaluated import Answers, Says, buyer, deed, talker


def graph(*nodes: Any) -> Any:
    """A LangGraph app of these nodes in a row, which keeps its threads."""
    builder = StateGraph(MessagesState).add_sequence([(f"n{at}", node) for at, node in enumerate(nodes)])
    return builder.add_edge(START, "n0").compile(InMemorySaver())


def saying(*messages: Any) -> Any:
    """A node that adds these messages."""
    return lambda state: {"messages": [message.model_copy(update={"id": None}) for message in messages]}


def texts(conversation: Any) -> list[str]:
    return [message.text for message in conversation.messages]


class Returns:
    """An app that returns the same in every turn, or raises it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def invoke(self, input: Any, config: Any = None) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def test_an_app_gets_the_whole_conversation_and_one_with_a_checkpointer_the_new_messages():
    app = Answers(buyer)
    conversation = converse(app, Says("A lamp?", "Buy it."))
    assert [len(messages) for messages in app.inputs] == [1, 5]
    assert [message.type for message in conversation.messages] == ["human", "ai", "tool", "ai"] * 2
    assert (conversation.ended, len(conversation.turn_seconds)) == ("user", 2)
    counts = graph(lambda state: {"messages": [AIMessage(f"{len(state['messages'])} so far")]})
    assert texts(converse(counts, Says("one", "two"))) == ["one", "1 so far", "two", "3 so far"]


def test_a_conversation_ends_where_the_agent_hands_it_over_to_a_person():
    agent = Agent("Desk", "You help.", [Guideline("they want a person", "hand over", tools=[hand_over])])
    app = create_guided_agent(brain({"G1": 9}, call={"hand_over": {}}), agent, checkpointer=InMemorySaver())
    conversation = converse(app, Says("A person, please.", "Hello?"))
    assert conversation.ended == "takeover"
    assert texts(conversation)[::3] == ["A person, please.", agent.handed_over]


FINE = AIMessage("fine")


@pytest.mark.parametrize(
    "answer", ["fine", FINE, [FINE], {"messages": [{"role": "assistant", "content": "fine"}]}]
)
def test_an_app_may_return_only_new_messages_in_any_form(answer: Any):
    assert texts(converse(Returns(answer), Says("one", "two"))) == ["one", "fine", "two", "fine"]


def test_a_turn_begins_at_its_own_message_though_others_have_the_same_words():
    def answer(messages: Any) -> Any:
        return [AIMessage("Sure?"), HumanMessage("blue"), AIMessage(f"{len(messages)}")]

    conversation = converse(Answers(answer), Says("blue", "blue"))
    assert texts(conversation) == ["blue", "Sure?", "1", "blue", "Sure?", "4"]
    assert conversation.user_message_count == 2, "the app doesn't speak for the user"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (7, "the app answered with 7; it must return"),
        ({"messages": []}, "returned no AI message"),
        ([{"role": "nobody", "content": 3}], "it must return"),
        (TimeoutError("its own"), "TimeoutError: its own"),
        (asyncio.CancelledError("tired"), "CancelledError: tired"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
def test_an_error_of_the_app_ends_its_conversation(answer: Any, message: str):
    conversation = converse(Returns(answer), Says("one", "two"))
    assert conversation.ended == "error"
    assert message in str(conversation.error)
    assert texts(conversation) == ["one"]


def test_what_an_app_with_a_checkpointer_did_before_it_raised_is_in_the_conversation():
    def fail(state: MessagesState) -> Any:
        raise RuntimeError("out of lamps")

    conversation = converse(graph(saying(*deed("find")), fail), Says("one"))
    assert conversation.ended == "error"
    assert [message.type for message in conversation.messages] == ["human", "ai", "tool"]


def test_an_error_of_the_user_is_told_from_one_of_the_app():
    class Silent(Says):
        async def aspeak(self, said: Any) -> Any:
            raise RuntimeError("no words")

    conversation = converse(Answers(talker), Silent())
    assert (conversation.ended, conversation.is_user_failure, conversation.messages) == ("error", True, [])
    conversation = converse(Answers(talker), Says(3))  # type: ignore[arg-type]
    assert (conversation.ended, conversation.is_user_failure) == ("error", True)


# --- interrupts within a turn ----------------------------------------------------------------------------------------


def interrupting(value: Any, *, for_ever: bool = False) -> Any:
    def node(state: MessagesState) -> Any:
        answer = interrupt(value)
        while for_ever:
            interrupt(value)
        return {"messages": [AIMessage(f"It is {answer}.")]}

    return graph(node)


def test_calls_that_wait_for_an_operator_are_approved():
    conversation = converse(interrupting({"action_requests": [{"name": "a"}, {"name": "b"}]}), Says("go"))
    assert texts(conversation)[-1] == "It is {'decisions': [{'type': 'approve'}, {'type': 'approve'}]}."
    assert len(conversation.turn_seconds) == 1


@pytest.mark.parametrize("question", ["before waiting", "after the answer", "never"])
@pytest.mark.parametrize("keeps_answer", [True, False])
def test_a_question_within_a_turn_is_in_the_conversation_once(question: str, keeps_answer: bool):
    """The same question twice in one turn, each with its own answer, and the same words later as no question."""
    colour = AIMessage("Which colour?")
    ask = saying(colour) if question == "before waiting" else saying()

    def listen(state: MessagesState) -> Any:
        answer = interrupt({"type": "speak", "text": colour.text})
        asked = [AIMessage(colour.text)] if question == "after the answer" else []
        return {"messages": [*asked, *([HumanMessage(answer)] if keeps_answer else [])]}

    app = graph(
        ask, listen, saying(*deed("paint")), ask, listen, saying(AIMessage("Painted.")), saying(colour)
    )
    conversation = converse(app, Says("Paint two.", "blue", "red"))
    asked = ["Which colour?", "blue", "", "done", "Which colour?", "red"]
    # Where the app never said it itself, the first time that it does is taken for the question.
    later = [] if question == "never" else ["Which colour?"]
    assert texts(conversation) == ["Paint two.", *asked, "Painted.", *later]
    assert conversation.user_message_count == 3


@pytest.mark.parametrize("are_parallel", [True, False])
def test_two_interrupts_of_one_turn_get_their_own_answers(are_parallel: bool):
    def ask(*questions: str) -> Any:
        return lambda state: {"messages": [AIMessage(interrupt(question)) for question in questions]}

    app = graph(ask("First?", "Second?"))
    if are_parallel:
        builder = StateGraph(MessagesState).add_node("a", ask("First?")).add_node("b", ask("Second?"))
        app = builder.add_edge(START, "a").add_edge(START, "b").compile(InMemorySaver())
    conversation = converse(app, Says("go", "one", "two"))
    assert texts(conversation) == ["go", "First?", "one", "Second?", "two", "one", "two"]


def test_an_app_with_interrupts_may_return_only_new_messages():
    class Asks:
        def invoke(self, input: Any, config: Any = None) -> Any:
            if isinstance(input, Command):
                return {"messages": [AIMessage("Painted.")]}
            return {"messages": [AIMessage("Gladly.")], "__interrupt__": [Interrupt("Which colour?", id="1")]}

    conversation = converse(Asks(), Says("Paint it.", "blue"))
    assert texts(conversation) == ["Paint it.", "Gladly.", "Which colour?", "blue", "Painted."]


def test_an_answer_within_a_turn_counts_as_a_message_of_the_user():
    for turns, words, ended in ((2, (), "user"), (1, ("blue",), "turns"), (2, ("blue",), "user")):
        conversation = converse(
            interrupting("Which colour?"), Says("Paint it.", *words), limits=Limits(turns=turns)
        )
        assert conversation.ended == ended
        assert texts(conversation)[:2] == ["Paint it.", "Which colour?"]


def test_interrupts_that_nobody_can_answer_or_that_never_end_are_errors():
    odd = converse(interrupting({"what": "is this"}), Says("go"))
    assert "an interrupt that the evaluation cannot answer" in str(odd.error)
    endless = converse(interrupting({"action_requests": [{"name": "a"}]}, for_ever=True), Says("go"))
    assert "25 times in one turn" in str(endless.error)


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("passes_config", [True, False])
def test_an_app_makes_no_more_calls_than_the_limit(passes_config: bool):
    model = ScriptedChatModel(lambda call: "again")

    class Loops:
        def invoke(self, input: Any, config: Any = None) -> Any:
            while True:
                model.invoke(input["messages"], config if passes_config else None)

    assert converse(Loops(), Says("one"), limits=Limits(calls=7)).ended == "calls"
    assert len(model.calls) == 7


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_an_app_that_hangs_is_left_behind_at_the_limit_of_seconds(kind: str):
    over = threading.Event()

    class Sync:
        def invoke(self, input: Any, config: Any = None) -> Any:
            over.wait()

    class Async:
        async def ainvoke(self, input: Any, config: Any = None) -> Any:
            await asyncio.Event().wait()

    app = Sync() if kind == "sync" else Async()
    conversation = converse(app, Says("one"), limits=Limits(seconds=0.05))
    over.set()
    assert (conversation.ended, conversation.error, texts(conversation)) == ("seconds", None, ["one"])


def test_an_app_that_never_waits_ends_at_the_limit_of_time():
    conversation = converse(
        Answers(talker), Says(*["more"] * 10**5), limits=Limits(seconds=0.05, turns=10**5)
    )
    assert conversation.ended == "seconds"


async def test_a_conversation_can_be_cancelled():
    task = asyncio.create_task(aconverse(Returns("fine"), Says("one", "two")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
