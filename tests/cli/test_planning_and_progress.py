"""`--strategy` and `--milestones`: an agent that plans, and how far its conversation gets, on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli

STONES = """\
milestones:
- {name: Start, type: NFC}
- {name: get_order, type: FC}
- {name: Thanked, type: NFC, check: {said_by: user, pattern: "(?i)thank"}, dependencies: [get_order]}
- {name: End, type: NFC, dependencies: [Thanked]}
"""


@pytest.mark.parametrize("planning", ["pre-act", "react"])
def test_a_planned_conversation_is_shown_with_its_plan_and_explained(
    cli: Cli, shop: Path, planning: str
) -> None:
    Path("stones.yaml").write_text(STONES)
    options = ("--strategy", planning, "--milestones", "stones.yaml")
    done = cli("chat", shop, *options, stdin="Where is my order B-1?\n")
    assert done.code == 0
    assert 'get_order(order_id="B-1") →' in done.out
    assert "plan  " in done.out
    assert "progress  33%" in done.out
    assert "next: Thanked" in done.out
    explained = cli("explain").out
    assert "Plan: version 2" in explained
    assert "33%" in explained


def test_a_spoken_conversation_is_shown_with_its_moves_and_explained(cli: Cli, shop: Path) -> None:
    done = cli("chat", shop, "--strategy", "respact", stdin="Where is my order B-1?\n")
    assert done.code == 0
    assert 'get_order(order_id="B-1") →' in done.out
    assert "moves  " in done.out
    assert "called: get_order" in done.out
    assert "--strategy", "respact" in done.words
    assert "Moves" in cli("explain").out
    (explained,) = cli("explain", "--json").lines
    assert [move["kind"] for move in explained["moves"]][-1] == "speak"


def test_progress_stands_in_each_line_of_a_run(cli: Cli, shop: Path) -> None:
    Path("stones.yaml").write_text(STONES)
    Path("talk.txt").write_text("Where is my order B-1?\n\nThank you!\n")
    done = cli("run", shop, "-c", "talk.txt", "--milestones", "stones.yaml")
    assert [line["progress"]["goal_completed"] for line in done.lines] == [False, True]
    # get_order, Thanked and End, each of weight 1: one of three, then all.
    assert [line["progress"]["progress_rate"] for line in done.lines] == [pytest.approx(1 / 3), 1]
