"""A turn that broke off is finished first; a new message on it abandons it, and no call stays unanswered."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from arq_graph import Guideline, InputError, aresume_or_invoke, create_guided_agent, resume_or_invoke
from tests.apps.desk import desk, kinds, says, thread
from tests.brain import asked_by, brain


class Broken(Exception):
    """The process died here, as far as the thread can tell."""


def build(**options):
    """An app whose reviser fails until it is healed, and what its tool ran."""
    healed = []

    def reply(asked):
        return "Here." if healed else Broken()

    ran = []

    def get_order(order_id: str) -> str:
        """Look up an order.

        Args:
            order_id: The number.
        """
        ran.append(order_id)
        return "it is late"

    agent = desk(guidelines=[Guideline("they ask", "look it up", tools=[get_order])], **options)
    model = brain(judge={"G1": 9}, call={"get_order": {"order_id": "A-1"}}, reply=reply)
    return create_guided_agent(model, agent, checkpointer=MemorySaver()), model, ran, healed


def resume(runs, app, input, **kwargs):
    return runs.call(resume_or_invoke, aresume_or_invoke, app, input, thread(), **kwargs)


def test_a_turn_that_broke_off_is_finished_before_the_next_one_begins(runs):
    app, _, ran, healed = build()
    with pytest.raises(Broken):
        runs.invoke(app, says("Where is A-1?"), thread(), durability="sync")
    healed.append(True)
    state = resume(runs, app, says("Thanks"), durability="sync")
    assert kinds(state)[:5] == ["human", "ai", "tool", "ai", "human"]
    assert [m.content for m in state["messages"] if m.type == "human"] == ["Where is A-1?", "Thanks"]
    assert ran[:1] == ["A-1"]
    assert len(ran) == 2  # once in each turn: what was committed is not repeated


def test_an_unfinished_turn_can_be_finished_alone(runs):
    app, _, ran, healed = build()
    with pytest.raises(Broken):
        runs.invoke(app, says("Where is A-1?"), thread())
    healed.append(True)
    state = resume(runs, app, None)
    assert kinds(state) == ["human", "ai", "tool", "ai"]
    assert ran == ["A-1"]


def test_a_finished_thread_is_simply_gone_on_with(runs):
    app, _, _, healed = build()
    healed.append(True)
    assert kinds(resume(runs, app, says("Where is A-1?"))) == ["human", "ai", "tool", "ai"]
    assert kinds(resume(runs, app, None)) == ["human", "ai", "tool", "ai"]
    assert len(resume(runs, app, says("Thanks"))["messages"]) == 8


def test_a_new_thread_without_input_holds_nothing(runs):
    app, *_ = build()
    assert resume(runs, app, None) == {}


def test_a_new_message_on_a_turn_that_broke_off_keeps_what_was_committed(runs):
    app, _, _, healed = build()
    with pytest.raises(Broken):
        runs.invoke(app, says("Where is A-1?"), thread())
    healed.append(True)
    state = runs.invoke(app, says("Hello?"), thread())
    assert kinds(state)[:4] == ["human", "ai", "tool", "human"]
    assert state["messages"][2].status == "success"


def test_what_waits_for_an_operator_is_not_run_over(runs):
    app, _, ran, healed = build(confirm={"get_order": "operator"})
    healed.append(True)
    runs.invoke(app, says("Where is A-1?"), thread())
    with pytest.raises(InputError, match="waits for an answer to an interrupt: resume it with Command"):
        resume(runs, app, says("Hello?"))
    assert resume(runs, app, None)["__interrupt__"]
    state = resume(runs, app, Command(resume={"decisions": [{"type": "approve"}]}))
    assert kinds(state) == ["human", "ai", "tool", "ai"]
    assert ran == ["A-1"]


def test_after_a_bad_answer_the_thread_still_says_what_it_waits_for(runs):
    app, _, ran, healed = build(confirm={"get_order": "operator"})
    healed.append(True)
    runs.invoke(app, says("Where is A-1?"), thread())
    with pytest.raises(InputError):
        resume(runs, app, Command(resume={"decisions": []}))
    assert resume(runs, app, None)["__interrupt__"]
    assert ran == []


def test_an_interrupt_met_on_the_way_is_noticed_whatever_the_stream_mode(runs):
    broken = [True]

    def judge(asked):
        if broken:
            raise Broken
        return 9

    def get_order(order_id: str) -> str:
        """Look up an order.

        Args:
            order_id: The number.
        """
        return order_id

    agent = desk(
        guidelines=[Guideline("they ask", "look it up", tools=[get_order])], confirm={"get_order": "operator"}
    )
    model = brain(judge={"G1": judge}, call={"get_order": {"order_id": "A-1"}})
    app = create_guided_agent(model, agent, checkpointer=MemorySaver())
    with pytest.raises(Broken):
        runs.invoke(app, says("Where is A-1?"), thread(), durability="sync")
    broken.clear()
    with pytest.raises(InputError, match="waits for an answer"):
        resume(runs, app, says("Hello?"), stream_mode="updates")


def test_abandoning_what_waits_leaves_no_call_unanswered_and_is_told_to_the_model(runs):
    app, model, ran, healed = build(confirm={"get_order": "operator"})
    healed.append(True)
    runs.invoke(app, says("Where is A-1?"), thread())
    state = runs.invoke(app, says("Never mind"), thread())
    assert ran == []
    assert kinds(state)[:4] == ["human", "ai", "tool", "human"]
    calls = {call["id"] for m in state["messages"][:3] if m.type == "ai" for call in m.tool_calls}
    assert calls == {m.tool_call_id for m in state["messages"] if m.type == "tool"}
    line = next(line for line in asked_by(model, "tools")[-1].lines if line["id"] == "T1")
    assert line["error"] is True
    assert line["result"].startswith("abandoned")
