"""Whatever a model answers, under every strategy: what runs was granted, and what needs a yes had one.

The normal run draws 15 conversations; the slow suite four hundred.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, create_guided_agent
from tests.agreement.desk import SETTINGS
from tests.brain import act, brain, say

ANSWERS = {
    **dict.fromkeys(("yes", "ja", "👍", "ok, yes, cancel it please"), True),
    **dict.fromkeys(
        ("hmm", "A-2", "Yes, A-2", "yes?", "no", "👎", "ok", "cancel A-1", "Yes. Is there a fee?"), False
    ),
}
MOVES = [
    say(),
    *(act("cancel_order", {"order_id": id}) for id in ("A-1", "A-2", "broken")),
    *(act("look_up", {"order_id": id}) for id in ("A-1", "A-2")),
    act("refund", {"order_id": "A-1"}),
    act("cancel_order"),
]


def cancel_order(order_id: str, refund: bool = True) -> str:
    """Cancel an order."""
    return '{"error": "no such order"}' if order_id == "broken" else "done"


def look_up(order_id: str) -> str:
    """Look up an order."""
    return order_id


def refund(order_id: str) -> str:
    """Refund an order."""
    return order_id


DESK = Agent(
    "Desk",
    "You help with orders.",
    [
        Guideline("they want to cancel", "cancel it", tools=[cancel_order]),
        Guideline("they ask about an order", "look it up", tools=[look_up]),
        Guideline("never", "refund it", tools=[refund]),
    ],
    confirm={"cancel_order": "customer"},
)

conversations = st.tuples(
    st.sampled_from([*SETTINGS, "eager"]),
    st.lists(st.sampled_from(list(ANSWERS)), min_size=1, max_size=5),
    st.integers(0, 2**16),
)


CHANCE = random.Random()
JUDGE: dict[str, Any] = {}


@cache
def app_of(strategy: Any) -> Any:
    """The desk under a strategy, made once, with a model that answers at random."""
    model = brain(
        JUDGE,
        reply=lambda _: CHANCE.choice([f"Well {CHANCE.random()}.", "Sure? ؟", ""]),
        moves=lambda _: CHANCE.choice(MOVES),
        wants=lambda: CHANCE.random() < 0.7,
    )
    how = {"strategy": "tools", "eager": True} if strategy == "eager" else {"strategy": strategy}
    return create_guided_agent(model, DESK, **how, mode="direct", checkpointer=MemorySaver())


def hold(strategy: str, said: list[str], seed: int) -> None:
    """Hold a conversation, and look at all that ran."""
    CHANCE.seed(seed)
    app, thread = app_of(strategy), {"configurable": {"thread_id": str(uuid4())}}
    for text in said:
        granted = {id: CHANCE.random() < 0.7 for id in ("G1", "G2")}
        JUDGE.update({id: 9 if applies else 1 for id, applies in granted.items()})
        before = len(app.get_state(thread).values.get("messages", ()))
        state = app.invoke({"messages": [HumanMessage(text)]}, thread)
        look_at(state["messages"], before, granted)


def look_at(messages: list[Any], before: int, granted: dict[str, bool]) -> None:
    """Hold the newest turn against the two invariants, by what can be read in the messages alone."""
    results = {m.tool_call_id: m for m in messages if isinstance(m, ToolMessage)}
    put = messages[before - 1].text if before else ""
    agreed = ANSWERS[messages[before].text] if before < len(messages) else False
    questions = [line.split(". ", 1)[-1] for line in put.splitlines() if "Cancel order (" in line]
    for message in messages[before:]:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            if results[call["id"]].status == "error":
                continue
            assert call["name"] != "refund"
            if call["name"] == "look_up":
                # A speaker puts a value that nobody told; what was granted when it was put stands.
                assert granted["G2"] or (agreed and "Look up" in put)
            else:
                order = call["args"]["order_id"]
                asked = f'Cancel order (order id: "{order}", refund: yes)'
                assert agreed and put.endswith("Reply yes to go ahead.") and asked in questions
                questions.remove(asked)  # one yes, one call


@given(conversations)
@settings(max_examples=15)
def test_nothing_runs_without_grant_and_agreement(conversation):
    hold(*conversation)


@pytest.mark.slow
@given(conversations)
@settings(max_examples=400)
def test_nothing_runs_without_grant_and_agreement_in_hundreds_of_conversations(conversation):
    hold(*conversation)
