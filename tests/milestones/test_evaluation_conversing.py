"""One conversation between an app and a user: what each is given, how it ends, and what is kept of it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt

from arq_graph import ScriptedChatModel
from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.conversation import Conversation
from arq_graph.milestones.evaluation.conversing import aconverse, converse
from arq_graph.milestones.evaluation.scenario import Limits
from arq_graph.milestones.evaluation.spending import CallCounter
from arq_graph.milestones.transcript import Call, Message, Result
from tests.milestones.evaluated import Answers, Says, buyer, deed, talker


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def graph(*nodes: Any, checkpointer: Any = None) -> Any:
    builder = StateGraph(State)
    names = [f"n{number}" for number in range(len(nodes))]
    for name, node in zip(names, nodes, strict=True):
        builder.add_node(name, node)
    for before, after in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(before, after)
    return builder.compile(checkpointer)


def both(make_app: Any, *words: str, **fields: Any) -> Conversation:
    """Hold it in both ways, which must come to the same."""
    sync = converse(make_app(), Says(*words), **fields)
    asynchronous = asyncio.run(aconverse(make_app(), Says(*words), **fields))
    assert [one.text for one in sync.messages] == [one.text for one in asynchronous.messages]
    assert (sync.ended, sync.error, sync.turns) == (
        asynchronous.ended,
        asynchronous.error,
        asynchronous.turns,
    )
    return sync


def test_an_app_without_memory_is_given_the_whole_conversation():
    app = Answers(buyer)
    held = converse(app, Says("A lamp?", "Buy it."))
    assert [len(messages) for messages in app.given] == [1, 5]
    assert [type(event) for event in held.events] == [Message, Call, Result, Message] * 2
    assert held.ended == "user"
    assert len(held.turn_seconds) == 2


def test_an_app_with_a_checkpointer_is_given_what_is_new_in_one_thread():
    seen = []

    def node(state: State) -> Any:
        seen.append(len(state["messages"]))
        return {"messages": [AIMessage(f"You said {state['messages'][-1].text}")]}

    held = both(lambda: graph(node, checkpointer=InMemorySaver()), "one", "two", "three")
    assert seen[:3] == [1, 3, 5]
    assert [message.text for message in held.messages] == [
        *("one", "You said one", "two", "You said two", "three", "You said three"),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        "fine",
        AIMessage("fine"),
        [AIMessage("fine")],
        {"messages": [AIMessage("fine")]},
        {"messages": [{"role": "assistant", "content": "fine"}]},
    ],
)
def test_an_app_may_give_only_what_is_new_in_any_form(answer):
    class App:
        def invoke(self, input: Any, config: Any = None) -> Any:
            return answer

    held = both(App, "one", "two")
    assert [message.text for message in held.messages] == ["one", "fine", "two", "fine"]


def test_an_app_that_gives_no_messages_is_an_error_of_that_conversation():
    class App:
        def invoke(self, input: Any, config: Any = None) -> Any:
            return 7

    held = both(App, "one")
    assert held.ended == "error"
    assert "the app answered with int" in str(held.error)


def test_an_app_that_says_nothing_is_an_error_of_that_conversation():
    held = both(lambda: Answers(lambda messages: []), "one")
    assert held.ended == "error"
    assert "no message of its own" in str(held.error)


def test_the_user_hears_what_both_said_so_far():
    user = Says("A lamp?", "Buy it.")
    converse(Answers(buyer), user)
    assert [[(one.speaker, one.text) for one in heard] for heard in user.heard] == [
        [],
        [("user", "A lamp?"), ("agent", "That was turn 1.")],
        [
            ("user", "A lamp?"),
            ("agent", "That was turn 1."),
            ("user", "Buy it."),
            ("agent", "That was turn 2."),
        ],
    ]


def approving(calls: list[dict[str, Any]]) -> Any:
    """An app that asks an operator about calls, and tells what was decided."""

    def node(state: State) -> Any:
        answer = interrupt({"action_requests": calls, "review_configs": []})
        kinds = [decision["type"] for decision in answer["decisions"]]
        return {"messages": [AIMessage(f"decided: {kinds}")]}

    return graph(node, checkpointer=InMemorySaver())


@pytest.mark.parametrize(
    ("operator", "decided"),
    [
        ("approve", "['approve', 'approve']"),
        ("reject", "['reject', 'reject']"),
        (
            lambda calls: [{"type": "approve" if call["name"] == "a" else "reject"} for call in calls],
            "['approve', 'reject']",
        ),
    ],
)
def test_calls_that_wait_for_an_operator_are_decided_by_policy(operator, decided):
    calls = [{"name": "a", "args": {}}, {"name": "b", "args": {}}]
    held = both(lambda: approving(calls), "go", operator=operator)
    assert held.messages[-1].text == f"decided: {decided}"
    assert len(held.turn_seconds) == 1


@pytest.mark.parametrize("keeps", [True, False])
def test_what_an_agent_asks_within_its_turn_is_answered_by_the_user(keeps):
    def node(state: State) -> Any:
        answer = interrupt({"type": "speak", "text": "Which colour?"})
        kept = [AIMessage("Which colour?"), HumanMessage(answer)] if keeps else []
        return {"messages": [*kept, *deed("paint", colour=answer), AIMessage(f"It is {answer} now.")]}

    held = both(lambda: graph(node, checkpointer=InMemorySaver()), "Paint it.", "blue")
    assert [message.text for message in held.messages] == [
        *("Paint it.", "Which colour?", "blue", "", "done", "It is blue now."),
    ]
    assert held.turns == 2
    assert held.ended == "user"


@pytest.mark.parametrize("question", ["before waiting", "after the answer", "never"])
@pytest.mark.parametrize("keeps_answer", [True, False])
def test_what_is_asked_stands_once_however_the_app_keeps_it(question, keeps_answer):
    """The same question twice in one turn, each with its own answer."""

    def ask(state: State) -> Any:
        return {"messages": [AIMessage("Which colour?")] if question == "before waiting" else []}

    def listen(state: State) -> Any:
        answer = interrupt({"type": "speak", "text": "Which colour?"})
        asked = [AIMessage("Which colour?")] if question == "after the answer" else []
        return {"messages": [*asked, *([HumanMessage(answer)] if keeps_answer else [])]}

    def paint(state: State) -> Any:
        return {"messages": deed("paint")}

    def done(state: State) -> Any:
        return {"messages": [AIMessage("All is painted.")]}

    user = Says("Paint two.", "blue", "red")
    app = graph(ask, listen, paint, ask, listen, done, checkpointer=InMemorySaver())
    held = converse(app, user)
    assert [message.text for message in held.messages] == [
        *("Paint two.", "Which colour?", "blue", "", "done", "Which colour?", "red", "All is painted."),
    ]
    assert held.turns == 3
    assert [[one.text for one in heard] for heard in user.heard[1:3]] == [
        ["Paint two.", "Which colour?"],
        ["Paint two.", "Which colour?", "blue", "Which colour?"],
    ]


def test_a_user_who_leaves_a_question_unanswered_heard_it_once():
    def ask(state: State) -> Any:
        return {"messages": [AIMessage("Which colour?")]}

    def listen(state: State) -> Any:
        return {"messages": [HumanMessage(interrupt({"type": "speak", "text": "Which colour?"}))]}

    held = both(lambda: graph(ask, listen, checkpointer=InMemorySaver()), "Paint it.")
    assert [message.text for message in held.messages] == ["Paint it.", "Which colour?"]


GUIDE = {"role": "guide", "intents": [{"request": "Cancel an order.", "slots": {"order_id": "A-1"}}]}


def test_a_user_who_leaves_when_asked_ends_the_conversation():
    def node(state: State) -> Any:
        return {"messages": [AIMessage(interrupt("Which colour?"))]}

    held = both(lambda: graph(node, checkpointer=InMemorySaver()), "Paint it.")
    assert held.ended == "user"
    assert [message.text for message in held.messages] == ["Paint it.", "Which colour?"]


def test_an_interrupt_that_nobody_can_answer_is_an_error_of_that_conversation():
    def node(state: State) -> Any:
        return {"messages": [AIMessage(interrupt({"what": "is this"}))]}

    held = both(lambda: graph(node, checkpointer=InMemorySaver()), "go")
    assert held.ended == "error"
    assert "waits for what nobody here can answer" in str(held.error)


def test_an_app_that_asks_for_ever_within_one_turn_is_stopped():
    def node(state: State) -> Any:
        while True:
            interrupt({"action_requests": [{"name": "a", "args": {}}]})

    held = both(lambda: graph(node, checkpointer=InMemorySaver()), "go")
    assert held.ended == "error"
    assert "25 times in one turn" in str(held.error)


def test_the_limit_of_turns_ends_it():
    held = both(lambda: Answers(talker), *"abcdef", limits=Limits(turns=3))
    assert (held.ended, held.turns) == ("turns", 3)


def test_an_app_that_raises_ends_it_and_what_was_said_before_is_kept():
    def app() -> Answers:
        def answer(messages: list[Any]) -> list[Any]:
            if len(messages) > 1:
                raise RuntimeError("out of lamps")
            return talker(messages)

        return Answers(answer)

    held = both(app, "one", "two", "three")
    assert held.ended == "error"
    assert held.error == "RuntimeError: out of lamps"
    assert [message.text for message in held.messages] == ["one", "I see.", "two"]


def test_what_an_app_with_a_checkpointer_did_before_it_raised_is_kept():
    def act(state: State) -> Any:
        return {"messages": deed("find")}

    def fail(state: State) -> Any:
        raise RuntimeError("out of lamps")

    held = both(lambda: graph(act, fail, checkpointer=InMemorySaver()), "one")
    assert held.ended == "error"
    assert [type(event) for event in held.events] == [Message, Call, Result]


def test_a_user_who_fails_ends_it_and_is_named():
    class Silent(Says):
        def speak(self, said: Any) -> Any:
            raise RuntimeError("no words")

    held = converse(Answers(talker), Silent())
    assert (held.ended, held.by_user, held.messages) == ("error", True, [])


async def test_an_app_that_takes_too_long_is_stopped():
    class Hangs:
        async def ainvoke(self, input: Any, config: Any = None) -> Any:
            await asyncio.Event().wait()

    held = await aconverse(Hangs(), Says("one"), limits=Limits(seconds=0.01))
    assert held.ended == "seconds"
    assert held.error is None


async def test_a_timeout_of_the_apps_own_is_its_error():
    class TimesOut:
        async def ainvoke(self, input: Any, config: Any = None) -> Any:
            raise TimeoutError("its own")

    held = await aconverse(TimesOut(), Says("one"))
    assert (held.ended, held.error) == ("error", "TimeoutError: its own")


def looping(model: ScriptedChatModel, passes_config: bool) -> Any:
    class Loops:
        def invoke(self, input: Any, config: Any = None) -> Any:
            while True:
                model.invoke(input["messages"], config if passes_config else None)

        async def ainvoke(self, input: Any, config: Any = None) -> Any:
            while True:
                await model.ainvoke(input["messages"], config if passes_config else None)

    return Loops()


@pytest.mark.parametrize("passes_config", [True, False])
def test_no_more_calls_are_made_than_the_limit_whatever_the_app_does(passes_config):
    for hold in (converse, lambda *a, **k: asyncio.run(aconverse(*a, **k))):
        model = ScriptedChatModel(lambda call: "again")
        held = hold(looping(model, passes_config), Says("one"), limits=Limits(calls=7))
        assert (held.ended, len(model.calls)) == ("calls", 7)


def test_calls_and_tokens_are_counted_once_however_the_counter_hears_of_them():
    usage = UsageMetadata(input_tokens=5, output_tokens=2, total_tokens=7)
    model = ScriptedChatModel(lambda call: AIMessage("hi", usage_metadata=usage))

    def node(state: State) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    counter = CallCounter()
    converse(graph(node), Says("one", "two", "three"), counter=counter)
    assert (counter.calls, counter.input_tokens, counter.output_tokens) == (3, 15, 6)


def test_nothing_is_begun_once_it_is_stopped():
    app = Answers(talker)
    held = converse(app, Says("one", "two", "three"), stopped=lambda: len(app.given) >= 2)
    assert held.ended == "budget"
    assert [message.text for message in held.messages] == ["one", "I see.", "two", "I see."]


def test_an_async_app_is_refused_where_it_cannot_be_awaited():
    class App:
        async def ainvoke(self, input: Any, config: Any = None) -> Any:
            return "hi"

    with pytest.raises(InputError, match="aconverse"):
        converse(App(), Says("one"))


@pytest.mark.parametrize(
    "limits", [{"turns": 0}, {"calls": 0}, {"seconds": 0}, {"turns": True}, {"seconds": "5"}]
)
def test_a_limit_out_of_its_range_is_refused(limits):
    with pytest.raises(InputError, match=next(iter(limits))):
        Limits(**limits)


@settings(max_examples=25)
@given(
    words=st.lists(st.text(max_size=8), max_size=5),
    deeds=st.lists(st.integers(0, 3), max_size=5),
    turns=st.integers(1, 4),
)
def test_whatever_is_said_the_app_is_asked_once_a_turn_and_everything_is_kept_in_order(words, deeds, turns):
    def answer(messages: list[Any]) -> list[Any]:
        turn = sum(message.type == "human" for message in messages)
        calls = deeds[turn - 1] if turn <= len(deeds) else 0
        made = [message for number in range(calls) for message in deed("do", turn * 10 + number)]
        return [*made, AIMessage(f"turn {turn}")]

    held = both(lambda: Answers(answer), *words, limits=Limits(turns=turns))
    n = min(len(words), turns)
    assert held.ended == ("user" if len(words) <= turns else "turns")
    assert [one.text for one in held.said if one.speaker == "agent"] == [f"turn {k + 1}" for k in range(n)]
    assert sum(isinstance(event, Call) for event in held.events) == sum(deeds[:n])


def test_an_app_that_keeps_its_thread_is_not_told_again_what_it_knows():
    class Keeps(Answers):
        checkpointer = InMemorySaver()

    app = Keeps(talker)
    held = converse(app, Says("one", "two"))
    assert [[message.text for message in given] for given in app.given] == [["one"], ["two"]]
    assert [message.text for message in held.messages] == ["one", "I see.", "two", "I see."]
