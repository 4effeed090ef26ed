"""Count the model calls of a journey, beside guidelines that say the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from arq_graph import Agent, Guideline, Journey, JourneyStep, ScriptedChatModel, create_guided_agent
from benchmarks.in_process import make_agent
from tests.brain import Prompt, brain

GUIDELINES = 20
STEPS = 30
CONDITION = "the customer applies for a loan"


@dataclass(frozen=True)
class JourneyCost:
    """The cost of a turn of an agent, on average over a conversation.

    Args:
        agent: What the agent has besides its guidelines.
        calls: Model calls; about a step's answer, and so without a tool.
        most_calls: Those of the turn that has the most.
        prompt_characters: Characters of all messages of all calls.
        schema_characters: Characters of the JSON schemas that go with them.
        steps_taken: Steps that are done in the end.
    """

    agent: str
    calls: float
    most_calls: int
    prompt_characters: float
    schema_characters: float
    steps_taken: int


def measure_journeys() -> Iterator[JourneyCost]:
    """Measure conversations in which each message of the customer answers what the agent asked before."""
    guidelines = make_agent(GUIDELINES).guidelines
    yield _measure("nothing", Agent("Bank", "You lend money.", guidelines))
    for count in (5, STEPS):
        journey = Journey("loan", CONDITION, list(_make_steps(count)))
        agent = Agent("Bank", "You lend money.", guidelines, journeys=[journey])
        yield _measure(f"a journey of {count} steps", agent)
    agent = Agent("Bank", "You lend money.", [*guidelines, *_make_guidelines(STEPS)])
    yield _measure(f"{STEPS} guidelines with relations", agent)


def _make_steps(count: int) -> Iterator[JourneyStep]:
    for number in range(1, count + 1):
        after = [f"s{number - 1}"] if number > 1 else []
        yield JourneyStep(f"s{number}", _describe_question(number), after=after)


def _make_guidelines(count: int) -> Iterator[Guideline]:
    """Yield guidelines that ask the same questions, each once the question before it is answered."""
    yield Guideline(CONDITION, id="loan")
    for number in range(1, count + 1):
        condition = f"question {number} of the form is not answered yet"
        if number > 1:
            condition = f"question {number - 1} of the form is answered, and {condition}"
        yield Guideline(condition, _describe_question(number), id=f"s{number}", depends_on=["loan"])


def _describe_question(number: int) -> str:
    return f"ask question {number} of the form: what the customer has stated as item number {number} of their budget"


def _measure(name: str, agent: Agent) -> JourneyCost:
    model = _make_model()
    app = create_guided_agent(model, agent, checkpointer=InMemorySaver())
    calls_by_turn: list[int] = []
    state: dict[str, Any] = {}
    for number in range(STEPS):
        calls_before = len(model.calls)
        message = {"messages": [("user", f"It is {number} euros.")]}
        state = app.invoke(message, {"configurable": {"thread_id": "1"}})
        calls_by_turn.append(len(model.calls) - calls_before)
    prompts = [sum(len(message.text) for message in call.messages) for call in model.calls]
    schemas = [len(json.dumps(call.schema)) for call in model.calls]
    return JourneyCost(
        agent=name,
        calls=sum(calls_by_turn) / STEPS,
        most_calls=max(calls_by_turn),
        prompt_characters=sum(prompts) / STEPS,
        schema_characters=sum(schemas) / STEPS,
        steps_taken=_count_done(state.get("journeys", ())),
    )


def _count_done(records: Sequence[dict[str, Any]]) -> int:
    done = 0
    for record in records:
        for journey in record["journeys"]:
            done += sum(step["state"] == "done" for step in journey["steps"])
    return done


def _make_model() -> ScriptedChatModel:
    """Return a model for which each message of the customer answers the step that was open before it."""
    steps: dict[str, Any] = {}
    for number in range(1, STEPS + 1):
        steps[f"loan-s{number}"] = partial(_judge_step, f"loan-s{number}")
    return brain(judge={"loan": 9}, steps=steps)


def _judge_step(id: str, prompt: Prompt) -> dict[str, Any]:
    turn = prompt.now["turn"]
    is_first_open = prompt.now["judge"][0]["id"] == id
    is_answered = is_first_open and turn != "M1"
    return {"asks_for_something": True, "answered_by": turn if is_answered else None}
