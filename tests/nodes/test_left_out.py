"""Blueprints asked without some of their queries: what goes out, what is read, and what cannot be left out."""

from __future__ import annotations

import json

import pytest

from arq_graph import (
    ARQ,
    Agent,
    Guideline,
    Reasoner,
    ScriptedChatModel,
    create_guided_agent,
    errors,
    query,
    respond,
)
from arq_graph.nodes import GuidelineMatcher, MessageBlueprint, MessageReviser
from arq_graph.reasoning.derived import ResponseOnly
from tests.brain import act, asked_by, brain, say
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
# By the step that asks it: its key among the models of an agent, a strategy that has it, and the query.
STEPS = {
    "matcher": ("matcher", "tools", "guideline_previously_applied_rationale"),
    "tools": ("strategy", "tools", "value_in_context"),
    "message": ("message", "tools", "context_evaluation"),
    "planner": ("strategy", "pre-act", "values_at_hand"),
    "speaker": ("strategy", "respact", "question_is_worth_it"),
}


def asked(module, without=()):
    """The first question of a step, in a turn that was held to its end."""
    key, strategy, _ = STEPS[module]
    model = brain(
        judge={"G1": 9},
        moves=lambda asked: (
            say("It is late.") if asked.results("get_order") else act("get_order", {"order_id": "A-1"})
        ),
        reply="It is late.",
    )
    models = {
        **dict.fromkeys(("matcher", "strategy", "message"), model),
        key: Reasoner(model, derive=ResponseOnly(without=without) if without else None),
    }
    state = create_guided_agent(models, DESK, strategy=strategy).invoke(
        {"messages": [("user", "Where is A-1?")]}
    )
    assert state["messages"][-1].text == "It is late."
    assert any(message.type == "tool" for message in state["messages"])
    return asked_by(model, module)[0]


def properties(schema):
    """Every property of a schema, in order, wherever it stands."""
    if isinstance(schema, list):
        return [name for each in schema for name in properties(each)]
    if not isinstance(schema, dict):
        return []
    own = list(schema["properties"]) if isinstance(schema.get("properties"), dict) else []
    return [*own, *(name for each in schema.values() for name in properties(each))]


@pytest.mark.parametrize("module", STEPS)
def test_a_step_is_asked_without_a_query_and_read_all_the_same(module):
    name = STEPS[module][2]
    whole, without = asked(module), asked(module, (name,))
    assert_strict(without.call.schema)
    assert name in properties(whole.schema)
    assert name not in json.dumps(without.call.schema)
    # Nothing but the worked example tells of it, and that has lost what it says there alone.
    one, other = (each.head.split("\n") for each in (whole, without))
    (before, after) = next((a, b) for a, b in zip(one, other, strict=True) if a != b)
    assert [a == b for a, b in zip(one, other, strict=True)].count(False) == 1
    assert before.startswith("<example>") and f'"{name}"' in before
    assert f'"{name}"' not in after and len(after) < len(before)
    assert whole.tail == without.tail


class Menu(ARQ):
    """Read a menu."""

    why: str = query("Why?")
    served: bool = respond("Is it served?")


class Choice(ARQ):
    """Choose a dish."""

    menus: list[Menu] = query("Each menu.")
    dish: str = respond("The dish.")
    other: Menu | None = respond("Another one.")


def test_an_answer_is_its_response_and_holds_nothing_that_was_left_out():
    answer = {"menus": [{"served": True}], "dish": "soup", "other": {"served": False}}
    model = ScriptedChatModel(
        [json.dumps({**answer, "menus": [{"why": "-", "served": True}]}), json.dumps(answer)]
    )
    found = Reasoner(model, derive=ResponseOnly(without=["why"])).ask(Choice, [("user", "Hungry?")])
    assert len(found.attempts) == 2  # what was not asked may not be answered
    assert (found.value.dish, found.value.other.served) == ("soup", False)
    with pytest.raises(AttributeError, match="was not asked"):
        found.value.menus  # noqa: B018


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("dish", "'dish', which is part of the response"),
        ("whi", "did you mean `why`?"),
        ("soup", "What can be left out: menus, why"),
    ],
)
def test_what_is_no_query_cannot_be_left_out(name, told):
    reasoner = Reasoner(ScriptedChatModel("-"), derive=ResponseOnly(without=[name]))
    with pytest.raises(errors.InputError) as caught:
        reasoner.ask(Choice, [("user", "Hungry?")])
    assert told in str(caught.value)


def test_a_step_says_at_once_what_it_does_not_ask():
    with pytest.raises(errors.InputError, match="did you mean `condition`"):
        GuidelineMatcher(Reasoner(brain(), derive=ResponseOnly(without=["conditions"])), DESK)
    with pytest.raises(errors.InputError, match="'score', which is part of the response"):
        GuidelineMatcher(Reasoner(brain(), derive=ResponseOnly(without=["score"])), DESK)


def test_queries_of_one_s_own_can_be_left_out():
    class Polite(MessageBlueprint):
        """Write the agent's next message."""

        mood: str = query("How does the customer feel?")

    model = brain(reply="Hello.")
    shop = Agent("Shop", "A shop.")
    reviser = MessageReviser(
        Reasoner(model, derive=ResponseOnly(without=["mood", "insights"])), shop, blueprint=Polite
    )
    reviser.invoke({"messages": [("user", "Hi")]})
    (sent,) = asked_by(model, "message")
    assert not {"mood", "insights"} & set(properties(sent.schema))
