"""`arq-graph run`: conversations from files; `--strategy` and `--milestones`, as `chat` has them, too."""

import json
from pathlib import Path

import pytest

from tests.cli.shop import journal


def test_each_turn_is_one_json_line(served, shop):
    Path("talk.txt").write_text("Where is B-1?\n\nWhere is my bike?\nWhere is B-0?\n")
    result = served("run", shop, "-c", "talk.txt")
    assert result.code == 0
    first, second, third = result.lines
    assert first["customer"] == "Where is B-1?"
    assert first["reply"].startswith("You said: Where is B-1?")
    assert first["active"] == first["followed"] == ["look-up", "polite"]
    (call,) = first["tool_calls"]
    assert (call["tool"], call["arguments"], call["status"]) == ("get_order", {"order_id": "B-1"}, "success")
    assert json.loads(call["result"])["status"] == "in the workshop"
    assert first["calls"] == sum(module["calls"] for module in first["usage"].values()) > 2
    assert set(first["usage"]) == {"matcher", "tools", "message"}
    assert [(decision["kind"], decision["argument"]) for decision in second["tool_decisions"]] == [
        ("missing", "order_id")
    ]
    assert second["tool_calls"] == []
    (failed,) = third["tool_calls"]
    assert failed["status"] == "error"
    assert "there is no order B-0" in failed["result"]
    assert [line["turn"] for line in result.lines] == [1, 2, 3]


def test_the_run_stops_where_an_operator_is_needed_and_can_be_approved(served, shop):
    Path("talk.txt").write_text("Cancel B-1\nThanks\n")
    run = ["run", str(shop), "-c", "talk.txt", "--thread", "t 1"]
    waits = served(*run)
    assert waits.code == 4
    (line,) = waits.lines
    assert line["reply"] is None
    assert f"arq-graph chat {shop} --thread 't 1'" in line["what_to_do"]
    assert "--approve" in line["what_to_do"]
    assert line["tool_calls"][0]["status"] == "pending"
    assert journal(shop) == []
    result = served(*run, "--approve")
    assert result.code == 0
    assert [line["turn"] for line in result.lines] == [1, 2]
    assert result.lines[0]["tool_calls"][0]["status"] == "success"
    assert journal(shop) == ["cancel B-1"]
    again = served(*run)
    assert (again.code, again.out) == (0, "")
    assert "already holds" in again.err


def test_whatever_a_customer_writes_comes_out_as_a_line(cli, shop):
    Path("talk.json").write_text('["\\ud800 half a character", "\\u0000\\u001b[31m red", ""]')
    result = cli("run", shop, "-c", "talk.json")
    assert result.code == 0, result.err
    assert [bool(line["reply"]) for line in result.lines] == [True] * 3


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("talk.json", '["Hello?", {"role": "assistant", "content": "x"}, ["user", "Thanks!"]]'),
        ("talk.jsonl", '{"role": "user", "content": "Hello?"}\n\n{"role": "user", "content": "Thanks!"}\n'),
    ],
)
def test_a_conversation_is_read_in_every_form(cli, shop, name, text):
    Path(name).write_text(text)
    result = cli("run", shop, "-c", name)
    assert (result.code, [line["customer"] for line in result.lines]) == (0, ["Hello?", "Thanks!"])


def test_progress_stands_in_each_line_of_a_run(cli, shop):
    result = cli(
        "run", shop, "-c", "-", "--milestones", "milestones.yaml", stdin="Where is my order B-1?\nThank you!"
    )
    assert [line["progress"]["goal_completed"] for line in result.lines] == [False, True]
    # get_order, Thanked and End, each of weight 1: one of three, then all.
    assert [line["progress"]["progress_rate"] for line in result.lines] == [pytest.approx(1 / 3), 1]


def test_a_planned_conversation_is_shown_with_its_plan_and_explained(cli, shop):
    options = ("--strategy", "pre-act", "--milestones", "milestones.yaml")
    result = cli("chat", shop, *options, stdin="Where is my order B-1?\n")
    assert result.code == 0
    assert 'get_order(order_id="B-1") →' in result.out
    assert "plan  " in result.out
    assert "progress  33%" in result.out
    assert "next: Thanked" in result.out
    explained = cli("explain").out
    assert "Plan: version 2" in explained
    assert "33%" in explained


def test_a_spoken_conversation_is_shown_with_its_moves_and_explained(cli, shop):
    result = cli("chat", shop, "--strategy", "respact", stdin="Where is my order B-1?\n")
    assert result.code == 0
    assert 'get_order(order_id="B-1") →' in result.out
    assert "moves  " in result.out
    assert "called: get_order" in result.out
    assert "--strategy respact" in result.words
    assert "Moves" in cli("explain").out
