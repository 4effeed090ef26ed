"""A call that the customer has to agree to first: asked for in one turn, made in a later one."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, create_guided_agent
from arq_graph.agent.state import GuidelineMatch
from arq_graph.nodes import ToolCaller
from tests.brain import Call, asked_by, brain

A1 = {"order_id": "A-1"}


def cancel(order_id: str) -> str:
    """Cancel an order.

    Args:
        order_id: The number.
    """
    return f"{order_id} is cancelled"


DESK = Agent(
    "Desk",
    "You help with orders.",
    [Guideline("they want to cancel", "cancel the order", tools=[cancel])],
    confirm={"cancel": "customer"},
)
THREAD = {"configurable": {"thread_id": "1"}}


def talk(runs, call, *turns, agent=DESK, reply=None):
    """Hold a conversation; returns the state after each turn, and the model."""
    model = brain(judge={"G1": 9}, call={"cancel": call}, reply=reply)
    app = create_guided_agent(model, agent, checkpointer=MemorySaver())
    return [runs.invoke(app, {"messages": [("user", turn)]}, THREAD) for turn in turns], model


def results(state):
    return [message.content for message in state["messages"] if message.type == "tool"]


def affirmed(order_id="A-1", where=None):
    """Propose the call; once it was put to the customer, their last message is said to affirm it."""

    def propose(asked):
        if asked.results("cancel"):
            return []
        waiting = asked.now.get("awaiting_confirmation")
        said = (asked.now["turn"] if where is None else where) if waiting else None
        return Call({"order_id": order_id}, {"affirmed_in": said})

    return propose


def test_a_call_is_put_to_the_customer_and_made_once_they_agree(runs):
    (asked, done), model = talk(runs, affirmed(), "Cancel A-1", "Yes, please")
    assert results(asked) == []
    (insight,) = asked["tool_insights"]
    assert (insight.kind, insight.arguments) == ("confirm", A1)
    (shown,) = asked_by(model, "message")[0].section("insights")
    assert shown["kind"] == "confirm"
    assert asked["messages"][-1].text.endswith(shown["question"])
    assert '"A-1"' in shown["question"]
    assert results(done) == ["A-1 is cancelled"]


@pytest.mark.parametrize(
    "answer",
    ["No", "No, don't do it!", "Yes, but for B-2", "Forget it", "Nein", "Please wait", "Better not. Stop."],
)
def test_a_no_is_a_no_whatever_the_model_makes_of_it(runs, answer):
    states, _ = talk(runs, affirmed(), "Cancel A-1", answer)
    assert results(states[-1]) == []


def test_what_waits_is_shown_to_the_tool_caller_with_its_arguments(runs):
    _, model = talk(runs, affirmed(), "Cancel A-1", "Yes, please")
    first, second, *_ = asked_by(model, "tools")
    assert "awaiting_confirmation" not in first.now
    assert second.now["awaiting_confirmation"] == [{"tool": "cancel", "arguments": A1, "asked_after": "M1"}]


def test_agreeing_in_the_message_that_asks_for_the_call_is_not_enough(runs):
    def eager(asked):
        return [] if asked.results("cancel") else Call(A1, {"affirmed_in": "M1"})

    (state,), _ = talk(runs, eager, "Cancel A-1, yes I am sure")
    assert results(state) == []
    assert state["tool_insights"][0].kind == "confirm"


@pytest.mark.parametrize("where", ["M1", "M2", "M99", "T1", "", "nonsense"])
def test_only_a_later_message_of_the_customer_affirms(runs, where):
    (_, state), _ = talk(runs, affirmed(where=where), "Cancel A-1", "Hm")
    assert results(state) == []


def test_other_arguments_than_those_agreed_to_are_put_to_the_customer_again(runs):
    def drifting(asked):
        if not asked.now.get("awaiting_confirmation"):
            return Call(A1)
        return Call({"order_id": "A-2"}, {"affirmed_in": asked.now["turn"]})

    (_, state), _ = talk(runs, drifting, "Cancel A-1", "Yes")
    assert results(state) == []
    turn = state["messages"][-2].id
    assert [(i.kind, i.arguments) for i in state["tool_insights"] if i.turn == turn] == [
        ("confirm", {"order_id": "A-2"})
    ]


def test_agreeing_once_makes_the_call_once(runs):
    def stubborn(asked):
        return Call(A1, {"affirmed_in": "M3" if len(asked.lines) > 2 else None})

    (_, done, later), _ = talk(runs, stubborn, "Cancel A-1", "Yes", "Thanks")
    assert results(done) == ["A-1 is cancelled"]
    assert results(later) == ["A-1 is cancelled"]
    assert later["tool_insights"][-1].kind == "confirm"


def test_a_call_that_was_never_put_to_the_customer_cannot_be_affirmed(runs):
    """The turn that wanted to ask broke off before its reply."""
    node = ToolCaller(
        brain(call={"cancel": lambda asked: Call(A1, {"affirmed_in": asked.now["turn"]})}), DESK
    )

    def update(messages, **channels):
        match = GuidelineMatch(guideline="G1", turn=messages[-1].id, active=True, matched=True)
        return runs.invoke(node, {"messages": messages, "guideline_matches": [match], **channels})

    wish, word = HumanMessage("Cancel A-1", id="h1"), HumanMessage("Yes", id="h2")
    insights = update([wish])["tool_insights"]
    assert "messages" not in update([wish, word], tool_insights=insights)
    assert "messages" in update([wish, AIMessage("Shall I?", id="a1"), word], tool_insights=insights)


def look_up(order_id: str) -> str:
    """Look an order up.

    Args:
        order_id: The number.
    """
    return f"{order_id} is open"


def test_the_customer_s_word_still_counts_after_another_tool_ran_in_the_turn(runs):
    """Yes. Check first that it is open."""
    agent = Agent(
        "Desk",
        "You help with orders.",
        [Guideline("they want to cancel", "cancel the order", tools=[cancel, look_up])],
        confirm={"cancel": "customer"},
    )

    def check_first(asked):
        return [Call(A1)] if asked.now.get("turn") == "M3" and not asked.results("look_up") else []

    def then_cancel(asked):
        if asked.results("cancel"):
            return []
        if not asked.now.get("awaiting_confirmation"):
            return Call(A1)
        return Call(A1, {"affirmed_in": asked.now["turn"]}) if asked.results("look_up") else []

    model = brain(judge={"G1": 9}, call={"cancel": then_cancel, "look_up": check_first})
    app = create_guided_agent(model, agent, checkpointer=MemorySaver())
    runs.invoke(app, {"messages": [("user", "Cancel A-1")]}, THREAD)
    state = runs.invoke(app, {"messages": [("user", "Yes. Check that it is open first")]}, THREAD)
    assert results(state) == ["A-1 is open", "A-1 is cancelled"]


def test_one_word_of_the_customer_covers_one_call(runs):
    def again_and_again(asked):
        said = {"affirmed_in": "M3", "repeat_is_justified": True} if len(asked.lines) > 2 else {}
        return Call(A1, said)

    (_, done), _ = talk(runs, again_and_again, "Cancel A-1", "Yes")
    assert results(done) == ["A-1 is cancelled"]


def test_a_question_of_two_turns_ago_is_over(runs):
    def late(asked):
        return Call(A1, {"affirmed_in": "M5"}) if len(asked.lines) != 3 else []

    (_, _, state), _ = talk(runs, late, "Cancel A-1", "What is the weather?", "Yes")
    assert results(state) == []
