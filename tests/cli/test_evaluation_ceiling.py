"""`arq-graph evaluate` where a ceiling is reached: the report is written, and what it says leads on."""

from __future__ import annotations

import pytest

from tests.cli.evaluation_files import write_suite

MANY = ["suite.yaml", "--arms", "guided", "--runs", "4", "--model", "offline"]


def test_going_on_takes_a_higher_ceiling_and_that_is_said(cli, folder):
    write_suite(folder)
    first = cli("evaluate", *MANY, "--max-calls", "10")
    same = cli("evaluate", *MANY, "--max-calls", "10", "--resume")
    for stopped in (first, same):
        assert stopped.code == 0
        assert "--resume and a higher --max-calls goes on from there" in stopped.words
        assert "those that were cut off begin anew" in stopped.words
        assert "--concurrency 1" in stopped.words
    some = cli("evaluate", *MANY, "--max-calls", "45", "--resume", "--concurrency", "1")
    assert some.code == 0
    assert not some.out.startswith("0 ")
    assert "begin anew" not in some.words
    assert "a higher --max-calls" in some.words


@pytest.mark.parametrize("command", ["evaluate", "simulate"])
def test_an_arm_of_the_wrong_shape_is_told_before_anything_is_held(cli, folder, command):
    write_suite(folder)
    with (folder / "desk.py").open("a", encoding="utf-8") as module:
        module.write("\n\ndef plain(messages):\n    return messages\n")
    option = "--arms" if command == "evaluate" else "--arm"
    done = cli(command, "suite.yaml", option, "desk:plain", "--model", "offline")
    assert done.code == 1
    assert "cannot be called with (scenario, agent, model): it takes (messages)" in done.words
    assert not (folder / "suite.results.jsonl").exists()
