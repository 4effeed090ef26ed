"""A tool that is called like a move is called by a key of its own, and every other by its name."""

from __future__ import annotations

import pytest

from arq_graph import Agent
from tests.brain import filled
from tests.nodes.order_tools import A1, called, get_order
from tests.nodes.speaker_desk import customer, move
from tests.speaking import act, say
from tests.tool_calls import call_of


def think(topic: str) -> str:
    """Look a topic up.

    Args:
        topic: The topic.
    """
    return topic


def speak(topic: str) -> str:
    """Read a topic out.

    Args:
        topic: The topic.
    """
    return topic


DESK = Agent("Desk", "You help.", tools=[think, speak, get_order])


def test_the_prompt_tells_the_key_of_those_that_have_another():
    _, asked = move([say("Hello.")], customer("Hi"), desk=DESK)
    keys = {tool["name"]: tool.get("key") for tool in asked[0].section("tools")}
    assert keys == {"think": "tool_think", "speak": "tool_speak", "get_order": None}


@pytest.mark.parametrize("tool", ["think", "speak"])
def test_by_that_key_it_is_called(tool):
    def calls(asked):
        call = call_of(asked, "move", tool, {"topic": "tea"}, bases={}, affirmed_in=None)
        assert list(call) == [f"tool_{tool}"]
        return {**filled(asked.schema, asked.schema), "move": call}

    update, _ = move(calls, customer("Tea, please."), desk=DESK)
    assert called(update) == [(tool, {"topic": "tea"})]


def test_every_other_is_called_by_its_name():
    update, _ = move([act("get_order", A1)], customer("Where is A-1?"), desk=DESK)
    assert called(update) == [("get_order", A1)]
