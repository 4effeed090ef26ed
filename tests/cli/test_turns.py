"""`arq-graph turns`: single turns against recorded conversations."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shop import journal, options
from tests.reasoning.endpoint import Endpoint, Reply, Request, status, text, tool_call


def talk(id: str, number: str) -> dict[str, Any]:
    call = {"id": "1", "function": {"name": "get_order", "arguments": json.dumps({"order_id": number})}}
    tool = {"type": "function", "function": {"name": "get_order", "parameters": {"type": "object"}}}
    return {
        "id": id,
        "tools": [tool],
        "messages": [
            {"role": "user", "content": f"Where is {number}?"},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "in the workshop"},
            {"role": "assistant", "content": "It is in the workshop."},
        ],
    }


@pytest.fixture
def talks(folder: Path) -> Path:
    file = folder / "talks.jsonl"
    file.write_text("\n".join(json.dumps(talk(f"t{n}", f"B-{n}")) for n in (1, 2)))
    return file


def test_the_offline_model_shows_the_figures_with_their_n(cli, talks):
    result = cli("turns", talks)
    assert result.code == 0, result.err
    assert "4 steps of 2 conversations" in result.words
    assert "No model and no key is set" in result.words
    # It answers in words alone: 2 of 4 actions are right, and no call was predicted.
    assert "action recall 0.500 4 steps" in result.words
    assert "tool calls: precision - 0" in result.words
    assert "get_order → final answer 2" in result.words


def test_a_run_continues_where_it_stopped_and_asks_again_about_failed_steps(cli, talks):
    def answer_as_recorded(request: Request) -> Reply:
        """Answers every step but the second as it was recorded, and takes every order for B-1."""
        if endpoint.calls == 2:
            return status(400, "no")
        if request.messages[-1]["role"] == "tool":
            return text("It is in the workshop.")
        return tool_call("get_order", '{"order_id": "B-1"}')

    with Endpoint(answer_as_recorded) as endpoint:
        run = ["turns", str(talks), "--out", "r.jsonl", "--json", "--concurrency", "1", *options(endpoint)]
        first = cli(*run, "--limit", "3")
        assert (first.code, first.lines[0]["metrics"]["errors"]) == (1, 1)
        assert endpoint.calls == 3
        second = cli(*run)
        assert endpoint.calls == 5
    assert second.code == 0, second.err
    assert second.lines[0]["metrics"]["action_recall"] == {"count": 4, "n": 4, "rate": 1}
    assert "already held 2 steps" in second.words


def test_if_every_step_failed_the_model_gave_no_answer(cli, talks):
    with Endpoint(lambda _: status(401, "a wrong key")) as endpoint:
        result = cli("turns", talks, *options(endpoint))
    assert result.code == 3
    assert "every step ended in an error" in result.words
    assert "a wrong key" in result.words
    assert "2 get_order → error" in result.words


@pytest.mark.parametrize("confirmed", ["cancel_order: operator", "get_order: customer"])
def test_an_agent_is_evaluated_and_none_of_its_tools_runs(served, talks, shop, confirmed):
    shop.write_text(shop.read_text().replace("cancel_order: operator", confirmed))
    result = served("turns", talks, "--agent", shop, "--json", reply="It is in the workshop.")
    assert result.code == 0, result.err
    metrics = result.lines[0]["metrics"]
    assert metrics["action_recall"]["rate"] == metrics["parameter_match"]["rate"] == 1
    assert metrics["similarity"]["mean"] == 1
    assert journal(shop) == []
