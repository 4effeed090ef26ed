"""What apps give and wait for in forms of their own, and what is made of it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

from arq_graph.milestones.evaluation.app import new_messages, waiting_in
from arq_graph.milestones.evaluation.conversation import Conversation
from arq_graph.milestones.evaluation.conversing import aconverse, converse
from arq_graph.milestones.evaluation.scenario import Limits
from tests.milestones.evaluated import Says


def texts(held: Conversation) -> list[str]:
    return [message.text for message in held.messages]


def in_both_ways(app: Any, *words: str, **fields: Any) -> list[Conversation]:
    return [
        converse(app(), Says(*words), **fields),
        asyncio.run(aconverse(app(), Says(*words), **fields)),
    ]


def test_a_turn_begins_at_its_own_message_though_another_has_the_same_words():
    opening = HumanMessage("blue", id="h2")
    said: list[BaseMessage] = [
        HumanMessage("blue", id="h1"),
        AIMessage("Which one?", id="a1"),
        opening,
        AIMessage("Are you sure?", id="a2"),
        HumanMessage("blue", id="h3"),
        AIMessage("Painted.", id="a3"),
    ]
    assert [message.id for message in new_messages(said, opening)] == ["a2", "h3", "a3"]


def test_where_messages_have_no_ids_it_begins_at_the_last_with_these_words():
    opening = HumanMessage("blue", id="h2")
    said = [("human", "blue"), ("ai", "blue"), ("human", "blue"), ("ai", "Painted."), ("ai", "blue")]
    given = [{"role": role, "content": text} for role, text in said]
    assert [message.text for message in new_messages({"messages": given}, opening)] == ["Painted.", "blue"]


def test_without_the_message_in_it_all_that_is_given_is_new():
    given: list[BaseMessage] = [HumanMessage("red"), AIMessage("Painted.")]
    assert new_messages(given, HumanMessage("blue", id="h1")) == given


class Remembers:
    """An app with a memory of its own that knows nothing of LangGraph's settings."""

    checkpointer = True

    def __init__(self) -> None:
        self.said: list[BaseMessage] = []

    def invoke(self, input: Any, config: Any) -> Any:
        self.said += input["messages"]
        self.said.append(AIMessage(f"You said {self.said[-1].text}.", id=str(len(self.said))))
        return {"messages": self.said}


def test_an_app_with_a_memory_of_its_own_is_given_only_what_it_can_take():
    for held in in_both_ways(Remembers, "one", "two"):
        assert held.error is None
        assert texts(held) == ["one", "You said one.", "two", "You said two."]


class FailsUnkept(Remembers):
    """Fails in the second turn, of which its state knows nothing."""

    def invoke(self, input: Any, config: Any, **settings: Any) -> Any:
        if self.said:
            raise RuntimeError("no way on")
        return super().invoke(input, config)

    def get_state(self, config: Any) -> Any:
        return SimpleNamespace(values={"messages": self.said})

    async def aget_state(self, config: Any) -> Any:
        return self.get_state(config)


def test_a_turn_that_failed_before_it_was_kept_does_not_repeat_the_one_before():
    for held in in_both_ways(FailsUnkept, "one", "two"):
        assert (held.ended, held.error) == ("error", "RuntimeError: no way on")
        assert texts(held) == ["one", "You said one.", "two"]


def asking_aside() -> Any:
    def paint(state: MessagesState) -> Any:
        return {"messages": [AIMessage(f"It is {interrupt('Which colour?')} now.")]}

    builder = StateGraph(MessagesState)
    builder.add_node("paint", paint)
    builder.add_edge(START, "paint")
    builder.add_edge("paint", END)
    return builder.compile(InMemorySaver())


