"""One conversation between an app and a user: what each is given, how it ends, and what is kept of it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from arq_graph import ScriptedChatModel
from arq_graph.milestones import AgendaUser, Limits, UserSpec, aconverse, converse
from tests.milestones.evaluated import Answers, Says, buyer, deed, talker


def graph(*nodes: Any) -> Any:
    """A LangGraph app of these nodes in a row, which keeps its threads."""
    builder = StateGraph(MessagesState).add_sequence([(f"n{at}", node) for at, node in enumerate(nodes)])
    return builder.add_edge(START, "n0").compile(InMemorySaver())


def texts(held: Any) -> list[str]:
    return [message.text for message in held.messages]


class Gives:
    """An app that gives the same for every turn, or raises it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def invoke(self, input: Any, config: Any = None) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def test_an_app_without_memory_is_given_the_whole_conversation():
    app = Answers(buyer)
    held = converse(app, Says("A lamp?", "Buy it."))
    assert [len(messages) for messages in app.given] == [1, 5]
    assert [message.type for message in held.messages] == ["human", "ai", "tool", "ai"] * 2
    assert (held.ended, len(held.turn_seconds)) == ("user", 2)


def test_an_app_with_a_checkpointer_is_given_what_is_new_in_one_thread():
    app = graph(lambda state: {"messages": [AIMessage(f"{len(state['messages'])} so far")]})
    assert texts(converse(app, Says("one", "two"))) == ["one", "1 so far", "two", "3 so far"]


FINE = AIMessage("fine")


@pytest.mark.parametrize(
    "answer", ["fine", FINE, [FINE], {"messages": [{"role": "assistant", "content": "fine"}]}]
)
def test_an_app_may_give_only_what_is_new_in_any_form(answer: Any):
    assert texts(converse(Gives(answer), Says("one", "two"))) == ["one", "fine", "two", "fine"]


