"""`arq-graph check`, `graph`, `prepare` and `schema`: an agent's file without a conversation."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from arq_graph import Agent
from tests.cli.shop import options
from tests.reasoning.endpoint import Endpoint, ok

DESK = Path(__file__).parents[2] / "examples" / "order_desk"


def test_check_sums_up_guidelines_tools_and_what_is_doubtful(cli, shop):
    shop.write_text(shop.read_text().replace("cancel_order: operator", "cancel_order: customer"))
    result = cli("check", shop)
    assert result.code == 0
    assert "Guidelines (3)" in result.out
    assert "when the customer wants to cancel an order: cancel the order" in result.words
    assert "calls cancel_order" in result.out
    assert "Tools (2)" in result.out
    assert "takes order_id (string), reason (string; optional)" in result.words
    assert "asks the customer first" in result.out
    assert 'asked as: "' in result.out
    assert "For 2 of 3 guidelines, this is still asked" in result.words
    assert "can be run" in result.out


JOURNEY = """
journeys:
- id: return
  condition: the customer wants to return an item
  give_up: the customer wants to keep it
  steps:
  - {id: order, action: ask which order it is, tools: [desk:get_order]}
  - {id: refund, action: offer a refund, condition: it is broken, after: order}
"""


def test_check_shows_each_journey_with_its_steps(cli, shop):
    shop.write_text(shop.read_text() + JOURNEY)
    result = cli("check", shop)
    assert "Journeys (1)" in result.out
    assert "return when the customer wants to return an item" in result.words
    assert "order: ask which order it is · calls get_order" in result.words
    assert "refund, after order, when it is broken: offer a refund" in result.words
    assert "ends when the customer wants to keep it" in result.words
    assert "for look-up, return-order" in result.words
    assert "For 3 of 4 guidelines" in result.words  # what the journey is for is judged every turn, too
    assert "always available" not in result.words


def test_check_warns_of_a_tool_that_does_not_wait_for_its_step(cli, shop):
    shop.write_text(shop.read_text() + JOURNEY + "tools: [desk:get_order]\n")
    result = cli("check", shop)
    assert result.code == 0
    assert "the step 'order' of 'return' unlocks get_order, but it is always available" in result.words


def test_check_names_file_and_line_of_a_mistake(cli, shop):
    shop.write_text(shop.read_text().replace("desk:get_order", "desk:get_ordre"))
    result = cli("check", shop)
    assert result.code == 1
    assert f"{shop}:8:" in result.err.replace("\n", "")
    assert "get_order" in result.err
    assert result.out == ""


def test_graph_prints_mermaid_and_nothing_else(cli, shop):
    result = cli("graph", shop)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("---\nconfig:")
    assert "match --> call_tools" in result.out
    assert "approve" in result.out


def test_prepare_asks_once_and_saves_the_answers_beside_the_file(cli, shop):
    def make_answer(id: str) -> dict[str, object]:
        reasons = {"continuous_rationale": "…", "sensitive_to_tools_rationale": "…"}
        return {**reasons, "continuous": id == "cancel", "sensitive_to_tools": False}

    with Endpoint(lambda asked: ok({id: make_answer(id) for id in asked.schema["properties"]})) as endpoint:
        result = cli("prepare", shop, *options(endpoint))
        assert result.code == 0
        assert "2 of 3 guidelines were asked about" in result.words
        assert "cancel  kept up" in result.out
        again = cli("prepare", shop, *options(endpoint))
        assert endpoint.calls == 1
    assert "Nothing was left to ask" in again.out
    assert Agent.from_yaml(shop).get_guideline("cancel").continuous is True


def test_the_offline_model_is_not_asked_what_never_changes(cli, shop):
    result = cli("prepare", shop)
    assert result.code == 1
    assert "name another model" in result.words
    assert Agent.from_yaml(shop).get_guideline("cancel").continuous is None


@pytest.mark.parametrize("kind", ["agent", "milestones", "suite"])
def test_a_schema_takes_the_shipped_file_and_refuses_an_unknown_key(cli, kind):
    schema = json.loads(cli("schema", kind).out)
    document = yaml.safe_load((DESK / f"{kind}.yaml").read_text())
    jsonschema.validate(document, schema)
    document = document if isinstance(document, dict) else {"milestones": document}
    with pytest.raises(jsonschema.ValidationError, match="profil"):
        jsonschema.validate({**document, "profil": "a misspelt key"}, schema)


def test_check_warns_of_a_tool_whose_model_changes_its_own_values(cli, shop):
    (shop.parent / "pricing.py").write_text(
        "from typing import Annotated\n"
        "from pydantic import AfterValidator\n"
        "def add_tax(amount: Annotated[float, AfterValidator(lambda value: value * 1.2)]) -> str:\n"
        "    'Add the tax.'\n    return 'done'\n"
        "def round_off(amount: Annotated[float, AfterValidator(round)], on: str = '2026-03-01') -> str:\n"
        "    'Round.'\n    return 'done'\n"
    )
    text = shop.read_text().replace("confirm: {", "confirm: {add_tax: customer, round_off: customer, ")
    shop.write_text(text.replace("[desk:get_order", "[pricing:add_tax, pricing:round_off, desk:get_order"))
    result = cli("check", shop)
    assert result.code == 0
    assert 'add_tax cannot be agreed to with values such as {"amount": 3.55}' in result.words
    assert "round_off cannot" not in result.words


def test_check_warns_of_a_last_line_that_names_no_yes(cli, shop):
    text = shop.read_text()
    for reply, is_clear in [
        ("Whatever you like.", False),
        ("Antworten Sie mit Ja.", True),
        ("Write: book it now.", True),
    ]:
        confirmation = f'{{by: customer, reply: "{reply}", yes: [book it now]}}'
        shop.write_text(text.replace("cancel_order: operator", f"cancel_order: {confirmation}"))
        result = cli("check", shop)
        assert result.code == 0
        assert (
            "confirm.cancel_order: `reply` names no answer that counts as a yes" in result.words
        ) != is_clear