@pytest.mark.parametrize(("turns", "ended"), [(1, "turns"), (2, "user")])
def test_an_answer_within_a_turn_is_a_message_of_the_user_too(turns, ended):
    for held in in_both_ways(asking_aside, "Paint it.", "blue", limits=Limits(turns=turns)):
        assert (held.ended, held.turns) == (ended, turns)
        assert ("It is blue now." in texts(held)) is (turns == 2)


@pytest.mark.parametrize(
    ("value", "spoken", "calls"),
    [
        ("Which colour?", "Which colour?", 0),
        ({"type": "speak", "text": "Which colour?"}, "Which colour?", 0),
        ({"type": "speak", "text": 5}, None, 0),
        ({"type": "paint", "text": "Which colour?"}, None, 0),
        ({"action_requests": [{"name": "a"}, {"name": "b"}]}, None, 2),
        ({"action_requests": []}, None, 0),
        ({"action_requests": ["a"]}, None, 0),
        ({"action_requests": "a"}, None, 0),
        (7, None, 0),
    ],
)
def test_what_an_app_waits_for_is_a_question_or_calls_or_neither(value, spoken, calls):
    (waiting,) = waiting_in({"__interrupt__": [SimpleNamespace(value=value, id="i1")]})
    assert (waiting.id, waiting.spoken, len(waiting.calls), waiting.value) == ("i1", spoken, calls, value)


def asking_two_at_once() -> Any:
    def asks(what: str) -> Any:
        def ask(state: MessagesState) -> Any:
            return {"messages": [AIMessage(f"The {what} is {interrupt(f'Which colour has the {what}?')}.")]}

        return ask

    builder = StateGraph(MessagesState)
    for what in ("door", "wall"):
        builder.add_node(what, asks(what))
        builder.add_edge(START, what)
        builder.add_edge(what, END)
    return builder.compile(InMemorySaver())


def test_of_two_questions_at_once_each_has_its_own_answer():
    for held in in_both_ways(asking_two_at_once, "Paint them.", "blue", "red"):
        assert held.error is None
        assert {"The door is blue.", "The wall is red."} <= set(texts(held))


def asked_and_answered() -> Conversation:
    held = Conversation("a thread")
    held.begin(HumanMessage("Paint it."))
    held.ask("Which colour?")
    held.answer("blue")
    return held


def test_an_answer_that_an_app_keeps_in_its_own_words_stands_once():
    held = asked_and_answered()
    held.take([AIMessage("Which colour?"), HumanMessage("colour = blue"), AIMessage("Done.")])
    assert texts(held) == ["Paint it.", "Which colour?", "colour = blue", "Done."]


def test_other_words_are_no_answer_to_a_question_that_an_app_did_not_keep():
    held = asked_and_answered()
    held.take([HumanMessage("a note"), AIMessage("Done.")])
    assert texts(held) == ["Paint it.", "Which colour?", "blue", "a note", "Done."]


class Guide(Says):
    """Speaks only of what it is asked."""

    spec = SimpleNamespace(role="guide")


def test_a_guides_task_has_ended_with_the_turn_of_an_agent_that_asks_within_it():
    def finish(state: MessagesState) -> Any:
        colour = interrupt("Which colour?")
        return {"messages": [AIMessage(f"It is {colour}. Which colour has the door?")]}

    builder = StateGraph(MessagesState)
    builder.add_node("finish", finish)
    builder.add_edge(START, "finish")
    builder.add_edge("finish", END)
    user = Guide("Paint it.", "blue", "more")
    held = converse(builder.compile(InMemorySaver()), user)
    assert (held.ended, user.words) == ("user", ["more"])


@pytest.mark.parametrize(
    ("said", "turns"), [("Which colour?", 2), ("One moment, please.", 2), ("It is painted.", 1)]
)
def test_and_else_with_a_turn_that_leaves_nothing_to_answer(said, turns):
    class App:
        def invoke(self, input: Any, config: Any) -> Any:
            return said

    user = Guide("Paint it.", "blue")
    assert (converse(App(), user).turns, len(user.words)) == (turns, 2 - turns)
