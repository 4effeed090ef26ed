"""Prompts and schemas: what may be relied on has an id, what does not change stays the same, all modes share a base."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, Term, Variable, create_guided_agent, errors
from arq_graph.nodes import GuidelineMatcher
from tests.brain import act, asked_by, brain, say
from tests.order_tools import get_order

THREAD = {"configurable": {"thread_id": "1"}}
MODULES = ("matcher", "tools", "planner", "speaker", "message")
STRATEGIES = ("tools", "pre-act", pytest.param("react", marks=pytest.mark.slow), "respact")
MODES = ("arq", "cot", "direct")


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


def talk(turns=("Where is A-1?",), *, agent=DESK, **options):
    """The model of an agent that looks up an order in each turn."""

    def move(asked):
        return (
            say() if asked.results("get_order") else act("get_order", {"order_id": f"A-{len(asked.lines)}"})
        )

    model = brain(judge={"G1": 9}, moves=move)
    app = create_guided_agent(model, agent, checkpointer=MemorySaver(), **options)
    for turn in turns:
        app.invoke({"messages": [("user", turn)]}, THREAD)
    return model


TURNS = [f"Where is my order number {n}? I have been waiting for it." for n in range(5)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_head_and_schema_are_the_same_bytes_in_every_turn(strategy):
    for module in MODULES:
        batches = {}
        for asked in asked_by(talk(TURNS[:2], strategy=strategy), module):
            seen = batches.setdefault(asked.call.metadata["arq_batch"], set())
            seen.add((asked.head, json.dumps(asked.schema)))
        assert all(len(seen) == 1 for seen in batches.values()), module


@pytest.mark.parametrize("module", ["matcher", "tools"])
def test_nine_tenths_of_a_prompt_stand_at_the_beginning_of_the_next_turn_s(module):
    firsts = [asked.prompt for asked in asked_by(talk(TURNS), module) if not asked.turn]
    assert len(firsts) == len(TURNS)
    for before, after in pairwise(firsts):
        kept = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before))
        assert kept >= 0.9 * len(before)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_modes_share_the_base_prompt_and_show_filled_queries_in_arq_mode_alone(strategy):
    models = [talk(mode=mode, strategy=strategy) for mode in MODES]
    for module in MODULES:
        heads = [asked_by(model, module)[0].head.split("\n") for model in models if asked_by(model, module)]
        shared = {"\n".join(line for line in head if "<example>" not in line) for head in heads}
        shown = [sum(len(line) for line in head if "<example>" in line) for head in heads]
        assert len(shared) == (1 if heads else 0)
        assert not heads or shown[0] > shown[1] == shown[2] > 0


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
