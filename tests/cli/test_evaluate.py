"""`arq-graph evaluate`: what it prints, keeps and writes, and what it says of what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from arq_graph.milestones.reports.report import read_report
from tests.cli.evaluation_files import write_suite

OFFLINE = ["--model", "offline"]


def test_two_arms_are_tried_and_compared(cli, folder):
    write_suite(folder)
    done = cli(
        "evaluate",
        "suite.yaml",
        "--arms",
        "guided:direct,desk:echo",
        "--runs",
        "2",
        *OFFLINE,
        "--json",
        "out.json",
    )
    assert done.code == 0
    assert "guided:direct, helpful" in done.out
    assert "seconds a turn" in done.out
    assert "guided:direct, desk:echo" in done.words
    assert "suite.results.jsonl" in done.err
    assert "\x1b[31m" not in done.out
    report = read_report(folder / "out.json")
    assert len(report.conversations) == 8
    cells = report.summary.arms_by_user
    assert cells["guided:direct"]["helpful"].goal_completion.rate == 1
    assert cells["desk:echo"]["helpful"].goal_completion.rate == 0
    assert "customer's goal goal completion" in done.words
    assert "guided:direct 4 2 of 4, 50%" in done.words
    assert cells["guided:direct"]["helpful"].goal_reached.count == 2
    assert cells["guided:direct"]["unhelpful"].goal_completion.rate == 0
    assert len((folder / "suite.results.jsonl").read_text().splitlines()) == 1 + 8


def test_what_is_there_is_not_overwritten_and_gone_on_with_when_asked(cli, folder):
    write_suite(folder)
    assert cli("evaluate", "suite.yaml", "--arms", "desk:echo", *OFFLINE).code == 0
    before = (folder / "suite.results.jsonl").read_bytes()
    refused = cli("evaluate", "suite.yaml", "--arms", "desk:echo", *OFFLINE)
    assert refused.code == 1
    assert "--resume" in refused.err
    again = cli("evaluate", "suite.yaml", "--arms", "desk:echo", "--runs", "2", *OFFLINE, "--resume")
    assert again.code == 0
    after = (folder / "suite.results.jsonl").read_bytes()
    assert after.startswith(before)
    assert len(after.splitlines()) == 1 + 4


def test_what_is_wrong_with_a_scenario_is_named_and_the_others_are_run(cli, folder):
    write_suite(folder, broken=True)
    done = cli("evaluate", "suite.yaml", "--arms", "desk:kaputt,desk:echo", *OFFLINE, "--json", "out.json")
    assert done.code == 1
    assert "has a `world` that names the module 'nowhere'" in done.words
    assert "has the goal 'Delivered', which is no milestone of" in done.words
    assert "2 conversations ended in an error" in done.words
    assert "RuntimeError: kaputt" in done.words
    report = read_report(folder / "out.json")
    assert [one.scenario for one in report.broken] == ["no module", "no milestone"]
    assert [one.ended for one in report.conversations if one.arm == "desk:echo"] == ["user"] * 2


def test_a_page_shows_what_was_said(cli, folder):
    write_suite(folder)
    done = cli("evaluate", "suite.yaml", "--arms", "guided", *OFFLINE, "--html", "out.html")
    assert done.code == 0
    page = (folder / "out.html").read_text()
    assert "Where is my order?" in page
    assert "at the warehouse" in page
    assert '"arm": "guided"' in page or '"arm":"guided"' in page


def test_results_can_be_scored_again(cli, folder):
    write_suite(folder)
    cli("evaluate", "suite.yaml", "--arms", "guided", *OFFLINE, "--json", "first.json")
    done = cli("score", "suite.results.jsonl", "--milestones", "milestones.yaml", "--json", "again.json")
    assert done.code == 0
    first, again = read_report(folder / "first.json"), read_report(folder / "again.json")
    rates = {one.id: one.progress_rate for one in first.conversations}
    assert {one.id: one.progress_rate for one in again.conversations} == rates
    assert {one.arm for one in again.conversations} == {"guided"}


def test_a_model_out_of_reach_has_an_exit_code_of_its_own_and_a_way_on(cli, folder):
    write_suite(folder)
    done = cli("evaluate", "suite.yaml", "--arms", "desk:unreached", "--runs", "3", *OFFLINE)
    assert done.code == 3
    assert "out of reach" in done.words
    assert "--resume" in done.words


def test_one_scenario_alone_is_run_by_its_name(cli, folder):
    write_suite(folder, broken=True)
    done = cli("evaluate", "suite.yaml", "--arms", "desk:echo", *OFFLINE, "--scenario", "order (helpful)")
    assert done.code == 0
    assert "1 conversation\n" in done.out
    done = cli("evaluate", "suite.yaml", "--arms", "desk:echo", *OFFLINE, "--scenario", "no module")
    assert done.code == 1
    assert "nowhere" in done.err
    assert "there is no scenario 'x'" in cli("evaluate", "suite.yaml", *OFFLINE, "--scenario", "x").words


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--arms", "guidde"], "did you mean `guided`"),
        (["--arms", "nowhere:make"], "names the module 'nowhere'"),
        (["--arms", "guided,guided"], "none of them twice"),
        (["--results", "suite.yaml"], "must be different files"),
        (["--json", "a.json", "--html", "a.json"], "must be different files"),
        (["--html", "no/where.html"], "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_held(cli, folder, options, said):
    write_suite(folder)
    done = cli("evaluate", "suite.yaml", *OFFLINE, *options)
    assert done.code == 1
    assert said in done.words
    assert not (folder / "suite.results.jsonl").exists()


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


def test_each_arm_that_failed_is_named_with_what_it_was_most_often(cli, folder, mine):
    arms = ["mine:fails", "mine:hostile", "mine:says"]
    done = evaluate(cli, "--arms", ",".join(arms), "--runs", "2")
    assert done.code == 1
    assert "8 conversations ended in an error" in done.words
    shown = done.out.splitlines()
    assert any(line.startswith("mine:fails: 4: ValueError: no stock") for line in shown)
    assert any(line.startswith("mine:hostile: 4: ValueError: \\x1b[2J[bold]gone") for line in shown)
    assert not any(line.startswith("mine:says: ") for line in shown)
    assert "\x1b" not in done.out


MANY = ["suite.yaml", "--arms", "guided", "--runs", "4", "--model", "offline"]


def test_going_on_takes_a_higher_ceiling_and_that_is_said(cli, folder):
    write_suite(folder)
    first = cli("evaluate", *MANY, "--max-calls", "10")
    same = cli("evaluate", *MANY, "--max-calls", "10", "--resume")
    for stopped in (first, same):
        assert stopped.code == 0
        assert "--resume and a higher --max-calls goes on from there" in stopped.words
    some = cli("evaluate", *MANY, "--max-calls", "45", "--resume", "--concurrency", "1")
    assert some.code == 0
    assert not some.out.startswith("0 ")
    assert "a higher --max-calls" in some.words
