"""Worlds: what they are made of, and what they report."""

import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from arq_graph.errors import SpecError
from arq_graph.milestones import MilestoneGraph, Suite, evaluate
from tests.journeys.returns import make_shop
from tests.milestones.evaluated import Answers, deed, shop_agent, suite, talker


def test_a_world_takes_arguments_and_reports_its_outcome(tmp_path: Path):
    (tmp_path / "world.py").write_text(
        "class Shop:\n"
        "    def __init__(self, wanted: str, seed: int = 0) -> None:\n"
        "        self.wanted, self.seed, self.bought = wanted, seed, None\n"
        "    def buy(self, colour: str) -> str:\n"
        '        """Buy one.\n\n        Args:\n            colour: Which.\n        """\n'
        "        self.bought = colour\n        return 'bought'\n"
        "    def outcome(self) -> dict[str, bool]:\n        return {'success': self.bought == self.wanted}\n"
        "def buy(colour: str) -> str:\n"
        '    """Buy one.\n\n    Args:\n        colour: Which.\n    """\n    return "nothing"\n'
    )
    (tmp_path / "agent.yaml").write_text("name: A\nprofile: A.\ntools: [world:buy]\n")
    suite = (
        "defaults: {agent: agent.yaml}\nscenarios:\n- name: blue\n  says: Blue, please.\n"
        "  world: {of: world:Shop, wanted: blue}\n  expect: {calls: [{tool: buy}]}\n"
    )
    (tmp_path / "suite.yaml").write_text(suite)
    worlds: list[Any] = []

    def arm(scenario: Any, agent: Any, model: Any, world: Any) -> Any:
        worlds.append(world)
        agent.toolbox["buy"].invoke({"colour": "blue"})
        return Answers(lambda _: [*deed("buy", colour="blue"), AIMessage("Done.")])

    report = evaluate(Suite.from_yaml(tmp_path / "suite.yaml"), {"arm": arm})
    assert report.conversations[0].outcome == {"success": True}
    assert worlds[0].seed == report.conversations[0].seed
    (tmp_path / "suite.yaml").write_text(suite.replace("wanted:", "wonted:"))
    with pytest.raises(SpecError, match="takes the given arguments: missing a required argument: 'wanted'"):
        Suite.from_yaml(tmp_path / "suite.yaml")


def test_the_tools_of_a_journeys_steps_are_those_of_the_world():
    class Shop:
        def get_order(self, order_id: str) -> str:
            """Look up an order.

            Args:
                order_id: Its number.
            """
            return f"{order_id} of this world"

    looked_up: list[str] = []

    def arm(scenario: Any, agent: Any, model: Any) -> Any:
        tool = agent.journeys[0].by_id["order"].tools[0]
        looked_up.append(tool.invoke({"order_id": "A-1"}))
        assert agent.grants["get_order"] == ("return-order",)
        return Answers(talker)

    evaluate(
        suite(agent=make_shop(), world=Shop, milestones=MilestoneGraph.from_actions([{"name": "get_order"}])),
        {"made": arm},
    )
    assert looked_up == ["A-1 of this world"]


def test_an_outcome_that_waits_does_not_hold_up_the_other_conversations():
    both = threading.Barrier(2, timeout=30)

    class Shop:
        def find(self) -> str:
            """Find a lamp."""
            return "one lamp"

        def outcome(self) -> dict[str, bool]:
            both.wait()
            return {"success": True}

    arms = {"made": lambda *_: Answers(talker)}
    report = evaluate(suite(agent=shop_agent(), world=Shop), arms, runs=2)
    assert [conversation.outcome for conversation in report.conversations] == [{"success": True}] * 2
