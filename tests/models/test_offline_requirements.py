"""What a policy requires first is called first by the offline model; then it goes on with what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, create_guided_agent, create_respact_agent
from arq_graph.nodes.speaking.policies import Policy

FIRING = "Please fire the kiln load KL-88."


def fire_kiln(load_id: str) -> str:
    """Fire a load in the kiln.

    Args:
        load_id: The load, like KL-88.
    """
    return f"{load_id} is being fired"


def inspect_chimney() -> str:
    """Look whether the chimney is clear."""
    return "The chimney is clear."


def gauge_humidity(workshop: str) -> str:
    """Measure the humidity of a workshop.

    Args:
        workshop: The workshop, like Amphora Hall.
    """
    return f"{workshop} is dry."


def stamp_ledger() -> str:
    """Stamp today's page of the ledger."""
    return "stamped"


def sealed_chimney() -> str:
    """Look whether the chimney is clear."""
    raise ValueError("the hatch is jammed")


def requiring(*tools: str) -> list[Policy]:
    return [Policy("first", "What is listed comes first.", requires=lambda state: list(tools))]


def respact(tools: Sequence[Callable[..., Any]], *required: str, **options: Any) -> Any:
    options |= {"policies": requiring(*required), "checkpointer": MemorySaver()}
    return create_respact_agent("offline", list(tools), **options)


def guided() -> Any:
    fires = Guideline("the customer wants a load fired", "fire the load", tools=[fire_kiln])
    agent = Agent(
        "Pottery",
        "You run the kiln of a pottery.",
        guidelines=[fires],
        tools=[inspect_chimney],
        confirm={"fire_kiln": "customer"},
    )
    options = {"policies": requiring("inspect_chimney"), "checkpointer": MemorySaver()}
    return create_guided_agent("offline", agent, speaking=True, **options)


def turn(app: Any, text: str) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    """The calls of a turn, and what the customer is told at its end."""
    thread = {"configurable": {"thread_id": "1"}}
    before = len(app.get_state(thread).values.get("messages", []))
    new: list[BaseMessage] = app.invoke({"messages": [("user", text)]}, thread)["messages"][before:]
    calls = [(c["name"], c["args"]) for m in new if isinstance(m, AIMessage) for c in m.tool_calls]
    return calls, str(new[-1].text)


CHIMNEY = ("inspect_chimney", {})
FIRED = ("fire_kiln", {"load_id": "KL-88"})


def test_the_required_tool_is_called_and_then_the_request_is_done():
    calls, reply = turn(respact([fire_kiln, inspect_chimney], "inspect_chimney"), FIRING)
    assert calls == [CHIMNEY, FIRED]
    assert "KL-88 is being fired" in reply


def test_all_that_is_required_comes_before_the_request():
    app = respact(
        [fire_kiln, inspect_chimney, gauge_humidity, stamp_ledger], "gauge_humidity", "inspect_chimney"
    )
    calls, _ = turn(app, "Please fire the kiln load KL-88 in the workshop Amphora Hall.")
    assert sorted(name for name, _ in calls[:2]) == ["gauge_humidity", "inspect_chimney"]
    assert calls[2:] == [FIRED]


def test_what_a_required_tool_lacks_is_asked_for_and_the_request_is_kept():
    app = respact([fire_kiln, gauge_humidity], "gauge_humidity")
    calls, reply = turn(app, FIRING)
    assert (calls, "the workshop" in reply, reply.count("?")) == ([], True, 1), reply
    assert turn(app, "Amphora Hall")[0] == [("gauge_humidity", {"workshop": "Amphora Hall"}), FIRED]


@pytest.mark.parametrize(
    "made",
    [guided, lambda: respact([fire_kiln, inspect_chimney], "inspect_chimney", consequential=["fire_kiln"])],
)
def test_a_yes_runs_the_call_after_what_each_turn_requires(made):
    app = made()
    calls, reply = turn(app, FIRING)
    assert (calls, "Shall I fire the kiln (load id: KL-88)?" in reply) == ([CHIMNEY], True), reply
    assert turn(app, "Yes, please.")[0] == [CHIMNEY, FIRED]


def test_a_required_tool_that_changes_something_is_not_taken_for_what_was_agreed_to():
    app = respact([fire_kiln, stamp_ledger], "stamp_ledger", consequential=["fire_kiln"])
    turn(app, FIRING)
    assert turn(app, "Yes, please.")[0] == [("stamp_ledger", {}), FIRED]


def test_a_required_tool_that_the_customer_has_to_agree_to_is_put_to_them_first():
    app = respact([fire_kiln, stamp_ledger], "stamp_ledger", consequential=["stamp_ledger"])
    calls, reply = turn(app, FIRING)
    assert (calls, "Shall I stamp the ledger?" in reply) == ([], True), reply
    assert turn(app, "Yes, please.")[0] == [("stamp_ledger", {})]


def test_after_a_required_tool_has_failed_nothing_is_changed():
    calls, reply = turn(respact([fire_kiln, sealed_chimney], "sealed_chimney"), FIRING)
    assert (calls, "did not work" in reply) == ([("sealed_chimney", {})], True), reply


def test_a_greeting_is_answered_once_the_required_tool_was_called():
    calls, reply = turn(respact([fire_kiln, inspect_chimney], "inspect_chimney"), "Good morning!")
    assert (calls, reply.startswith("Hello!")) == ([CHIMNEY], True), reply
