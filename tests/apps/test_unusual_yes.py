"""A yes in words of a customer's own: a speaking agent asks about it again, unless it is told what a yes is."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import InputError, create_guided_agent, create_respact_agent
from tests.apps.desk import desk, get_order, give_discount, says, thread
from tests.brain import brain
from tests.speaking import act, ask, say, speaker

A1 = {"order_id": "A-1", "percent": 5}
FOR = [("give_discount", None)]
YES = "Book it off then"
ONCE_MORE = "Is it all right to give A-1 a discount of 5%?"


def books(text: str) -> bool:
    return text.startswith("Book it off")


def script(*behind: Any) -> list[Any]:
    """The discount is put to the customer, and given once they have said anything."""
    put = ask("Shall I give A-1 a discount of 5%?", asks_for=FOR)
    return [act("give_discount", A1), put, act("give_discount", A1, affirmed_in="M3"), *behind]


def guided(moves: list[Any], **options: Any) -> Any:
    others = brain(judge={"G2": 9}, reply=lambda asked: asked.section("draft"))
    agent = desk(confirm={"give_discount": "customer"})
    options |= {"speaking": True, "policies": [], "checkpointer": MemorySaver()}
    return create_guided_agent(speaker(moves, otherwise=others), agent, **options)


def respact(moves: list[Any], **options: Any) -> Any:
    options |= {"consequential": ["give_discount"], "policies": [], "checkpointer": MemorySaver()}
    return create_respact_agent(speaker(moves), [get_order, give_discount], **options)


def after_the_yes(runs: Any, app: Any) -> tuple[list[str], str]:
    """What tools gave, and what the customer is told in the end."""
    asked = runs.invoke(app, says("Less for A-1, please"), thread())
    assert asked["messages"][-1].text == "Shall I give A-1 a discount of 5%?"
    state = runs.invoke(app, says(YES), thread())
    given = [message.text for message in state["messages"] if message.type == "tool"]
    return given, state["messages"][-1].text


@pytest.mark.parametrize("made", [guided, respact])
def test_a_yes_that_a_function_of_yours_knows_lets_the_call_run(runs, made):
    app = made(script(say("It is booked.")), agrees=books)
    assert after_the_yes(runs, app) == (["5% off A-1"], "It is booked.")


@pytest.mark.parametrize("made", [guided, respact])
def test_without_it_the_customer_is_asked_again(runs, made):
    app = made(script(ask(ONCE_MORE, asks_for=FOR)))
    assert after_the_yes(runs, app) == ([], ONCE_MORE)


@pytest.mark.parametrize("made", [guided, respact])
def test_what_the_function_takes_for_no_yes_is_none(runs, made):
    app = made(script(ask(ONCE_MORE, asks_for=FOR)), agrees=lambda text: text == "Yes")
    assert after_the_yes(runs, app) == ([], ONCE_MORE)


@pytest.mark.parametrize("planning", [None, "pre-act"])
def test_agrees_without_a_speaker_is_refused(planning):
    with pytest.raises(InputError, match="give speaking=True beside it"):
        create_guided_agent("offline", desk(), planning=planning, agrees=books)
