"""A process that dies in the middle of a journey: wherever it dies, nothing is lost and nothing done twice."""

from typing import Any

import pytest

from arq_graph import create_guided_agent
from tests.brain import brain
from tests.crashing import CrashingSaver, run_turns
from tests.journeys.returns import make_shop

TEXTS = [
    "I want to return A-301, it is broken.",
    "Sorry, it is A-302.",
    "I will keep it.",
    "No, I do want to return it.",
]


def judge_steps(prompt: Any) -> dict[str, Any]:
    last = prompt.lines[-1].get("text", "") if prompt.lines else ""
    done = [step["id"] for step in prompt.now.get("done", ())]
    if "Sorry" in last and "return-order" in done:
        return {"changed": [{"step": "return-order", "answered_by": prompt.now["turn"]}]}
    if "keep" in last and prompt.now.get("give_up"):
        return {"given_up": ["return"]}
    if "No, I do" in last and prompt.now.get("ended"):
        return {"begun_anew": ["return"]}
    return {}


def call_get_order(prompt: Any) -> dict[str, str] | list[Any]:
    order = "A-302" if "A-302" in prompt.tail else "A-301"
    return [] if prompt.results("get_order") else {"order_id": order}


def run_conversation(saver: CrashingSaver) -> list[Any]:
    """Run the turns, each again after a crash, and return the state after each."""

    def make_app() -> Any:
        model = brain(
            judge={"return": lambda prompt: 2 if "keep" in prompt.lines[-1].get("text", "") else 9},
            call={"get_order": call_get_order},
            steps={"return-reason": {"asks_for_something": True, "answered_by": "M1"}},
            journeys=judge_steps,
            reply=lambda prompt: f"Answer {len(prompt.lines)}.",
        )
        return create_guided_agent(model, make_shop(), checkpointer=saver)

    return run_turns(make_app, TEXTS)


def summarize(state: Any) -> Any:
    ((journey,),) = [record["journeys"] for record in state["journeys"]]
    results = [message.text for message in state["messages"] if message.type == "tool"]
    return journey["state"], [(step["step"], step["state"]) for step in journey["steps"]], results


@pytest.mark.slow
def test_a_crash_at_any_write_changes_nothing() -> None:
    whole = CrashingSaver()
    expected = [summarize(state) for state in run_conversation(whole)]
    assert [entry[0] for entry in expected] == ["active", "active", "given_up", "active"]
    for fatal_write in range(3, whole.write_count):
        states = run_conversation(CrashingSaver(fatal_write))
        assert [summarize(state) for state in states] == expected, fatal_write