def test_a_turn_begins_at_its_own_message_though_others_have_the_same_words():
    def answer(messages: Any) -> Any:
        return [AIMessage("Sure?"), HumanMessage("blue"), AIMessage(f"{len(messages)}")]

    held = converse(Answers(answer), Says("blue", "blue"))
    assert texts(held) == ["blue", "Sure?", "blue", "1", "blue", "Sure?", "blue", "5"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (7, "the app answered with 7; it must give"),
        ({"messages": []}, "no message of its own"),
        ([{"role": "nobody", "content": 3}], "it must give"),
        (RuntimeError("out of lamps"), "RuntimeError: out of lamps"),
        (TimeoutError("its own"), "TimeoutError: its own"),
        (asyncio.CancelledError("tired"), "CancelledError: tired"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
def test_what_goes_wrong_in_an_app_ends_its_conversation_and_is_told(answer: Any, told: str):
    held = converse(Gives(answer), Says("one", "two"))
    assert held.ended == "error"
    assert told in str(held.error)
    assert texts(held) == ["one"]


def test_what_an_app_with_a_checkpointer_did_before_it_raised_is_kept():
    def fail(state: MessagesState) -> Any:
        raise RuntimeError("out of lamps")

    held = converse(graph(lambda state: {"messages": deed("find")}, fail), Says("one"))
    assert held.ended == "error"
    assert [message.type for message in held.messages] == ["human", "ai", "tool"]


def test_a_user_who_fails_ends_it_and_is_named():
    class Silent(Says):
        async def aspeak(self, said: Any) -> Any:
            raise RuntimeError("no words")

    held = converse(Answers(talker), Silent())
    assert (held.ended, held.by_user, held.messages) == ("error", True, [])


# --- what an app waits for within a turn -----------------------------------------------------------------------------


def test_calls_that_wait_for_an_operator_are_approved():
    def node(state: MessagesState) -> Any:
        answer = interrupt({"action_requests": [{"name": "a", "args": {}}, {"name": "b", "args": {}}]})
        return {"messages": [AIMessage(", ".join(each["type"] for each in answer["decisions"]))]}

    held = converse(graph(node), Says("go"))
    assert texts(held)[-1] == "approve, approve"
    assert len(held.turn_seconds) == 1


@pytest.mark.parametrize("question", ["before waiting", "after the answer", "never"])
@pytest.mark.parametrize("keeps_answer", [True, False])
def test_what_is_asked_within_a_turn_stands_once_however_the_app_keeps_it(question: str, keeps_answer: bool):
    """The same question twice in one turn, each with its own answer."""

    def ask(state: MessagesState) -> Any:
        return {"messages": [AIMessage("Which colour?")] if question == "before waiting" else []}

    def listen(state: MessagesState) -> Any:
        answer = interrupt({"type": "speak", "text": "Which colour?"})
        asked = [AIMessage("Which colour?")] if question == "after the answer" else []
        return {"messages": [*asked, *([HumanMessage(answer)] if keeps_answer else [])]}

    def paint(state: MessagesState) -> Any:
        return {"messages": deed("paint")}

    def done(state: MessagesState) -> Any:
        return {"messages": [AIMessage("Painted.")]}

    held = converse(graph(ask, listen, paint, ask, listen, done), Says("Paint two.", "blue", "red"))
    asked = ["Which colour?", "blue", "", "done", "Which colour?", "red"]
    assert texts(held) == ["Paint two.", *asked, "Painted."]
    assert held.turns == 3


def test_what_the_app_says_in_the_same_words_later_is_no_question():
    def listen(state: MessagesState) -> Any:
        interrupt("Anything else?")
        return {"messages": [AIMessage("Anything else?")]}

    app = graph(listen, lambda state: {"messages": [AIMessage("Anything else?")]})
    assert texts(converse(app, Says("hi", "no"))) == ["hi", "Anything else?", "no", "Anything else?"]


def asking(value: Any, *, for_ever: bool = False) -> Any:
    def node(state: MessagesState) -> Any:
        answer = interrupt(value)
        while for_ever:
            interrupt(value)
        return {"messages": [AIMessage(f"It is {answer}.")]}

    return graph(node)


def test_a_user_who_leaves_when_asked_ends_the_conversation():
    held = converse(asking("Which colour?"), Says("Paint it."))
    assert (held.ended, texts(held)) == ("user", ["Paint it.", "Which colour?"])


def test_an_answer_within_a_turn_counts_as_a_message_of_the_user():
    for turns, ended in ((1, "turns"), (2, "user")):
        held = converse(asking("Which colour?"), Says("Paint it.", "blue"), limits=Limits(turns=turns))
        assert held.ended == ended


def test_what_nobody_can_answer_and_what_is_asked_for_ever_are_errors():
    odd = converse(asking({"what": "is this"}), Says("go"))
    assert "nobody here can answer" in str(odd.error)
    endless = converse(asking({"action_requests": [{"name": "a"}]}, for_ever=True), Says("go"))
    assert "25 times in one turn" in str(endless.error)


def test_a_guides_task_has_ended_with_a_turn_that_asks_nothing():
    guide = UserSpec.model_validate(
        {"role": "guide", "intents": ["Paint it."], "knowledge": {"colour": "blue"}}
    )
    lines = [AIMessage("Which colour?"), AIMessage("It is painted."), AIMessage("never said")]
    held = converse(Answers(lambda messages: [lines.pop(0)]), AgendaUser(guide, seed=0))
    assert texts(held)[-1] == "It is painted."
    assert (held.ended, held.turns) == ("user", 2)


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("passes_config", [True, False])
def test_no_more_calls_are_made_than_the_limit_whatever_the_app_does(passes_config: bool):
    model = ScriptedChatModel(lambda call: "again")

    class Loops:
        def invoke(self, input: Any, config: Any = None) -> Any:
            while True:
                model.invoke(input["messages"], config if passes_config else None)

    assert converse(Loops(), Says("one"), limits=Limits(calls=7)).ended == "calls"
    assert len(model.calls) == 7


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_a_call_that_hangs_is_left_behind_at_the_limit(kind: str):
    over = threading.Event()

    class Sync:
        def invoke(self, input: Any, config: Any = None) -> Any:
            over.wait()

    class Async:
        async def ainvoke(self, input: Any, config: Any = None) -> Any:
            await asyncio.Event().wait()

    app = Sync() if kind == "sync" else Async()
    held = converse(app, Says("one"), limits=Limits(seconds=0.05))
    over.set()
    assert (held.ended, held.error, texts(held)) == ("seconds", None, ["one"])


def test_an_app_that_never_waits_ends_at_the_limit_of_time():
    held = converse(Answers(talker), Says(*["more"] * 10**5), limits=Limits(seconds=0.05, turns=10**5))
    assert held.ended == "seconds"


async def test_who_waits_for_a_conversation_may_cancel_it():
    task = asyncio.create_task(aconverse(Gives("fine"), Says("one", "two")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_nothing_is_begun_once_it_is_stopped():
    app = Answers(talker)
    held = converse(app, Says("one", "two", "three"), stopped=lambda: len(app.given) >= 2)
    assert (held.ended, texts(held)) == ("budget", ["one", "I see.", "two", "I see."])
