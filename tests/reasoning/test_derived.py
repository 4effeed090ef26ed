"""Derived blueprints: what is asked without some queries, what is read, and which queries can be left out."""

import json

import pytest

from arq_graph import (
    ARQ,
    Agent,
    Guideline,
    Reasoner,
    ResponseOnly,
    ScriptedChatModel,
    create_guided_agent,
    errors,
    query,
    respond,
)
from tests.brain import act, brain, get_prompts, say
from tests.order_tools import get_order
from tests.reasoning.strict_subset import assert_strict

DESK = Agent(
    "Desk",
    "You help with orders.",
    [
        Guideline("they ask about an order", "look it up", tools=[get_order]),
        Guideline("they thank you", "say that they are welcome"),
    ],
)
# By the module of a step: its key among the models of an agent, a strategy that has it, and one of its queries.
STEPS = {
    "matcher": ("matcher", "tools", "guideline_previously_applied_rationale"),
    "tools": ("strategy", "tools", "value_in_context"),
    "message": ("message", "tools", "context_evaluation"),
    "planner": ("strategy", "pre-act", "values_at_hand"),
}


def run_turn(module, derive=None):
    """Run a turn in which one step asks derived blueprints, and return the first prompt of that step."""
    key, strategy, _ = STEPS[module]

    def choose_move(prompt):
        return say("It is late.") if prompt.results("get_order") else act("get_order", {"order_id": "A-1"})

    model = brain(judge={"G1": 9}, moves=choose_move, reply="It is late.")
    models = dict.fromkeys(("matcher", "strategy", "message"), model)
    models[key] = Reasoner(model, derive=derive)
    app = create_guided_agent(models, DESK, strategy=strategy)
    state = app.invoke({"messages": [("user", "Where is A-1?")]})
    assert state["messages"][-1].text == "It is late."
    assert any(message.type == "tool" for message in state["messages"])
    return get_prompts(model, module)[0]


@pytest.mark.parametrize("module", STEPS)
def test_a_step_works_without_one_of_its_queries(module):
    query_name = STEPS[module][2]
    whole, derived = run_turn(module), run_turn(module, ResponseOnly(without=[query_name]))
    assert_strict(derived.call.schema)
    assert f'"{query_name}"' in json.dumps(whole.schema)
    assert query_name not in json.dumps(derived.schema)
    # Only one line of the head differs: the worked example, which lacks the query, too.
    lines = zip(whole.head.split("\n"), derived.head.split("\n"), strict=True)
    ((whole_line, derived_line),) = [(line, other) for line, other in lines if line != other]
    assert whole_line.startswith("<example>") and f'"{query_name}"' in whole_line
    assert f'"{query_name}"' not in derived_line and len(derived_line) < len(whole_line)
    assert whole.tail == derived.tail


class Menu(ARQ):
    """Read a menu."""

    why: str = query("Why?")
    served: bool = respond("Is it served?")


class Choice(ARQ):
    """Choose a dish."""

    menus: list[Menu] = query("Each menu.")
    dish: str = respond("The dish.")
    other: Menu | None = respond("Another one.")


def test_an_answer_holds_its_response_and_must_not_answer_queries_that_were_left_out():
    answer = {"menus": [{"served": True}], "dish": "soup", "other": {"served": False}}
    whole = {**answer, "menus": [{"why": "-", "served": True}]}
    model = ScriptedChatModel([json.dumps(whole), json.dumps(answer)])
    reply = Reasoner(model, derive=ResponseOnly(without=["why"])).ask(Choice, [("user", "Hungry?")])
    assert len(reply.attempts) == 2
    assert (reply.value.dish, reply.value.other.served) == ("soup", False)
    with pytest.raises(AttributeError, match="was not asked"):
        reply.value.menus  # noqa: B018


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dish", "'dish', which is part of the response"),
        ("whi", "did you mean `why`?"),
    ],
)
def test_only_queries_can_be_left_out(name, message):
    reasoner = Reasoner(ScriptedChatModel("-"), derive=ResponseOnly(without=[name]))
    with pytest.raises(errors.InputError) as raised:
        reasoner.ask(Choice, [("user", "Hungry?")])
    assert message in str(raised.value)
