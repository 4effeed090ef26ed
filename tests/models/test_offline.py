"""The offline model: a valid instance of any schema, and the replies of agents in simple words."""

from __future__ import annotations

import json
from datetime import date
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import MemorySaver
from pydantic import BaseModel

from arq_graph import (
    ARQ,
    Agent,
    Guideline,
    OfflineChatModel,
    Reasoner,
    Variable,
    create_guided_agent,
    create_preact_agent,
    create_respact_agent,
    query,
    respond,
    verify,
)
from arq_graph.milestones import LLMJudge, Message, Transcript, parse_milestones, score

NOT_UNDERSTOOD = "(offline model) I did not understand this. A real model would."
NAMES = st.sampled_from(["order_id", "score", "message", "finished", "value", "action", "steps"])
SCALARS = st.sampled_from(["string", "integer", "number", "boolean", "null"]).map(lambda kind: {"type": kind})
CHOICES = st.lists(st.text(max_size=4) | st.integers(), min_size=1, max_size=3).map(
    lambda each: {"enum": each}
)


def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """An object, a list or a choice of what is inside."""
    objects = st.dictionaries(NAMES, inner, max_size=4).map(closed)
    choices = st.lists(inner, min_size=1, max_size=3).map(lambda options: {"anyOf": options})
    return objects | choices | inner.map(lambda items: {"type": "array", "items": items})


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SCHEMAS = st.recursive(SCALARS | CHOICES, nested, max_leaves=8).map(lambda value: closed({"value": value}))


def answer(schema: dict[str, Any], *messages: Any) -> Any:
    wanted = {"type": "json_schema", "json_schema": {"name": "Asked", "schema": schema}}
    said = messages or ("Where is my order ORD-1001?",)
    return json.loads(OfflineChatModel().invoke(list(said), response_format=wanted).text)


@settings(max_examples=30, deadline=None)
@given(SCHEMAS)
def test_any_strict_schema_gets_a_valid_instance_and_always_the_same(schema: dict[str, Any]) -> None:
    first = answer(schema)
    Draft202012Validator(schema).validate(first)
    assert answer(schema) == first


class Mood(ARQ):
    """How does the customer feel?"""

    why: str = query("Why?")
    mood: Literal["calm", "angry"] = respond("The mood.")
    is_checked: bool = verify("Is it so?", must_be=True)


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_it_answers_by_every_method_that_langchain_knows(method: Any) -> None:
    class City(BaseModel):
        name: str

    asked = [
        SystemMessage(f"Answer as JSON.\n{json.dumps(City.model_json_schema())}"),
        HumanMessage("Which city?"),
    ]
    assert isinstance(OfflineChatModel().with_structured_output(City, method=method).invoke(asked), City)


def test_a_check_that_has_to_hold_is_met_when_it_is_asked_again() -> None:
    answered = Reasoner("offline").ask(Mood, [HumanMessage("I am so happy!")])
    assert answered.satisfied
    assert len(answered.attempts) == 2


async def test_it_says_what_it_does_not_understand_in_words_too() -> None:
    assert OfflineChatModel().invoke("How tall is the tower?").text == NOT_UNDERSTOOD
    assert (await OfflineChatModel().ainvoke("How tall is the tower?")).text == NOT_UNDERSTOOD
    assert Reasoner("offline").ask(Mood, [HumanMessage("Hm.")]).value.why == NOT_UNDERSTOOD


def test_as_a_judge_it_decides_nothing() -> None:
    graph = parse_milestones("""
- {name: Start, type: NFC}
- {name: Helped, type: NFC, description: The agent offers to try again later., dependencies: [Start]}
- {name: End, type: NFC, dependencies: [Helped]}
""")
    said = Transcript((Message("user", "It is stuck."), Message("agent", "I offer to try again later.")))
    judged = score(graph, said, judge=LLMJudge("offline"))
    assert (judged.goal_completed, judged.undecided) == (None, ("Helped",))


def find_book(title: str) -> dict[str, Any]:
    """Find a book in the catalogue.

    Args:
        title: The title of the book.
    """
    return {"title": title, "shelf": "B4", "state": "on loan"}


def reserve_book(title: str, card: str) -> str:
    """Reserve a book.

    Args:
        title: The title of the book.
        card: The number of the library card, such as L-123.
    """
    return f"{title} is reserved for you."


def renew_loan(card: str, weeks: int = 2) -> str:
    """Renew the loans on a library card.

    Args:
        card: The number of the library card, such as L-123.
        weeks: How many weeks longer.
    """
    return f"Your loans run {weeks} weeks longer."


LIBRARY = Agent(
    "Library",
    "You are the desk of a library.",
    [
        Guideline("the conversation has just started", 'say "Welcome to the library!"'),
        Guideline(
            "the customer is looking for a book", "find the book and tell where it is", tools=[find_book]
        ),
        Guideline("the book is on loan", 'ask "It is on loan. Shall I reserve it for you?"'),
        Guideline("the customer says yes to reserve", "reserve the book", tools=[reserve_book]),
        Guideline("the customer wants to renew a loan", "renew the loan", tools=[renew_loan]),
        Guideline(None, "always be polite"),
        Guideline(None, 'say once "The library is closed on Friday."'),
    ],
)


