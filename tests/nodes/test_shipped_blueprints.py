"""Every shipped blueprint is in the strict subset, in all modes, with the keys that endpoints may rely on."""

from __future__ import annotations

import pytest

from arq_graph import Agent, Guideline
from arq_graph.nodes import GuidelineMatcher, MessageReviser, PreActPlanner, ReActPlanner, Speaker, ToolCaller
from arq_graph.nodes.blueprint_node import worked_examples
from tests.brain import brain
from tests.nodes.tool_shapes import CALLS
from tests.reasoning.strict_subset import assert_strict

MODES = ("arq", "cot", "direct")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore:Field name .* shadows")
def test_what_is_asked_for_an_agent_is_strict(mode):
    kinds = [
        Guideline(condition, "do it", continuous=c) for condition in ("x", None) for c in (None, True, False)
    ]
    tools = {tool.name: tool for tool, *_ in CALLS}
    agent = Agent("Desk", "You help.", kinds, tools=list(tools.values()), confirm={"plain": "customer"})
    matcher = GuidelineMatcher(brain(), agent, batch_size=3)
    caller = ToolCaller(brain(), agent)
    nodes = [kind(brain(), agent) for kind in (MessageReviser, PreActPlanner, ReActPlanner, Speaker)]
    asked = {
        "matcher": [batch.blueprint.response_schema(mode) for batch in matcher.batches],
        "caller": [blueprint.response_schema(mode) for blueprint in caller.blueprints.values()],
        "others": [node.blueprint.response_schema(mode) for node in nodes],
    }
    for schemas in asked.values():
        for schema in schemas:
            assert_strict(schema)
    assert {"G1", "G2", "G3"} <= asked["matcher"][0]["properties"].keys()
    for name, keys in (
        ("matcher", {"score", "should_apply"}),
        ("caller", {"should_run", "score", "repeat_is_justified", "given", "value"}),
        ("others", {"content", "followed"}),
    ):
        assert all(f"'{key}'" in str(asked[name][0]) for key in keys)


@pytest.mark.parametrize("node", [GuidelineMatcher, ToolCaller, MessageReviser, PreActPlanner, Speaker])
def test_a_worked_example_shows_filled_queries_in_arq_mode_and_the_response_alone_in_the_others(node):
    sizes = [len(str(worked_examples(node.files, node.of_examples, mode))) for mode in MODES]
    assert sizes[0] > sizes[1] == sizes[2]
