"""The offline model: valid instances of any schema, and replies of agents in simple words."""

import json
from datetime import date
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import (
    ARQ,
    Agent,
    Guideline,
    OfflineChatModel,
    Reasoner,
    Variable,
    create_guided_agent,
    create_preact_agent,
    create_tool_agent,
    query,
    respond,
    verify,
)
from arq_graph.milestones import LLMJudge, Message, Transcript, parse_milestones, score

NOT_UNDERSTOOD = "(offline model) I did not understand this. A real model would."
NAMES = st.sampled_from(["order_id", "score", "message", "finished", "value", "action", "steps"])
SCALARS = st.sampled_from(["string", "integer", "number", "boolean", "null"]).map(lambda kind: {"type": kind})
ENUMS = st.lists(st.text(max_size=4) | st.integers(), min_size=1, max_size=3).map(
    lambda values: {"enum": values}
)


def make_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def nest(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    objects = st.dictionaries(NAMES, inner, max_size=4).map(make_object)
    choices = st.lists(inner, min_size=1, max_size=3).map(lambda options: {"anyOf": options})
    return objects | choices | inner.map(lambda items: {"type": "array", "items": items})


SCHEMAS = st.recursive(SCALARS | ENUMS, nest, max_leaves=8).map(lambda value: make_object({"value": value}))


def ask(schema: dict[str, Any]) -> Any:
    response_format = {"type": "json_schema", "json_schema": {"name": "Asked", "schema": schema}}
    message = OfflineChatModel().invoke("Where is my order ORD-1001?", response_format=response_format)
    return json.loads(message.text)


@settings(max_examples=30, deadline=None)
@given(SCHEMAS)
def test_any_strict_schema_gets_a_valid_instance_and_always_the_same(schema: dict[str, Any]) -> None:
    instance = ask(schema)
    Draft202012Validator(schema).validate(instance)
    assert ask(schema) == instance


class Mood(ARQ):
    """How does the customer feel?"""

    why: str = query("Why?")
    mood: Literal["calm", "angry"] = respond("The mood.")
    is_checked: bool = verify("Is it so?", must_be=True)


def test_a_failed_verification_passes_when_it_is_asked_again() -> None:
    answer = Reasoner("offline").ask(Mood, [HumanMessage("I am so happy!")])
    assert answer.satisfied
    assert len(answer.attempts) == 2


def test_it_says_that_it_does_not_understand() -> None:
    assert OfflineChatModel().invoke("How tall is the tower?").text == NOT_UNDERSTOOD
    assert Reasoner("offline").ask(Mood, [HumanMessage("Hm.")]).value.why == NOT_UNDERSTOOD


def test_as_a_judge_it_decides_nothing() -> None:
    graph = parse_milestones("""
- {name: Start, type: NFC}
- {name: Helped, type: NFC, description: The agent offers to try again later., dependencies: [Start]}
- {name: End, type: NFC, dependencies: [Helped]}
""")
    transcript = Transcript(
        (Message("user", "It is stuck."), Message("agent", "I offer to try again later."))
    )
    result = score(graph, transcript, judge=LLMJudge("offline"))
    assert (result.goal_completed, result.undecided) == (None, ("Helped",))


def find_book(book: str) -> dict[str, Any]:
    """Find a book in the catalogue.

    Args:
        book: The number of the book, like 12B.
    """
    return {"book": book, "shelf": "B4", "state": "on loan"}


def reserve_book(book: str, card: str) -> str:
    """Reserve a book.

    Args:
        book: The number of the book, like 12B.
        card: The number of the library card, such as L-123.
    """
    return f"{book} is reserved for you."


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


def run_conversation(app: Any, *messages: str) -> list[tuple[list[tuple[str, dict[str, Any]]], str]]:
    """Return the calls of each turn, and the reply."""
    thread = {"configurable": {"thread_id": "t"}}
    seen = 0
    turns = []
    for text in messages:
        state = app.invoke({"messages": [("user", text)]}, thread)
        calls = []
        for message in state["messages"][seen:]:
            if isinstance(message, AIMessage):
                calls += [(call["name"], call["args"]) for call in message.tool_calls]
        seen = len(state["messages"])
        turns.append((calls, state["messages"][-1].text))
    return turns


def create_app(agent: Agent, **settings: Any) -> Any:
    return create_guided_agent("offline", agent, checkpointer=MemorySaver(), **settings)


@pytest.mark.parametrize("strategy", ["tools", "pre-act", "respact"])
def test_a_library_finds_reserves_and_renews(strategy: Any) -> None:
    turns = run_conversation(
        create_app(LIBRARY, strategy=strategy),
        "Hi, I am looking for the book 17B",
        "Yes, please",
        "My card is L-55",
        "I want to renew my loans",
        "Do you sell coffee?",
    )
    assert [calls for calls, _ in turns] == [
        [("find_book", {"book": "17B"})],
        [],
        [("reserve_book", {"book": "17B", "card": "L-55"})],
        [("renew_loan", {"card": "L-55"})],
        [],
    ]
    first, missing, reserved, renewed, last = (reply for _, reply in turns)
    assert first.startswith("Welcome to the library!")
    assert "- shelf: B4" in first
    assert "Shall I reserve it for you?" in first  # activated in the same turn, by the tool's result
    assert missing == "Could you please tell me the card (the number of the library card, such as L-123)?"
    assert reserved == "17B is reserved for you."
    assert renewed == "Your loans run 2 weeks longer."
    assert last == NOT_UNDERSTOOD


def require_patience(app: Any) -> None:
    texts = ["Renew my loans, please", "Hm", "Well", "Let me look", "Here it is", "L-55"]
    *waiting, (calls, _) = run_conversation(app, *texts)
    assert calls == [("renew_loan", {"card": "L-55"})]
    asked = "Could you please tell me the card (the number of the library card, such as L-123)?"
    waits = "I can't go on without the card (the number of the library card, such as L-123)."
    assert all(reply.endswith(asked) for _, reply in waiting[::2])
    assert [reply for _, reply in waiting[1::2]] == [waits, waits]


@pytest.mark.parametrize("strategy", ["tools", "pre-act", "react", "respact"])
def test_unclear_answers_leave_its_question_open(strategy: Any) -> None:
    require_patience(create_app(LIBRARY, strategy=strategy))


@pytest.mark.parametrize("strategy", ["pre-act", "react", "respact"])
def test_they_do_so_without_guidelines(strategy: Any) -> None:
    tools = [find_book, reserve_book, renew_loan]
    require_patience(create_tool_agent("offline", tools, strategy=strategy, checkpointer=MemorySaver()))


def rent_bike(start: date, days: int, size: Literal["small", "large"], city: str, helmet: bool) -> str:
    """Rent a bike to the customer.

    Args:
        start: The first day, like 2026-05-04.
        days: For how many days.
        size: The size of the bike.
        city: In which city.
        helmet: Whether a helmet is rented, too.
    """
    return f"A {size} bike is yours in {city}{' with a helmet' if helmet else ''}."


def test_arguments_are_numbers_choices_flags_variables_and_texts_of_a_known_shape() -> None:
    agent = Agent(
        "Bikes",
        "You rent out bikes.",
        [Guideline("the customer wants to rent a bike", 'rent it and say "Ride safely!"', tools=[rent_bike])],
        variables=[Variable("city", "where the shop is", "Ghent")],
    )
    first, second = run_conversation(
        create_app(agent), "I want to rent a large bike from 2026-05-04", "2 days, with a helmet"
    )
    question = "the days (for how many days) and the helmet (whether a helmet is rented, too)"
    assert first == ([], f"Could you please tell me {question}?")
    arguments = {"start": "2026-05-04", "days": 2, "size": "large", "city": "Ghent", "helmet": True}
    assert second == (
        [("rent_bike", arguments)],
        "A large bike is yours in Ghent with a helmet.\n\nRide safely!",
    )


def test_a_one_time_action_is_taken_once_and_a_lasting_one_stays_active() -> None:
    app = create_app(LIBRARY)
    turns = run_conversation(app, "Hi", "Hello", "I want to renew my loans")
    assert ["Welcome" in reply and "closed on Friday" in reply for _, reply in turns] == [True, False, False]
    matches = app.get_state({"configurable": {"thread_id": "t"}}).values["guideline_matches"]
    assert {match["guideline"] for match in matches if match["active"]} == {"G5", "G6"}


def test_without_guidelines_the_customers_words_choose_the_tool() -> None:
    app = create_preact_agent("offline", [find_book, renew_loan], checkpointer=MemorySaver())
    texts = ["Can you renew my loans?", "L-7", "Find the book 3B", "How old are you?"]
    turns = run_conversation(app, *texts)
    assert [calls for calls, _ in turns] == [
        [],
        [("renew_loan", {"card": "L-7"})],
        [("find_book", {"book": "3B"})],
        [],
    ]
    assert turns[3][1] == NOT_UNDERSTOOD


def test_it_works_in_a_mode_without_queries() -> None:
    app = create_app(LIBRARY, mode="direct")
    ((calls, reply),) = run_conversation(app, "I am looking for the book 17B")
    assert calls == [("find_book", {"book": "17B"})]
    assert "Shall I reserve it for you?" in reply
