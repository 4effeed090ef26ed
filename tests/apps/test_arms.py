"""The arms that a name makes: each holds a conversation and is measured, and an unknown one is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from arq_graph import Agent, Guideline, ScriptedChatModel
from arq_graph.apps.arms import arm, arms, known_arms
from arq_graph.errors import InputError
from arq_graph.milestones import MilestoneGraph
from arq_graph.milestones.evaluation.runner import evaluate
from arq_graph.milestones.evaluation.scenario import Limits, Scenario
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.users.spec import UserSpec

ORDERS = {"ORD-1002": "at the warehouse"}


def get_order(order_id: str) -> str:
    """Look up an order.

    Args:
        order_id: The number of the order, like ORD-1001.
    """
    return ORDERS[order_id]


def agent(*guidelines: Guideline) -> Agent:
    return Agent("Desk", "The order desk of a shop.", guidelines, tools=[get_order])


def suite(of: Agent | None) -> Suite:
    user = UserSpec.model_validate({"intents": [{"request": "Where is my order ORD-1002?"}]})
    graph = MilestoneGraph.from_actions([{"name": "get_order", "kwargs": {"order_id": "ORD-1002"}}])
    return Suite([Scenario("order", user, graph, of, limits=Limits(turns=3))])


LOOK_UP = Guideline("the customer asks about an order", "look the order up and tell its status")


@pytest.mark.parametrize("name", ["guided", "guided:cot", "guided:direct", "react", "pre-act", "respact"])
def test_an_arm_of_ours_gets_to_the_goal_with_the_offline_model(name):
    report = evaluate(suite(agent(LOOK_UP)), arms([name]), model="offline")
    (one,) = report.conversations
    assert one.error is None
    assert one.goal_completed
    assert (one.model_calls or 0) > 0


@pytest.mark.parametrize("name", ["react", "pre-act", "respact"])
def test_an_agent_without_guidelines_plans_alone(name):
    (one,) = evaluate(suite(agent()), arms([name]), model="offline").conversations
    assert one.error is None
    assert one.goal_completed


def test_the_three_modes_ask_in_three_ways():
    fields = {}
    for name in ("guided", "guided:cot", "guided:direct"):
        model = ScriptedChatModel(lambda call: RuntimeError("enough"))
        evaluate(suite(agent(LOOK_UP)), arms([name]), model=model)
        fields[name] = str(model.calls[0].schema)
    assert len(set(fields.values())) == 3


def test_langchains_agent_is_an_arm_with_the_same_instructions_and_tools():
    def answer(call: Any) -> Any:
        if any(message.type == "tool" for message in call.messages):
            return "It is at the warehouse."
        wanted = {"name": "get_order", "args": {"order_id": "ORD-1002"}, "id": "1"}
        return AIMessage("", tool_calls=[wanted])

    model = ScriptedChatModel(answer)
    (one,) = evaluate(suite(agent(LOOK_UP)), arms(["create_agent"]), model=model).conversations
    assert one.error is None
    assert one.goal_completed
    assert "look the order up" in model.calls[0].text
    assert "order desk of a shop" in model.calls[0].text


def test_an_arm_of_your_own_is_a_function_or_an_app_in_a_module(tmp_path: Path):
    (tmp_path / "mine.py").write_text(
        "class App:\n"
        "    def invoke(self, input, config=None):\n"
        "        return 'hi'\n"
        "\n"
        "def make(scenario, agent, model):\n"
        "    assert (scenario.name, agent.name, model.model_name) == ('order', 'Desk', 'm')\n"
        "    return App()\n"
        "\n"
        "app = App()\n"
    )
    tried = arms(["mine:make", "mine:app"], folder=tmp_path)
    report = evaluate(suite(agent()), tried, model=ScriptedChatModel([], model_name="m"))
    assert [(one.arm, one.error) for one in report.conversations] == [("mine:make", None), ("mine:app", None)]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("guidde", "did you mean `guided`"),
        ("guided:slow", "there is no arm 'guided:slow'"),
        ("nope:make", "names the module 'nope'"),
        ("os:sep", "is a str"),
        ("", "there is no arm ''"),
    ],
)
def test_an_arm_that_is_none_is_told(name, said):
    with pytest.raises(InputError, match=said):
        arm(name)


def test_an_arm_named_twice_or_none_at_all_is_refused():
    with pytest.raises(InputError, match="named twice"):
        arms(["guided", "guided"])
    with pytest.raises(InputError, match="no arm is named"):
        arms([])
    assert "respact" in known_arms()


def test_an_arm_that_is_made_of_an_agent_needs_one():
    report = evaluate(suite(None), arms(["guided", "create_agent"]), model="offline")
    assert all("names no `agent`" in one.error for one in report.broken)
    assert len(report.broken) == 2
