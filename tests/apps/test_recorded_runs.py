"""What a conversation leaves in the channels, for each strategy, as it is recorded beside this file.

The model is scripted and prompt in direct mode, whose keys survive a change of prompts. After a change that means to
change records, `python -m tests.apps.test_recorded_runs` writes them anew; read the difference before you keep it.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, create_guided_agent
from tests.brain import Move, Prompt, act, brain, say

RECORDED = Path(__file__).parent / "recorded"
STRATEGIES = ["tools", "pre-act", "react", "respact"]
CUSTOMER_TEXTS = [
    "Where is my order A-1?",
    "Then please cancel it.",
    "Is there a fee?",
    "Ok, yes, cancel it please.",
    "Thanks!",
]


def get_order(order_id: str) -> dict[str, str]:
    """Look an order up."""
    return {"order_id": order_id, "status": "delayed"}


def cancel_order(order_id: str, refund: bool = True) -> str:
    """Cancel an order."""
    return f"{order_id} is cancelled"


def record_run(
    strategy: str, choose_move: Callable[[Prompt], Move] | None = None, **options: Any
) -> list[str]:
    """Return the messages and records that each turn leaves, one per line, with places instead of ids.

    Without `choose_move`, the moves are made in a fixed order.
    """
    desk = Agent(
        "Desk",
        "You help with orders.",
        [
            Guideline("they ask where an order is", "look it up", tools=[get_order], id="find"),
            Guideline("they want to cancel", "cancel it", tools=[cancel_order], id="cancel"),
            Guideline(lambda state: len(state["messages"]) > 6, "be brief", id="brief", continuous=True),
            Guideline(None, "be kind", id="kind", continuous=True, overrides=["brief"]),
        ],
        confirm={"cancel_order": "customer"},
    )
    moves: list[Move] = [
        act("get_order", {"order_id": "A-1"}),
        say("It is delayed."),
        act("cancel_order", {"order_id": "A-1"}),
        say("A cancelled order does not come back."),
        say("There is none."),
        say("It is cancelled."),
        say("You are welcome."),
    ]
    judge: dict[str, Any] = {"find": 9, "cancel": 2}
    choose_move = choose_move or (lambda _: moves.pop(0) if moves else say())
    model = brain(judge, moves=choose_move, wants=lambda: True)
    app = create_guided_agent(
        model, desk, strategy=strategy, mode="direct", checkpointer=MemorySaver(), **options
    )
    lines: list[str] = []
    names: dict[str, str] = {}
    seen_messages = 0
    for text in CUSTOMER_TEXTS:
        if text == CUSTOMER_TEXTS[1]:
            judge |= {"find": 2, "cancel": 9}
        state = app.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "1"}})
        for number, message in enumerate(state["messages"], start=1):
            names[message.id] = f"message {number}"
            names |= {call["id"]: f"call of message {number}" for call in getattr(message, "tool_calls", ())}
        names |= {record["id"]: "the question" for record in state.get("agreements", ())}
        for message in state["messages"][seen_messages:]:
            lines.append(json.dumps([message.type, message.text, getattr(message, "tool_calls", [])]))
        seen_messages = len(state["messages"])
        for channel in sorted(state.keys() - {"messages"}):
            for record in state[channel]:
                lines.append(json.dumps([channel, record], sort_keys=True))
    for id, name in names.items():
        lines = [line.replace(f'"{id}"', f'"{name}"') for line in lines]
    return lines


ALIKE = [pytest.param(strategy, marks=pytest.mark.slow) for strategy in ("pre-act", "react")]


@pytest.mark.parametrize("strategy", ["tools", "respact", *ALIKE])
def test_a_conversation_leaves_the_records_that_it_left_before(strategy: str) -> None:
    assert record_run(strategy) == (RECORDED / f"{strategy}.jsonl").read_text().splitlines()


@pytest.mark.slow
def test_an_eager_agent_leaves_the_same_records() -> None:
    def choose_move(prompt: Prompt) -> Move:
        *_, last_text = (line["text"] for line in prompt.lines if line["from"] == "customer")
        if last_text == CUSTOMER_TEXTS[0] and not prompt.turn:
            return act("get_order", {"order_id": "A-1"})
        if last_text == CUSTOMER_TEXTS[1]:
            return act("cancel_order", {"order_id": "A-1"})
        return say()

    recorded = (RECORDED / "tools.jsonl").read_text().splitlines()
    assert record_run("tools", choose_move, eager=True) == recorded


if __name__ == "__main__":
    for strategy in STRATEGIES:
        (RECORDED / f"{strategy}.jsonl").write_text("\n".join(record_run(strategy)) + "\n")
