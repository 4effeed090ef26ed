"""Strict replies in whole agents: every strategy, the middleware, confirmations, streams, the command line."""

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import MemorySaver
from pydantic import BaseModel

from arq_graph import (
    Agent,
    Revising,
    ScriptedChatModel,
    create_guided_agent,
    create_tool_agent,
    errors,
    query,
)
from arq_graph.middleware import GuidelineMiddleware
from arq_graph.nodes import MessageReviser, PreActPlanner, ReplyChoice, ReplyChooser
from tests.brain import act, brain, get_prompts, say
from tests.replies.bank import OTHERWISE, choose, get_account, make_bank

MONEY = ("balance", {"amount": ("59.90", "T1")})
FREE = "FREE TEXT of a draft"
ACCOUNT = {"account": "DE-7"}
MOVES = [act("get_account", ACCOUNT), say(FREE)]
THREAD = {"configurable": {"thread_id": "1"}}
ASKED = {"messages": [("user", "How much is on DE-7?")]}
ASKED_TO_BLOCK = {"messages": [("user", "I lost card 4-1.")]}


def make_brain(reply, **fields):
    settings = {"judge": {"G1": 9, "G2": 2}, "moves": MOVES, **fields}
    return brain(reply=reply, **settings)


def make_blocking_app(reply, **settings):
    """Return an app that asks the customer before it blocks a card."""
    model = make_brain(reply, judge={"G1": 2, "G2": 9}, moves=None, call={"block_card": {"card": "4-1"}})
    agent = make_bank(confirm={"block_card": "customer"})
    return create_guided_agent(model, agent, checkpointer=MemorySaver(), **settings)


@pytest.mark.parametrize("reply", [choose(MONEY), "FREE TEXT"])
@pytest.mark.parametrize("strategy", ["tools", "pre-act", "react", "respact"])
def test_no_strategys_words_are_sent(strategy, reply, runs):
    revising = Revising(on_unsatisfied="send_last")
    app = create_guided_agent(make_brain(reply), make_bank(), strategy=strategy, revising=revising)
    state = runs.invoke(app, ASKED)
    texts = [message.text for message in state["messages"] if message.type == "ai"]
    assert texts == ["", OTHERWISE if reply == "FREE TEXT" else "You have 59.90 euros."]


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_a_reply_drafted_ahead_is_chosen_too(mode):
    app = create_guided_agent(make_brain(choose(MONEY)), make_bank(), eager=True, mode=mode, stream=True)
    events = list(app.stream(ASKED, stream_mode="custom"))
    assert [event.content for event in events if event.type == "reply_sent"] == ["You have 59.90 euros."]


@pytest.mark.parametrize("reply", [choose(MONEY), "FREE TEXT"])
def test_the_words_of_a_chat_model_are_not_sent(reply, runs):
    call = {"name": "get_account", "args": ACCOUNT, "id": "c1", "type": "tool_call"}
    writer = ScriptedChatModel([AIMessage(FREE, tool_calls=[call]), FREE])
    middleware = GuidelineMiddleware(make_brain(reply), make_bank())
    state = runs.invoke(create_agent(writer, middleware=[middleware]), ASKED)
    texts = [message.text for message in state["messages"] if message.type == "ai"]
    assert texts == ["", OTHERWISE if reply == "FREE TEXT" else "You have 59.90 euros."]


def test_a_chat_models_structured_answer_is_refused():
    class Sum(BaseModel):
        euros: str

    agent = create_agent(
        ScriptedChatModel([FREE]),
        middleware=[GuidelineMiddleware(make_brain(choose("hello")), make_bank())],
        response_format=ToolStrategy(Sum),
    )
    with pytest.raises(errors.InputError, match="take out one of the two"):
        agent.invoke(ASKED)


def test_the_confirmation_question_follows_and_nothing_that_asks_stands_above_it():
    app = make_blocking_app([choose("which"), choose("hello")])
    reply = app.invoke(ASKED_TO_BLOCK, THREAD)["messages"][-1].text
    assert reply.split("\n\n") == ["Good day!", 'Block card (card: "4-1")\nReply yes to go ahead.']
    for choice in ("which", "no such reply"):
        app = make_blocking_app(choose(choice))
        reply = app.invoke(ASKED_TO_BLOCK, THREAD)["messages"][-1].text
        assert reply == 'Block card (card: "4-1")\nReply yes to go ahead.'


