"""Asking ahead what never changes about a guideline, and keeping the answers."""

from __future__ import annotations

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


def answer(*, continuous: bool = True, sensitive_to_tools: bool = False) -> dict[str, Any]:
    return {
        "continuous_rationale": "It is kept up.",
        "sensitive_to_tools_rationale": "The customer shows it.",
        "continuous": continuous,
        "sensitive_to_tools": sensitive_to_tools,
    }


def asked(call: Any) -> list[str]:
    assert call.schema is not None
    return list(call.schema["properties"])


def calm_model() -> ScriptedChatModel:
    """A model that finds everything continuous and nothing sensitive."""
    return ScriptedChatModel(lambda call: {id: answer() for id in asked(call)})


def properties(agent: Agent) -> dict[str, tuple[bool | None, bool | None]]:
    return {g.id: (g.continuous, g.sensitive_to_tools) for g in agent.guidelines}


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    file = tmp_path / "orders.yaml"
    file.write_text(ORDERS)
    return file


def test_both_properties_are_filled_in_and_found_again(orders: Path) -> None:
    model = ScriptedChatModel(
        [{"G1": answer(continuous=False, sensitive_to_tools=True), "G2": answer(continuous=True)}]
    )
    prepared = Agent.from_yaml(orders).prepare(model)
    assert properties(prepared) == {"G1": (False, True), "G2": (True, False)}
    assert [call.module for call in model.calls] == ["prepare"]
    assert (orders.parent / "orders.prepared.json").is_file()
    assert properties(Agent.from_yaml(orders)) == properties(prepared)


@pytest.mark.parametrize(
    ("guideline", "is_asked", "settled"),
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
def test_what_is_decided_is_not_asked_and_stays(guideline: Guideline, is_asked: bool, settled: Any) -> None:
    model = ScriptedChatModel(lambda call: {id: answer(sensitive_to_tools=True) for id in asked(call)})
    assert properties(Agent("n", "p", [guideline]).prepare(model)) == {"G1": settled}
    assert bool(model.calls) is is_asked


def test_a_reworded_guideline_is_asked_again_and_one_that_moved_keeps_its_answer(orders: Path) -> None:
    Agent.from_yaml(orders).prepare(calm_model())
    moved = ORDERS.replace("guidelines:\n", "guidelines:\n- action: greet the customer\n")
    orders.write_text(moved.replace("stay calm", "apologise"))
    agent = Agent.from_yaml(orders)
    assert properties(agent) == {"G1": (None, None), "G2": (True, False), "G3": (None, None)}
    model = calm_model()
    agent.prepare(model)
    assert asked(model.calls[0]) == ["G1", "G3"]
    assert properties(Agent.from_yaml(orders))["G3"] == (True, False)


def test_an_agent_built_in_python_keeps_its_answers_where_it_is_told(tmp_path: Path) -> None:
    agent = Agent("n", "p", [Guideline("a", "b")])
    assert properties(agent.prepare(calm_model())) == {"G1": (True, False)}
    assert list(tmp_path.iterdir()) == []
    kept = tmp_path / "answers.json"
    agent.prepare(calm_model(), path=kept)
    assert [file.name for file in tmp_path.iterdir()] == ["answers.json"]
    assert properties(agent.prepare(ScriptedChatModel([]), path=str(kept))) == {"G1": (True, False)}


def test_answers_are_kept_when_others_fail(tmp_path: Path) -> None:
    def answers_only_the_first(call: Any) -> Any:
        return {id: answer() for id in asked(call)} if "G1" in asked(call) else "I cannot say."

    agent = Agent("n", "p", [Guideline(f"condition {n}", "act") for n in range(12)])
    kept = tmp_path / "answers.json"
    with pytest.raises(BlueprintError) as caught:
        agent.prepare(ScriptedChatModel(answers_only_the_first), path=kept)
    assert "10 of 12 guidelines were answered" in caught.value.__notes__[0]
    assert len(json.loads(kept.read_text())) == 10
    second = calm_model()
    assert all(g.continuous for g in agent.prepare(second, path=kept).guidelines)
    assert [asked(call) for call in second.calls] == [["G11", "G12"]]


def test_a_broken_file_of_answers_is_named(orders: Path) -> None:
    (orders.parent / "orders.prepared.json").write_bytes(b'{"version": 2, "guidelines": {}}')
    with pytest.raises(SpecError, match=r"orders\.prepared\.json: is not a file of prepared.*delete it"):
        Agent.from_yaml(orders)


def test_no_model_is_asked_when_the_answers_could_not_be_kept(tmp_path: Path) -> None:
    model = calm_model()
    agent = Agent("n", "p", [Guideline("a", "b")])
    with pytest.raises(SpecError, match="there is no folder"):
        agent.prepare(model, path=tmp_path / "nowhere" / "answers.json")
    with pytest.raises(SpecError, match="cannot be"):
        agent.prepare(model, path=tmp_path)
    assert model.calls == []
