"""The prompts: what may be relied on has an id, what does not change stays the same, and any block can be replaced."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, Term, Variable, create_guided_agent, errors
from arq_graph.nodes import GuidelineMatcher
from tests.brain import asked_by, brain

THREAD = {"configurable": {"thread_id": "1"}}
MODULES = ("matcher", "tools", "message")


def get_order(order_id: str) -> str:
    """Look up an order."""
    return f"{order_id}: in transit"


DESK = Agent(
    "Desk",
    "You help with orders.",
    [
        Guideline("they ask about an order", "look it up", tools=[get_order]),
        Guideline("they thank you", "say that they are welcome"),
    ],
    glossary=[Term("ETA", "When it comes.", ["arrival"])],
    variables=[Variable("tier", "The tier.", "gold")],
)


def talk(turns, **options):
    def order(asked):
        return [] if asked.results("get_order") else {"order_id": f"A-{len(asked.lines)}"}

    model = brain(judge={"G1": 9}, call={"get_order": order})
    app = create_guided_agent(model, DESK, checkpointer=MemorySaver(), **options)
    for turn in turns:
        app.invoke({"messages": [("user", turn)]}, THREAD)
    return model


def test_everything_the_model_may_rely_on_has_an_id():
    model = talk(["Where is A-1?"])
    reply = asked_by(model, "message")[0]
    assert [line["id"] for line in reply.lines] == ["M1", "T1"]
    assert reply.section("profile")["id"] == "P"
    assert reply.section("glossary")[0]["id"] == "K1"
    assert reply.section("variables")[0]["id"] == "V1"
    assert [guideline["id"] for guideline in reply.section("active_guidelines")] == ["G1"]


TURNS = [f"Where is my order number {n}? I have been waiting for it." for n in range(5)]


def test_head_and_schema_are_the_same_bytes_in_every_turn():
    model = talk(TURNS)
    for module in MODULES:
        batches = {}
        for asked in asked_by(model, module):
            batches.setdefault(asked.call.metadata["arq_batch"], set()).add(
                (asked.head, json.dumps(asked.schema))
            )
        assert all(len(seen) == 1 for seen in batches.values()), module


@pytest.mark.parametrize("module", ["matcher", "tools"])
def test_nine_tenths_of_a_prompt_stand_at_the_beginning_of_the_next_turn_s(module):
    model = talk(TURNS)
    prompts = [asked.prompt for asked in asked_by(model, module) if "staged" not in asked.now]
    firsts = [
        prompt
        for n, prompt in enumerate(prompts)
        if n == 0 or _customers(prompt) > _customers(prompts[n - 1])
    ]
    assert len(firsts) == len(TURNS)
    for before, after in pairwise(firsts):
        kept = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before))
        assert kept >= 0.9 * len(before)


def _customers(prompt):
    return prompt.count('"from": "customer"')


def test_the_three_modes_share_the_base_prompt():
    heads = {}
    for mode in ("arq", "cot", "direct"):
        model = talk(["Where is A-1?"], mode=mode)
        for module in MODULES:
            head = asked_by(model, module)[0].head
            heads.setdefault(module, set()).add(
                "\n".join(x for x in head.split("\n") if "<example>" not in x)
            )
    assert all(len(shared) == 1 for shared in heads.values())


OVERRIDE = '{% extends "guideline_matcher.md" %}{% block task %}You are the strict one.{% endblock %}'


def test_one_block_of_a_prompt_can_be_overridden():
    model = brain()
    for options in ({"template": OVERRIDE}, {}):
        GuidelineMatcher(model, DESK, **options).invoke({"messages": [HumanMessage("Hi", id="h1")]})
    changed, shipped = asked_by(model, "matcher")
    assert changed.head.startswith("You are the strict one.")
    assert shipped.head.endswith(changed.head.removeprefix("You are the strict one.").strip())
    assert changed.tail == shipped.tail


def test_a_template_whose_head_cannot_be_rendered_is_an_error_when_the_node_is_made():
    template = "{% block head %}{{ guideline }}{% endblock %}{% block tail %}{% endblock %}"
    with pytest.raises(errors.PromptError, match="'guideline' is undefined"):
        GuidelineMatcher(brain(), DESK, template=template)
