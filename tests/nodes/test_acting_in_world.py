"""The node that acts in a world: what it takes, what it writes, and what it tells of it."""

from __future__ import annotations

import asyncio

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, StateGraph

from arq_graph.nodes.events import ToolCalled
from arq_graph.nodes.speaking.world import ActInWorld, WorldState
from tests.apps.kitchen import TASK, Kitchen

OPENING = HumanMessage(TASK, id="h1")


def calling(*actions, tool="act"):
    calls = [{"name": tool, "args": {"action": each}, "id": f"c{n}"} for n, each in enumerate(actions)]
    return {"messages": [OPENING, AIMessage("", id="a1", tool_calls=calls)]}


def test_the_action_that_is_called_for_is_taken_and_what_it_showed_is_written():
    for update in (
        ActInWorld(Kitchen()).invoke(calling("open the cupboard", "look")),
        asyncio.run(ActInWorld(Kitchen()).ainvoke(calling("open the cupboard", "look"))),
    ):
        assert [(m.tool_call_id, m.text) for m in update["messages"]] == [
            ("c0", "There is a mug."),
            ("c1", "A kitchen."),
        ]
        assert update["world"][-1].taken == 2
        assert update["world"][-1].actions == ("look", "open the cupboard", "wash the mug")


def test_a_call_of_something_else_is_no_action():
    world = Kitchen()
    update = ActInWorld(world).invoke(calling("open the cupboard", tool="get_order"))
    assert "messages" not in update
    assert (world.steps, update["world"][-1].taken) == ([], 0)


def test_an_event_tells_which_call_an_action_answers():
    builder = StateGraph(WorldState)
    builder.add_node("world", ActInWorld(Kitchen()))
    builder.add_edge(START, "world")
    builder.add_edge("world", END)
    told = list(builder.compile().stream(calling("look", "fly"), stream_mode="custom"))
    events = [each for each in told if isinstance(each, ToolCalled)]
    assert [(each.call_id, each.status, each.turn) for each in events] == [
        ("c0", "success", "h1"),
        ("c1", "error", "h1"),
    ]
