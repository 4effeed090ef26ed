"""Speaking with the offline model: it asks for what is missing, confirms, and acts by what the goal names."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from arq_graph.apps.respact import create_respact_agent
from tests.apps.desk import says, thread
from tests.apps.kitchen import TASK, Kitchen
from tests.apps.offline_tools import cancel_order, search_books


def get_order(order_id: str) -> str:
    """Look up an order.

    Args:
        order_id: The order's number, such as A-1.
    """
    return f'{{"status": "shipped", "order": "{order_id}"}}'


@pytest.fixture
def app():
    tools = [get_order, cancel_order, search_books]
    return create_respact_agent("offline", tools, consequential=["cancel_order"], checkpointer=MemorySaver())


def talk(app, *lines):
    """The agent's last message and the calls that ran after each line of the customer."""
    for line in lines:
        state = app.invoke(says(line), thread())
    calls = [(c["name"], c["args"]) for m in state["messages"] for c in getattr(m, "tool_calls", ())]
    return state["messages"][-1].text, calls, state["moves"][-1]


def test_it_asks_for_what_is_missing_and_then_looks_it_up(app):
    text, calls, move = talk(app, "Where is my order?")
    assert ("order id" in text, calls, move.category) == (True, [], "probing_question")
    text, calls, _ = talk(app, "A-7")
    assert "shipped" in text
    assert calls == [("get_order", {"order_id": "A-7"})]


def test_it_asks_before_it_cancels(app):
    text, calls, _ = talk(app, "Cancel my order A-7")
    assert "Shall I cancel the order" in text
    assert ("cancel_order", {"order_id": "A-7"}) not in calls
    text, calls, _ = talk(app, "Yes, please")
    assert calls[-1] == ("cancel_order", {"order_id": "A-7"})
    assert "cancelled" in text


def test_a_no_leaves_the_order_alone(app):
    _, calls, _ = talk(app, "Cancel my order A-7", "No, leave it")
    assert "cancel_order" not in [name for name, _ in calls]


def test_it_offers_to_look_further_where_nothing_was_found(app):
    text, _, move = talk(app, "Do you have books with Dune in the title?")
    assert text.endswith("Shall I look for something else?")
    assert (move.category, move.faults) == ("alternative_suggestion", ())


def test_it_reaches_a_goal_in_a_world_by_what_the_goal_names():
    world = Kitchen()
    app = create_respact_agent("offline", environment=world, checkpointer=MemorySaver())
    assert app.invoke(says(TASK), thread())["world"].done


def test_in_a_world_of_free_texts_it_asks_and_does_what_it_is_told():
    world = Kitchen(free=True)
    app = create_respact_agent("offline", environment=world, checkpointer=MemorySaver())
    state = app.invoke(says(TASK), thread())
    for answer in ("Open the cupboard.", "wash the mug"):
        assert state["__interrupt__"][0].value["category"] == "probing_question"
        state = app.invoke(Command(resume=answer), thread())
    assert (world.done, world.steps) == (True, ["open the cupboard", "wash the mug"])


@pytest.mark.parametrize("mode", ["cot", "direct"])
def test_it_answers_in_every_mode_and_within_the_acts(mode):
    app = create_respact_agent("offline", [get_order], mode=mode, dialogue_acts="household")
    state = app.invoke(says("Where is my order?"))
    assert state["moves"][-1].dialogue_act in ("ReqForInstruction", "RequestOtherInfo", "ReqForObjLocAndOD")
