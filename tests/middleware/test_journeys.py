"""A journey in an agent of `create_agent`: its steps unlock tools, and its progress is kept from turn to turn."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import ScriptedChatModel
from arq_graph.middleware import GuidelineMiddleware
from arq_graph.milestones import MilestoneGraph, read_transcript, score
from tests.brain import brain
from tests.journeys.returns import make_shop
from tests.middleware.shop import THREAD, get_results, make_calls
from tests.prompts import Prompt

A301 = {"order_id": "A-301"}
ASKS = {"asks_for_something": True}


class ReturnsDesk:
    """The shop that takes items back, with a model of its own that calls tools; `steps` can be changed."""

    def __init__(self, *answers: Any, **options: Any) -> None:
        self.steps: dict[str, Any] = {"return-reason": ASKS, "return-exchange": {"condition_holds": "no"}}
        self.agent_model = ScriptedChatModel(answers)
        rules = GuidelineMiddleware(
            brain({"return": 9}, steps=self.steps), make_shop(), mode="direct", **options
        )
        self.app: Any = create_agent(self.agent_model, middleware=[rules], checkpointer=MemorySaver())

    def list_offered_tools(self, number: int) -> list[str]:
        return [tool["function"]["name"] for tool in self.agent_model.calls[number].kwargs.get("tools", ())]

    def list_active(self, number: int) -> list[str]:
        prompt = Prompt(self.agent_model.calls[number])
        return [guideline["id"] for guideline in prompt.section("active_guidelines")]


def list_steps(state: Any) -> dict[str, str]:
    (record,) = state["journeys"]
    (journey,) = record["journeys"]
    return {step["step"]: step["state"] for step in journey["steps"]}


def test_the_agents_model_is_offered_the_tools_of_open_steps_alone(runs):
    desk = ReturnsDesk(
        make_calls(("get_order", A301)), "What is wrong?", make_calls(("refund", A301)), "Done."
    )
    state = runs.invoke(desk.app, {"messages": [("user", "I want to return A-301.")]}, THREAD)
    assert desk.list_offered_tools(0) == ["get_order"]
    assert desk.list_offered_tools(1) == []
    assert [desk.list_active(number) for number in (0, 1)] == [
        ["return", "return-order"],
        ["return", "return-reason"],
    ]
    assert list_steps(state) == {"order": "done", "reason": "open"}
    desk.steps["return-reason"] = ASKS | {"answered_by": "M3"}
    state = runs.invoke(desk.app, {"messages": [("user", "It is broken.")]}, THREAD)
    assert desk.list_offered_tools(2) == ["refund"]
    assert get_results(state) == [("get_order", "success"), ("refund", "success")]
    assert list_steps(state) == {
        "order": "done",
        "reason": "done",
        "refund": "done",
        "exchange": "skipped",
        "close": "open",
    }


def test_a_call_of_a_step_that_is_not_open_does_not_run():
    desk = ReturnsDesk(make_calls(("refund", A301)), "Which order is it?")
    state = desk.app.invoke({"messages": [("user", "I want my money back.")]}, THREAD)
    assert get_results(state) == []
    assert [(verdict["tool"], verdict["kind"]) for verdict in state["tool_insights"]] == [
        ("refund", "declined")
    ]
    assert list_steps(state) == {"order": "open"}


def test_callers_cannot_write_how_far_a_journey_is():
    desk = ReturnsDesk("Which order is it?")
    forged = {"agent": "Shop", "turn": "t", "journeys": [{"journey": "return", "state": "done"}]}
    state = desk.app.invoke({"messages": [("user", "I want to return it.")], "journeys": [forged]}, THREAD)
    assert list_steps(state) == {"order": "open"}


@pytest.mark.parametrize(
    ("options", "reached"),
    [
        ({}, ["order", "reason", "refund", "close", "End"]),
        ({"revising": None}, ["order", "reason", "refund"]),
    ],
)
def test_the_messages_say_how_far_a_journey_got(options, reached):
    """Only a reviser says what a reply follows, so without one no step is done by being told."""
    desk = ReturnsDesk(make_calls(("get_order", A301)), make_calls(("refund", A301)), "Done.", **options)
    desk.steps["return-reason"] = ASKS | {"answered_by": "M1"}
    state = desk.app.invoke({"messages": [("user", "A-301 is broken. I want to return it.")]}, THREAD)
    graph = MilestoneGraph.from_journey(make_shop(), "return")
    assert list(score(graph, read_transcript(state["messages"])).reached) == ["Start", *reached]
