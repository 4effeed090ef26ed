"""Every shipped blueprint is in the strict subset, in all modes."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import ABC

import pytest

from arq_graph import ARQ, Agent, Guideline
from arq_graph import nodes as package
from arq_graph.nodes import GuidelineMatcher, MessageReviser, ToolCaller
from arq_graph.nodes.worked_examples import worked_examples
from tests.brain import brain
from tests.nodes.tool_shapes import CALLS
from tests.reasoning.strict_subset import assert_strict

MODES = ("arq", "cot", "direct")


def is_asked(value):
    return (
        inspect.isclass(value) and issubclass(value, ARQ) and value is not ARQ and ABC not in value.__bases__
    )


def shipped():
    modules = [
        importlib.import_module(f"arq_graph.nodes.{each.name}")
        for each in pkgutil.iter_modules(package.__path__)
    ]
    return {name: value for module in modules for name, value in vars(module).items() if is_asked(value)}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_shipped_blueprint_is_strict(name, mode):
    assert_strict(shipped()[name].response_schema(mode))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore:Field name .* shadows")
def test_the_blueprints_that_are_made_for_an_agent_are_strict(mode):
    kinds = [
        Guideline(condition, "do it", continuous=c) for condition in ("x", None) for c in (None, True, False)
    ]
    tools = {tool.name: tool for tool, *_ in CALLS}
    agent = Agent("Desk", "You help.", kinds, tools=list(tools.values()), confirm={"plain": "customer"})
    for node in (
        GuidelineMatcher(brain(), agent, batch_size=3),
        ToolCaller(brain(), agent, tools_per_call=4),
    ):
        assert node.batches
        for batch in node.batches:
            schema = batch.blueprint.response_schema(mode)
            assert_strict(schema)


def test_a_batch_has_one_property_for_each_guideline():
    agent = Agent("Desk", "You help.", [Guideline("a", "a", id="first-one"), Guideline("b", "b")])
    (batch,) = GuidelineMatcher(brain(), agent).batches
    for mode in ("arq", "direct"):
        assert list(batch.blueprint.response_schema(mode)["properties"]) == ["first-one", "G2"]


def test_the_keys_that_endpoints_may_rely_on_are_in_every_mode():
    agent = Agent("Desk", "You help.", [Guideline("a", "a")], tools=[CALLS[0][0]])
    matcher, caller = GuidelineMatcher(brain(), agent), ToolCaller(brain(), agent)
    for mode in MODES:
        for batch, keys in (
            (matcher.batches[0], {"score", "should_apply"}),
            (caller.batches[0], {"should_run", "score", "repeat_is_justified", "given", "value"}),
        ):
            text = str(batch.blueprint.response_schema(mode))
            assert all(f"'{key}'" in text for key in keys), mode


@pytest.mark.parametrize("node", [GuidelineMatcher, ToolCaller, MessageReviser])
def test_the_worked_examples_can_be_shown_in_every_mode(node):
    sizes = [len(str(worked_examples(node.files, node.of_examples, mode))) for mode in MODES]
    assert sizes[0] > sizes[1] == sizes[2]
