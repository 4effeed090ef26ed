"""`arq-graph evaluate --resume`: what it goes on with, and what it does not; and which arms failed how."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.evaluation_files import write_suite

OFFLINE = ["--model", "offline"]
MINE = """
class Says:
    def invoke(self, input, config=None):
        return "It is at the warehouse."


class Fails:
    def __init__(self, *words):
        self.words = words

    def invoke(self, input, config=None):
        raise ValueError(self.words[len(input["messages"][-1].text) % len(self.words)])


says, fails, hostile = Says(), Fails("no stock"), Fails("\\x1b[2J[bold]gone\\nmore")
"""
OTHER = (
    MINE
    + "others = [Fails(f'reason {n}') for n in range(8)]\n"
    + "".join(f"other{n} = others[{n}]\n" for n in range(8))
)


def lines(folder: Path) -> int:
    """How many conversations are kept; a line that says what they depend on is none."""
    kept = (folder / "suite.results.jsonl").read_text().splitlines()
    return sum(not line.startswith('{"arq_graph": "') for line in kept)


def evaluate(cli: Any, *more: str) -> Any:
    return cli("evaluate", "suite.yaml", *OFFLINE, *more)


@pytest.fixture
def mine(folder: Path) -> Path:
    write_suite(folder)
    file = folder / "mine.py"
    file.write_text(MINE)
    return file


def test_an_arm_whose_code_changed_is_not_gone_on_with(cli, folder, mine):
    assert evaluate(cli, "--arms", "mine:says,desk:echo").code == 0
    mine.write_text(MINE.replace("warehouse", "harbour"))
    done = evaluate(cli, "--arms", "mine:says,desk:echo", "--runs", "2", "--resume")
    assert done.code == 1
    assert "the code of the arm 'mine:says'" in done.words
    assert "name another file" in done.words
    assert lines(folder) == 4


def test_the_results_of_another_suite_are_refused_and_left_alone(cli, folder, mine):
    assert evaluate(cli, "--arms", "mine:says").code == 0
    before = (folder / "suite.results.jsonl").read_bytes()
    file = folder / "suite.yaml"
    file.write_text(re.sub(r"(?m)^name: .*$", "name: another", file.read_text()))
    done = evaluate(cli, "--arms", "mine:says", "--resume")
    assert done.code == 1
    assert "now 'another') changed since" in done.words
    assert (folder / "suite.results.jsonl").read_bytes() == before


def test_each_arm_that_failed_is_named_with_what_it_was_most_often(cli, folder, mine):
    mine.write_text(OTHER)
    arms = ["mine:fails", "mine:hostile", "mine:says"]
    done = evaluate(cli, "--arms", ",".join(arms), "--runs", "2")
    assert done.code == 1
    assert "8 conversations ended in an error" in done.words
    shown = done.out.splitlines()
    assert any(line.startswith("mine:fails: 4: ValueError: no stock") for line in shown)
    assert any(line.startswith("mine:hostile: 4: ValueError: \\x1b[2J[bold]gone") for line in shown)
    assert not any(line.startswith("mine:says: ") for line in shown)
    assert "\x1b" not in done.out
