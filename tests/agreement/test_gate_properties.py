"""Whatever a model answers, under every strategy: what runs was granted, and what needs a yes had one.

The normal run draws 15 conversations; the slow suite four hundred.
"""

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
def make_app(strategy: Any) -> Any:
    """Make the desk under a strategy, once, with a model that answers at random."""
    model = brain(
        JUDGE,
        reply=lambda _: CHANCE.choice([f"Well {CHANCE.random()}.", "Sure? ؟", ""]),
        moves=lambda _: CHANCE.choice(MOVES),
        wants=lambda: CHANCE.random() < 0.7,
    )
    options = {"strategy": "tools", "eager": True} if strategy == "eager" else {"strategy": strategy}
    return create_guided_agent(model, DESK, **options, mode="direct", checkpointer=MemorySaver())


def run_conversation(strategy: str, texts: list[str], seed: int) -> None:
    """Run a conversation, and check all that ran."""
    CHANCE.seed(seed)
    app, thread = make_app(strategy), {"configurable": {"thread_id": str(uuid4())}}
    for text in texts:
        is_granted = {id: CHANCE.random() < 0.7 for id in ("G1", "G2")}
        for id, applies in is_granted.items():
            JUDGE[id] = 9 if applies else 1
        turn_start = len(app.get_state(thread).values.get("messages", ()))
        state = app.invoke({"messages": [HumanMessage(text)]}, thread)
        check_turn(state["messages"], turn_start, is_granted)


def check_turn(messages: list[Any], turn_start: int, is_granted: dict[str, bool]) -> None:
    """Check the two invariants in the newest turn, by what can be read in the messages alone."""
    results = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    last_reply = messages[turn_start - 1].text if turn_start else ""
    has_agreed = ANSWERS[messages[turn_start].text] if turn_start < len(messages) else False
    questions = [line.split(". ", 1)[-1] for line in last_reply.splitlines() if "Cancel order (" in line]
    for message in messages[turn_start:]:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            if results[call["id"]].status == "error":
                continue
            assert call["name"] != "refund"
            if call["name"] == "look_up":
                # A speaker has a value confirmed that nobody gave; what was granted when it last_reply stays granted.
                assert is_granted["G2"] or (has_agreed and "Look up" in last_reply)
            else:
                order = call["args"]["order_id"]
                question = f'Cancel order (order id: "{order}", refund: yes)'
                assert has_agreed and last_reply.endswith("Reply yes to go ahead.") and question in questions
                questions.remove(question)  # one yes, one call


@given(conversations)
@settings(max_examples=15)
def test_nothing_runs_without_grant_and_agreement(conversation):
    run_conversation(*conversation)


@pytest.mark.slow
@given(conversations)
@settings(max_examples=400)
def test_nothing_runs_without_grant_and_agreement_in_hundreds_of_conversations(conversation):
    run_conversation(*conversation)
