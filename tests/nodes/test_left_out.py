"""Blueprints asked without some of their queries: what is sent, what is accepted, and what can't be left out."""

from __future__ import annotations

import json

import pytest

from arq_graph import ARQ, Agent, Guideline, Reasoner, ScriptedChatModel, create_guided_agent, errors, respond
from arq_graph import query as ask
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


def run_turn(module, model_key, strategy, without=()):
    """Return a step's first question in a turn that calls a tool and replies."""

    def move(asked):
        return say("It is late.") if asked.results("get_order") else act("get_order", {"order_id": "A-1"})

    model = brain(judge={"G1": 9}, moves=move, reply="It is late.")
    models = dict.fromkeys(("matcher", "strategy", "message"), model)
    models[model_key] = Reasoner(model, derive=ResponseOnly(without=without) if without else None)
    app = create_guided_agent(models, DESK, strategy=strategy)
    state = app.invoke({"messages": [("user", "Where is A-1?")]})
    assert state["messages"][-1].text == "It is late."
    assert any(message.type == "tool" for message in state["messages"])
    return asked_by(model, module)[0]


def list_properties(schema):
    """Return every property of a schema, in order, wherever it stands."""
    if isinstance(schema, list):
        return [name for part in schema for name in list_properties(part)]
    if not isinstance(schema, dict):
        return []
    own = list(schema["properties"]) if isinstance(schema.get("properties"), dict) else []
    return own + [name for part in schema.values() for name in list_properties(part)]


@pytest.mark.parametrize(
    ("module", "model_key", "strategy", "query"),
    [
        ("matcher", "matcher", "tools", "guideline_previously_applied_rationale"),
        ("tools", "strategy", "tools", "value_in_context"),
        ("message", "message", "tools", "context_evaluation"),
        ("planner", "strategy", "pre-act", "values_at_hand"),
        ("speaker", "strategy", "respact", "question_is_worth_it"),
    ],
)
def test_step_works_without_a_query(module, model_key, strategy, query):
    complete = run_turn(module, model_key, strategy)
    reduced = run_turn(module, model_key, strategy, (query,))
    assert_strict(reduced.call.schema)
    assert query in list_properties(complete.schema)
    assert query not in json.dumps(reduced.call.schema)
    # The rest of the prompt stays the same, except the worked example, which loses the query's answer.
    lines = zip(complete.head.split("\n"), reduced.head.split("\n"), strict=True)
    ((before, after),) = [(before, after) for before, after in lines if before != after]
    assert before.startswith("<example>") and f'"{query}"' in before
    assert f'"{query}"' not in after and len(after) < len(before)
    assert complete.tail == reduced.tail


class Menu(ARQ):
    """Read a menu."""

    why: str = ask("Why?")
    served: bool = respond("Is it served?")


class Choice(ARQ):
    """Choose a dish."""

    menus: list[Menu] = ask("Each menu.")
    dish: str = respond("The dish.")
    other: Menu | None = respond("Another one.")


def test_answer_must_not_have_what_was_left_out():
    answer = {"menus": [{"served": True}], "dish": "soup", "other": {"served": False}}
    unasked = {**answer, "menus": [{"why": "-", "served": True}]}
    model = ScriptedChatModel([json.dumps(unasked), json.dumps(answer)])
    result = Reasoner(model, derive=ResponseOnly(without=["why"])).ask(Choice, [("user", "Hungry?")])
    assert len(result.attempts) == 2
    assert (result.value.dish, result.value.other.served) == ("soup", False)
    with pytest.raises(AttributeError, match="was not asked"):
        result.value.menus  # noqa: B018


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dish", "'dish', which is part of the response"),
        ("whi", "did you mean `why`?"),
        ("soup", "What can be left out: menus, why"),
    ],
)
def test_only_queries_can_be_left_out(name, message):
    reasoner = Reasoner(ScriptedChatModel("-"), derive=ResponseOnly(without=[name]))
    with pytest.raises(errors.InputError) as caught:
        reasoner.ask(Choice, [("user", "Hungry?")])
    assert message in str(caught.value)


def test_node_refuses_at_once_what_it_does_not_ask():
    with pytest.raises(errors.InputError, match="did you mean `condition`"):
        GuidelineMatcher(Reasoner(brain(), derive=ResponseOnly(without=["conditions"])), DESK)


class Polite(MessageBlueprint):
    """Write the agent's next message."""

    mood: str = ask("How does the customer feel?")


def test_own_queries_can_be_left_out():
    model = brain(reply="Hello.")
    reasoner = Reasoner(model, derive=ResponseOnly(without=["mood", "insights"]))
    MessageReviser(reasoner, Agent("Shop", "A shop."), blueprint=Polite).invoke(
        {"messages": [("user", "Hi")]}
    )
    (asked,) = asked_by(model, "message")
    assert not {"mood", "insights"} & set(list_properties(asked.schema))
