"""Prompts and schemas: which parts of them never change, and what the modes have in common."""

import json
from itertools import pairwise
from math import ceil

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, Term, Variable, create_guided_agent
from arq_graph.nodes import GuidelineMatcher
from tests.brain import act, brain, get_prompts, say
from tests.order_tools import get_order

MODULES = ("matcher", "tools", "planner", "speaker", "message")
STRATEGIES = ("tools", "pre-act", "react", "respact")
TEXTS = [f"Where is my order A-{n}? I have been waiting for it." for n in (1, 2, 3)]

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


def run_conversation(texts, **options):
    """Return the model of an agent that looks up an order in each turn."""

    def move(prompt):
        if prompt.results("get_order"):
            return say()
        turn = [line["from"] for line in prompt.lines].count("customer")
        return act("get_order", {"order_id": f"A-{turn}"})

    model = brain(judge={"G1": 9}, moves=move)
    app = create_guided_agent(model, DESK, checkpointer=MemorySaver(), **options)
    for text in texts:
        state = app.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "1"}})
    assert [message.type for message in state["messages"]] == ["human", "ai", "tool", "ai"] * len(texts)
    return model


def check_stable_prefix(model):
    """Fail unless heads and schemas are byte-identical in every turn."""
    for module in MODULES:
        requests: dict[str, set[tuple[str, str]]] = {}
        for prompt in get_prompts(model, module):
            request = (prompt.head, json.dumps(prompt.schema))
            requests.setdefault(prompt.call.metadata["arq_batch"], set()).add(request)
        assert all(len(variants) == 1 for variants in requests.values()), module


def test_next_turn_has_the_same_schema_and_starts_with_nine_tenths_of_the_prompt():
    model = run_conversation(TEXTS)
    check_stable_prefix(model)
    for module in ("matcher", "tools"):
        prompts = [prompt.text for prompt in get_prompts(model, module) if not prompt.turn]
        assert len(prompts) == len(TEXTS)
        for before, after in pairwise(prompts):
            assert after.startswith(before[: ceil(0.9 * len(before))])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_heads_are_the_same_in_every_turn_and_only_arq_shows_filled_queries(strategy):
    models = [
        run_conversation(TEXTS[:2], mode="arq", strategy=strategy),
        run_conversation(TEXTS[:1], mode="cot", strategy=strategy),
        run_conversation(TEXTS[:1], mode="direct", strategy=strategy),
    ]
    check_stable_prefix(models[0])
    for module in MODULES:
        base_prompts, example_lengths = set(), []
        for model in models:
            for prompt in get_prompts(model, module)[:1]:
                lines = prompt.head.split("\n")
                base_prompts.add("\n".join(line for line in lines if "<example>" not in line))
                example_lengths.append(sum(len(line) for line in lines if "<example>" in line))
        if example_lengths:
            arq, cot, direct = example_lengths
            assert len(base_prompts) == 1
            assert arq > cot == direct > 0


def test_one_block_of_a_prompt_can_be_overridden():
    override = '{% extends "guideline_matcher.md" %}{% block task %}You are the strict one.{% endblock %}'
    model = brain()
    for options in ({"template": override}, {}):
        GuidelineMatcher(model, DESK, **options).invoke({"messages": [HumanMessage("Hi", id="h1")]})
    changed, shipped = get_prompts(model, "matcher")
    assert changed.head.startswith("You are the strict one.")
    assert shipped.head.endswith(changed.head.removeprefix("You are the strict one.").strip())
    assert changed.tail == shipped.tail
