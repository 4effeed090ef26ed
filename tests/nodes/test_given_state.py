"""What functions of one's own are handed: channels that nothing wrote yet are empty; what is none is refused."""

from __future__ import annotations

from typing import Any

import pytest

from arq_graph import Agent, Guideline, Variable, create_guided_agent, create_respact_agent
from arq_graph.errors import InputError
from arq_graph.nodes import Policy, Speaker
from arq_graph.nodes.channels import Reader
from arq_graph.nodes.spec_sections import state_for_functions


def get_order(order_id: str) -> str:
    """Look up an order.

    Args:
        order_id: The number of the order, like ORD-1001.
    """
    return f"{order_id} is delayed"


def looking_at(*channels: str) -> tuple[Policy, dict[str, Any]]:
    """A policy that reads channels, and what it found there first."""
    seen: dict[str, Any] = {}

    def forbids(state: Any) -> list[str]:
        for channel in channels:
            seen.setdefault(channel, state[channel])
        return []

    return Policy("looks", "It looks at the state.", forbids=forbids), seen


def test_a_policy_reads_channels_that_nothing_wrote_yet():
    policy, seen = looking_at("variables", "guideline_matches", "tool_insights", "moves")
    app = create_respact_agent("offline", [get_order], policies=[policy])
    app.invoke({"messages": [("user", "Where is my order ORD-1001?")]})
    assert seen == {"variables": {}, "guideline_matches": [], "tool_insights": [], "moves": []}


def test_a_policy_reads_what_was_written():
    policy, seen = looking_at("variables")
    app = create_respact_agent("offline", [get_order], policies=[policy])
    app.invoke({"messages": [("user", "Hello")], "variables": {"tier": "gold"}})
    assert seen == {"variables": {"tier": "gold"}}


def test_a_condition_reads_variables_that_nobody_gave():
    seen = []

    def is_gold(state: Any) -> bool:
        seen.append(state["variables"])
        return state["variables"].get("tier") == "gold"

    app = create_guided_agent("offline", Agent("Desk", "You help.", [Guideline(is_gold, "offer a gift")]))
    app.invoke({"messages": [("user", "Hello")]})
    assert seen
    assert not any(seen)


def test_a_channel_that_the_node_does_not_read_is_not_made_up():
    state = Reader({"messages": []}, channels={"variables": dict[str, Any], "plan": Agent}).given
    assert state == {"messages": [], "variables": {}}


def test_a_policy_and_a_condition_see_what_a_variable_is_unless_the_thread_says_otherwise():
    agent = Agent("Desk", "You help.", variables=[Variable("tier", "What they pay.", value="guest")])
    for state, tier in (({}, "guest"), ({"variables": {"tier": "gold", "x": 1}}, "gold")):
        assert state_for_functions(agent, Reader({"messages": [], **state}))["variables"]["tier"] == tier


async def agrees_some_time(text):
    return False


@pytest.mark.parametrize("agrees", [3, "yes", True, agrees_some_time])
def test_what_is_no_function_cannot_tell_a_yes(agrees):
    said = "agrees must be a plain function of the text that gives True or False, not"
    with pytest.raises(InputError, match=said):
        create_respact_agent("offline", [get_order], agrees=agrees)
    with pytest.raises(InputError, match=said):
        Speaker("offline", Agent("Desk", "You help.", [], [get_order]), agrees=agrees)
