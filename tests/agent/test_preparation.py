"""Preparing guidelines: asking once about what never changes, and storing the answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from arq_graph import Agent, Guideline, ScriptedChatModel
from arq_graph.errors import BlueprintError, SpecError

ORDERS = """\
name: Order desk
profile: A friendly clerk.
guidelines:
- condition: the order has shipped
  action: tell when it arrives
- condition: the customer is angry
  action: stay calm
"""


def make_answer(*, continuous: bool = True, sensitive_to_tools: bool = False) -> dict[str, Any]:
    return {
        "continuous_rationale": "It shapes every reply.",
        "sensitive_to_tools_rationale": "The customer shows it.",
        "continuous": continuous,
        "sensitive_to_tools": sensitive_to_tools,
    }


def list_asked(call: Any) -> list[str]:
    return list(call.schema["properties"])


def make_model(**answer: bool) -> ScriptedChatModel:
    """Make a model that gives the same answer for every guideline."""
    return ScriptedChatModel(lambda call: {id: make_answer(**answer) for id in list_asked(call)})


def get_properties(agent: Agent) -> dict[str, tuple[bool | None, bool | None]]:
    return {
        guideline.id: (guideline.continuous, guideline.sensitive_to_tools) for guideline in agent.guidelines
    }


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    file = tmp_path / "orders.yaml"
    file.write_text(ORDERS)
    return file


def test_answers_are_filled_in_and_read_again_with_the_file(orders: Path) -> None:
    answers = {"G1": make_answer(continuous=False, sensitive_to_tools=True), "G2": make_answer()}
    model = ScriptedChatModel([answers])
    prepared = Agent.from_yaml(orders).prepare(model)
    assert get_properties(prepared) == {"G1": (False, True), "G2": (True, False)}
    assert [call.module for call in model.calls] == ["prepare"]
    assert (orders.parent / "orders.prepared.json").is_file()
    assert get_properties(Agent.from_yaml(orders)) == get_properties(prepared)


@pytest.mark.parametrize(
    ("guideline", "is_asked", "properties"),
    [
        (Guideline("a", "b", continuous=False, sensitive_to_tools=True), False, (False, True)),
        (Guideline("a", "b", sensitive_to_tools=False), True, (True, False)),
        (Guideline("a", "b", continuous=False), True, (False, True)),
        (Guideline("an observation"), True, (None, True)),
        (Guideline(None, "b"), True, (True, False)),
        (Guideline(lambda state: True, "b"), True, (True, None)),
        (Guideline(lambda state: True), False, (None, None)),
    ],
)
def test_the_designers_decisions_are_not_asked_about(
    guideline: Guideline, is_asked: bool, properties: Any
) -> None:
    model = make_model(sensitive_to_tools=True)
    assert get_properties(Agent("n", "p", [guideline]).prepare(model)) == {"G1": properties}
    assert bool(model.calls) is is_asked


def test_a_reworded_guideline_is_asked_again_and_a_moved_one_is_not(orders: Path) -> None:
    Agent.from_yaml(orders).prepare(make_model())
    moved = ORDERS.replace("guidelines:\n", "guidelines:\n- action: greet the customer\n")
    orders.write_text(moved.replace("stay calm", "apologise"))
    agent = Agent.from_yaml(orders)
    assert get_properties(agent) == {"G1": (None, None), "G2": (True, False), "G3": (None, None)}
    model = make_model()
    agent.prepare(model)
    assert list_asked(model.calls[0]) == ["G1", "G3"]
    assert get_properties(Agent.from_yaml(orders))["G3"] == (True, False)


def test_answers_are_stored_when_other_batches_fail(orders: Path) -> None:
    def answer_first_batch(call: Any) -> Any:
        if "G1" in list_asked(call):
            return {id: make_answer() for id in list_asked(call)}
        return "I cannot say."

    guidelines = [Guideline(f"condition {number}", "act") for number in range(12)]
    agent = Agent.from_yaml(orders).replace(guidelines=guidelines)
    with pytest.raises(BlueprintError) as caught:
        agent.prepare(ScriptedChatModel(answer_first_batch))
    assert "10 of 12 guidelines were answered" in caught.value.__notes__[0]
    assert len(json.loads((orders.parent / "orders.prepared.json").read_text())) == 10
    model = make_model()
    assert all(guideline.continuous for guideline in agent.prepare(model).guidelines)
    assert [list_asked(call) for call in model.calls] == [["G11", "G12"]]


def test_a_broken_file_of_answers_is_reported(orders: Path) -> None:
    (orders.parent / "orders.prepared.json").write_bytes(b'{"version": 2, "guidelines": {}}')
    with pytest.raises(SpecError, match=r"orders\.prepared\.json: is not a file of prepared.*delete it"):
        Agent.from_yaml(orders)
