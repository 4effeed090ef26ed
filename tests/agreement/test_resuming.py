"""A yes is spent when the call is written: what was cut off is finished on resume, and nothing runs twice."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, create_guided_agent, resume_or_invoke
from tests.agreement.deciding import STRATEGIES, Deciding

THREAD: Any = {"configurable": {"thread_id": "1"}}


class Cut(BaseException):
    """The process is gone."""


class Desk:
    """A desk whose tool can be cut off in the middle."""

    def __init__(self, strategy: str) -> None:
        self.done: list[str] = []
        self.cut = False

        def cancel_order(order_id: str) -> str:
            """Cancel an order."""
            if self.cut:
                self.cut = False
                raise Cut
            self.done.append(order_id)
            return "cancelled"

        rule = Guideline("the customer wants to cancel", "cancel it", tools=[cancel_order])
        agent = Agent("Desk", "You help.", [rule], confirm={"cancel_order": "customer"})
        deciding = Deciding(lambda asked: ("cancel_order", {"order_id": "A-1"}) if asked == 1 else None)
        self.app = create_guided_agent(
            deciding.model, agent, strategy=strategy, mode="direct", checkpointer=MemorySaver()
        )

    def say(self, text: str) -> Any:
        said = {"messages": [HumanMessage(text)]}
        return self.app.invoke(said, THREAD, durability="sync")

    def cut_off(self) -> None:
        """Put the call, have it agreed to, and lose the process while it runs."""
        self.say("Please cancel A-1.")
        self.cut = True
        with pytest.raises(Cut):
            self.say("Yes")
        assert self.done == []


@pytest.fixture(params=STRATEGIES)
def desk(request: pytest.FixtureRequest) -> Desk:
    return Desk(request.param)


def test_resuming_finishes_a_call_whose_yes_is_spent(desk):
    desk.cut_off()
    resume_or_invoke(desk.app, None, THREAD, durability="sync")
    assert desk.done == ["A-1"]
    desk.say("Yes")
    assert desk.done == ["A-1"]


def test_a_new_message_abandons_it_and_no_second_yes_runs_it(desk):
    desk.cut_off()
    state = desk.say("Yes")
    (result,) = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    assert result.text.startswith("abandoned")
    assert desk.done == []


def test_a_turn_that_was_cut_off_before_its_reply_put_nothing(desk):
    desk.app.nodes["message"].bound.reasoner = None  # the reply is never written
    with pytest.raises(AttributeError):
        desk.say("Please cancel A-1.")
    assert desk.app.get_state(THREAD).values.get("agreements", []) == []
