"""What results depend on: who goes on with a run on something else is told what changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from arq_graph import Agent, Guideline
from arq_graph.milestones.evaluation.scenario import Limits
from tests.milestones.evaluated import buy, find, lamp, shop_agent
from tests.nodes.order_tools import get_order


def shop(*tools: Callable[..., Any], rule: Any = "they ask") -> Agent:
    return Agent("Shop", "A shop.", [Guideline(rule, "answer")], tools=tools or (find, buy))


def changed(**fields: Any) -> set[str]:
    """What is told to have changed against a scenario with the shop's agent."""
    before, now = lamp(agent=shop()).depends_on(), lamp(**{"agent": shop(), **fields}).depends_on()
    assert before.keys() == now.keys()
    return {name for name in before if before[name] != now[name]}


class World:
    """A world with nothing in it."""


def is_late(state: Any) -> bool:
    return True


def is_early(state: Any) -> bool:
    return True


def test_the_same_scenario_depends_on_the_same():
    assert changed() == set()
    assert lamp(agent=shop(rule=is_late)).depends_on() == lamp(agent=shop(rule=is_late)).depends_on()


def test_the_code_of_tools_and_worlds_counts():
    assert changed(world=World) == {"the tools"}
    assert changed(agent=shop(find, buy, get_order)) == {"the agent", "the tools"}


def test_a_rule_counts_by_its_words_or_by_the_name_of_its_function():
    assert changed(agent=shop(rule="they complain")) == {"the agent"}
    late, early = (lamp(agent=shop(rule=rule)).depends_on() for rule in (is_late, is_early))
    assert late["the agent"] != early["the agent"]


def test_limits_count_and_without_an_agent_there_is_nothing_of_it():
    assert changed(limits=Limits(turns=3)) == {"the limits"}
    assert changed(agent=None) == {"the agent", "the tools"}


def test_the_tools_of_a_scenario_are_those_of_its_agent():
    assert [tool.name for tool in lamp(agent=shop_agent()).tools or ()] == ["find", "buy"]
    assert lamp().tools is None