def rent_bike(
    start: date, days: int, size: Literal["small", "large"], city: str, helmet: bool = False
) -> str:
    """Rent a bike to the customer.

    Args:
        start: The first day, like 2026-05-04.
        days: For how many days.
        size: The size of the bike.
        city: In which city.
        helmet: Whether a helmet is rented, too.
    """
    return f"A {size} bike is yours in {city}{' with a helmet' if helmet else ''}."


BIKES = Agent(
    "Bikes",
    "You rent out bikes.",
    [Guideline("the customer wants to rent a bike", 'rent it and say "Ride safely!"', tools=[rent_bike])],
    variables=[Variable("city", "where the shop is", "Ghent")],
)


def hold(app: Any, *lines: str) -> list[tuple[list[tuple[str, dict[str, Any]]], str]]:
    """The calls of each turn, and the reply to it."""
    thread, seen, turns = {"configurable": {"thread_id": "t"}}, 0, []
    for line in lines:
        messages = app.invoke({"messages": [("user", line)]}, thread)["messages"]
        new, seen = messages[seen:], len(messages)
        calls = [(c["name"], c["args"]) for m in new if isinstance(m, AIMessage) for c in m.tool_calls]
        turns.append((calls, new[-1].text))
    return turns


def guided(agent: Agent, **settings: Any) -> Any:
    return create_guided_agent("offline", agent, checkpointer=MemorySaver(), **settings)


@pytest.mark.parametrize("strategy", ["tools", "pre-act", "react", "respact"])
def test_a_library_finds_reserves_and_renews(strategy: Any) -> None:
    turns = hold(
        guided(LIBRARY, strategy=strategy),
        'Hi, I am looking for the book "The Hobbit"',
        "Yes, please",
        "My card is L-55",
        "I want to renew my loans for 3 weeks",
        "Do you sell coffee?",
    )
    assert [calls for calls, _ in turns] == [
        [("find_book", {"title": "The Hobbit"})],
        [],
        [("reserve_book", {"title": "The Hobbit", "card": "L-55"})],
        [("renew_loan", {"card": "L-55", "weeks": 3})],
        [],
    ]
    first, missing, reserved, renewed, last = (reply for _, reply in turns)
    assert first.startswith("Welcome to the library!")
    assert "- shelf: B4" in first
    assert "Shall I reserve it for you?" in first  # the result has activated this in the same turn
    assert missing == "Could you please tell me the card (the number of the library card, such as L-123)?"
    assert reserved == "The Hobbit is reserved for you."
    assert renewed == "Your loans run 3 weeks longer."
    assert last == NOT_UNDERSTOOD


def test_a_bike_rental_takes_numbers_choices_flags_variables_and_what_has_a_known_shape() -> None:
    turns = hold(
        guided(BIKES),
        "I want to rent a large bike with a helmet from 2026-05-04",
        "for 2 days",
    )
    assert turns[0] == ([], "Could you please tell me the days (for how many days)?")
    rented = {"start": "2026-05-04", "days": 2, "size": "large", "city": "Ghent"}
    assert turns[1][0] == [("rent_bike", {**rented, "helmet": True})]
    assert turns[1][1].endswith("with a helmet.\n\nRide safely!")


def test_what_is_to_be_said_once_is_said_once_and_what_lasts_stays_active() -> None:
    app = guided(LIBRARY)
    replies = [reply for _, reply in hold(app, "Hi", "Hello", "I want to renew my loans")]
    assert [("Welcome" in each, "closed on Friday" in each) for each in replies] == [
        (True, True),
        *[(False, False)] * 2,
    ]
    matches = app.get_state({"configurable": {"thread_id": "t"}}).values["guideline_matches"]
    assert {match["guideline"] for match in matches if match["active"]} == {"G5", "G6"}


@pytest.mark.parametrize("create", [create_preact_agent, create_respact_agent])
def test_without_guidelines_the_customers_words_choose_the_tool(create: Any) -> None:
    app = create("offline", [find_book, renew_loan], checkpointer=MemorySaver())
    turns = hold(app, "Can you renew my loans?", "L-7", 'Find the book "Dune"', "How old are you?")
    assert [calls for calls, _ in turns] == [
        [],
        [("renew_loan", {"card": "L-7"})],
        [("find_book", {"title": "Dune"})],
        [],
    ]
    assert turns[3][1] == NOT_UNDERSTOOD


def test_it_works_in_the_modes_without_queries_too() -> None:
    for mode in ("cot", "direct"):
        ((calls, reply),) = hold(guided(LIBRARY, mode=mode), 'I am looking for the book "The Hobbit"')
        assert calls == [("find_book", {"title": "The Hobbit"})]
        assert "Shall I reserve it for you?" in reply