def test_no_reply_above_the_question_is_a_choice():
    state = make_blocking_app(choose()).invoke(ASKED_TO_BLOCK, THREAD)
    assert state["messages"][-1].text == 'Block card (card: "4-1")\nReply yes to go ahead.'
    assert [revision["violations"] for revision in state["revisions"]] == [[]]


def test_a_message_that_cannot_be_shown_gets_the_designers_text():
    file = HumanMessage([{"type": "file", "base64": "QQ==", "mime_type": "application/pdf"}])
    model = make_brain(choose("hello"))
    update = ReplyChooser(model, make_bank(unreadable="Please write.")).invoke({"messages": [file]})
    assert update["messages"][0].text == "Please write."
    assert not model.calls


def stream(answers, **settings):
    """Return the deltas of each revision, joined, and their number; and the text that was sent."""
    app = create_guided_agent(make_brain(answers, **settings), make_bank(), stream=True, mode="direct")
    events = list(app.stream(ASKED, stream_mode="custom"))
    deltas = [(event.revision, event.text) for event in events if event.type == "reply_delta"]
    (sent,) = [event.content for event in events if event.type == "reply_sent"]
    return deltas, sent


def test_a_stream_has_whole_replies():
    deltas, sent = stream(choose("hello", MONEY, "which"))
    assert [text for _, text in deltas] == ["Good day!", "\n\nYou have 59.90 euros.", "\n\nWhich card is it?"]
    assert "".join(text for _, text in deltas) == sent
    assert len({revision for revision, _ in deltas}) == 1


def test_a_stream_stops_at_what_cannot_be_filled_in_and_starts_again():
    wrong = ("balance", {"amount": ("1000", "T1")})
    deltas, sent = stream([choose("hello", wrong, "which"), choose(MONEY)])
    assert [text for _, text in deltas] == ["Good day!", "You have 59.90 euros."]
    assert deltas[0][0] < deltas[1][0]
    deltas, sent = stream(choose("hello", wrong))
    assert sent == OTHERWISE
    assert {text for _, text in deltas} == {"Good day!"}


def test_the_offline_model_chooses_by_common_words():
    app = create_guided_agent("offline", make_bank())
    asked = {"messages": [("user", "I ask for money: tell me the balance of DE-7, how many euros I have.")]}
    assert app.invoke(asked)["messages"][-1].text == "You have 59.90 euros."
    assert app.invoke({"messages": [("user", "Sing!")]})["messages"][-1].text == OTHERWISE


def test_a_blueprint_of_ones_own_adds_queries():
    class Calm(ReplyChoice):
        mood: str = query("Is the customer upset?")

    model = make_brain(choose(MONEY))
    app = create_guided_agent(model, make_bank(), revising=Revising(blueprint=Calm))
    assert app.invoke(ASKED)["messages"][-1].text == "You have 59.90 euros."
    assert "mood" in get_prompts(model, "message")[0].schema["properties"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda bank: MessageReviser("offline", bank), "is composition='strict': use ReplyChooser"),
        (lambda bank: ReplyChooser("offline", bank.replace(composition="free")), "use MessageReviser"),
        (lambda bank: ReplyChooser("offline", bank, blueprint=str), "ReplyChoice or a subclass"),
        (lambda bank: PreActPlanner("offline", bank), "would be sent unrevised"),
        (
            lambda bank: create_tool_agent("offline", bank.replace(guidelines=[], tools=[get_account])),
            "would be sent unrevised",
        ),
        (
            lambda bank: create_tool_agent(
                "offline", bank.replace(guidelines=[], tools=[get_account]), strategy="respact"
            ),
            "unrevised",
        ),
        (lambda bank: GuidelineMiddleware("offline", bank, revising=None), "would be sent unrevised"),
        (
            lambda bank: create_guided_agent("offline", bank, revising=Revising(blueprint=Agent)),
            "ReplyChoice",
        ),
    ],
)
def test_whatever_would_send_a_models_words_is_refused_when_it_is_made(make, message):
    with pytest.raises(errors.InputError, match=message):
        make(make_bank())
