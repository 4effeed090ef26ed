"""`arq-graph check`, `graph` and `prepare`: an agent without a conversation."""

from __future__ import annotations

from pathlib import Path

from arq_graph import Agent
from tests.cli.conftest import Cli
from tests.cli.shop import options
from tests.reasoning.endpoint import Endpoint, Reply, Request, ok


def test_check_sums_up_guidelines_tools_and_what_is_unprepared(cli: Cli, shop: Path) -> None:
    done = cli("check", shop)
    assert done.code == 0
    assert "Guidelines (3)" in done.out
    assert "when the customer wants to cancel an order: cancel the order" in done.words
    assert "calls cancel_order" in done.out
    assert "Tools (2)" in done.out
    assert "takes order_id: string, reason: string, optional" in done.out
    assert "asks the operator first" in done.out
    assert "2 of 3 guidelines are unprepared" in done.words
    assert "can be run" in done.out


def test_check_names_file_and_line_of_a_mistake(cli: Cli, shop: Path) -> None:
    shop.write_text(shop.read_text().replace("desk:get_order", "desk:get_ordre"))
    done = cli("check", shop)
    assert done.code == 1
    assert f"{shop}:8:" in done.err.replace("\n", "")
    assert "get_order" in done.err
    assert done.out == ""


def test_check_warns_of_a_tool_that_this_program_cannot_run(cli: Cli, shop: Path) -> None:
    tools = shop.with_name("desk.py")
    tools.write_text(tools.read_text().replace("def get_order", "async def get_order"))
    done = cli("check", shop)
    assert done.code == 0
    assert "'get_order' is async only" in done.words


def test_graph_prints_mermaid_and_nothing_else(cli: Cli, shop: Path) -> None:
    done = cli("graph", shop)
    assert done.code == 0
    assert done.out.startswith("---\nconfig:")
    assert "match --> call_tools" in done.out
    assert "approve" in done.out
    assert done.err == ""


def settled(continuous: bool) -> dict[str, object]:
    reasons = {"continuous_rationale": "…", "sensitive_to_tools_rationale": "…"}
    return {**reasons, "continuous": continuous, "sensitive_to_tools": False}


def test_prepare_asks_once_and_keeps_the_answers_beside_the_file(cli: Cli, shop: Path) -> None:
    def answer(request: Request) -> Reply:
        assert request.schema is not None
        return ok({id: settled(id == "cancel") for id in request.schema["properties"]})

    with Endpoint(answer) as endpoint:
        done = cli("prepare", shop, *options(endpoint))
        assert done.code == 0
        assert "2 of 3 guidelines were asked about" in done.words
        assert "cancel  kept up" in done.out
        again = cli("prepare", shop, *options(endpoint))
        assert endpoint.calls == 1
    assert "Nothing was left to ask" in again.out
    assert Agent.from_yaml(shop).guideline("cancel").continuous is True


def test_prepare_with_the_offline_model_says_what_that_is_worth(cli: Cli, shop: Path) -> None:
    done = cli("prepare", shop)
    assert done.code == 0
    assert "look the answers over" in done.words
