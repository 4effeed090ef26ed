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
from tests.nodes.tool_shapes import CALLS
from tests.reasoning.strict_subset import assert_strict

THREAD = {"configurable": {"thread_id": "1"}}
MODULES = ("matcher", "tools", "planner", "speaker", "message")
STRATEGIES = ("tools", "pre-act", "react", "respact")
MODES = ("arq", "cot", "direct")


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


def test_everything_the_model_may_rely_on_has_an_id():
    reply = asked_by(talk(), "message")[0]
    assert [line["id"] for line in reply.lines] == ["M1", "T1"]
    assert reply.section("profile")["id"] == "P"
    assert [reply.section(name)[0]["id"] for name in ("glossary", "variables")] == ["K1", "V1"]
    assert [guideline["id"] for guideline in reply.section("active_guidelines")] == ["G1"]


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


LASTING = (None, True, False)
KINDS = [Guideline(when, "do it", continuous=lasts) for when in ("x", None) for lasts in LASTING]
SHAPES = [tool for tool, *_ in CALLS]
KEYS = {
    "matcher": {"score", "should_apply"},
    "tools": {"should_run", "score", "repeat_is_justified"},
    "message": {"content", "followed"},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.filterwarnings("ignore:Field name .* shadows")
def test_what_is_asked_for_an_agent_is_strict_and_has_the_keys_that_endpoints_may_rely_on(strategy, mode):
    agent = Agent("Desk", "You help.", KINDS, tools=SHAPES, confirm={"scalars": "customer"})
    model = brain(moves=[say("Hello.")], reply="Hello.")
    create_guided_agent(model, agent, strategy=strategy, mode=mode).invoke({"messages": [("user", "Hi")]})
    for call in model.calls:
        assert_strict(call.schema)
        assert all(f"'{key}'" in str(call.schema) for key in KEYS.get(call.module, ()))
    judged = asked_by(model, "matcher")[0]
    assert set(judged.schema["required"]) - {"reasoning"} == set(judged.now["judge"])


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
