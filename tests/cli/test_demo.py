"""`arq-graph demo`: the first thing that somebody runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from arq_graph import OfflineChatModel
from arq_graph.cli.demo import demo_folder, evaluate_demo, hold_demo, page_beside
from arq_graph.cli.dialogue import Setup
from arq_graph.cli.settings import OFFLINE, ModelChoice
from tests.cli.conftest import Cli

SUITE = demo_folder() / "suite.yaml"
ALONE = "--no-evaluation"


def test_without_a_key_a_conversation_is_held_and_can_be_explained(cli: Cli) -> None:
    done = cli("demo", ALONE)
    assert done.code == 0
    assert "offline model" in done.err
    assert done.out.count("Customer") >= 5
    assert done.out.count("   Agent") == done.out.count("Customer")
    assert 'get_order_details(order_id="ORD-1002") →' in done.out
    assert "order_id missing" in done.out
    assert "arq-graph explain" in done.out
    explained = cli("explain")
    assert explained.code == 0
    assert "Guidelines:" in explained.out


@pytest.mark.parametrize("columns", ["24", "40", "200"])
def test_it_stays_within_the_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    done = cli("demo", ALONE)
    commands = ("arq-graph", "  arq-graph")
    text = [line for line in done.out.splitlines() if not line.startswith(commands)]
    assert max(len(line) for line in text) <= int(columns)
    for word in ("plain-words", "Northwind", "ORD-1002"):
        assert word in "".join("".join(text).split()), word


def test_threads_are_kept_out_of_repositories(cli: Cli) -> None:
    cli("demo", ALONE)
    assert Path(".arq_graph/threads.sqlite").exists()
    assert Path(".arq_graph/.gitignore").read_text() == "*\n"


def test_without_the_sqlite_package_it_is_held_in_memory(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langgraph.checkpoint.sqlite", None)
    done = cli("demo", ALONE)
    assert done.code == 0
    assert 'pip install "arq_graph[sqlite]"' in done.words
    assert "arq-graph explain" not in done.out
    assert cli("demo", ALONE, "--db", "mine.sqlite").code == 1  # what cannot be kept is not pretended to be


class Paid(ModelChoice):
    """A model that is not the offline one, as far as the choice says."""

    def chat_model(self) -> OfflineChatModel:
        return OfflineChatModel()


def test_a_model_that_costs_is_not_asked_to_be_evaluated_unless_one_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hold_demo(Setup(demo_folder() / "agent.yaml", Paid("paid:model")))
    out = " ".join(capsys.readouterr().out.split())
    assert "--evaluation does it" in out
    assert not page_beside(None).exists()


@pytest.mark.parametrize("columns", ["24", "100"])
def test_the_evaluation_is_printed_by_arm_and_kind_and_written_as_a_page(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    page = page_beside(None)
    report = evaluate_demo(SUITE, ModelChoice(OFFLINE), page, scenarios=("a person",))
    lines = capsys.readouterr().out.splitlines()
    assert len(report.conversations) == 6
    assert {one.arm for one in report.conversations} == {"guided", "pre-act"}
    text = page.read_text(encoding="utf-8")
    assert "I would like to talk to a human" in text
    assert str(page) in "".join(lines)
    commands = ("  arq-graph", "  .arq_graph")
    assert max(len(line) for line in lines if not line.startswith(commands)) <= int(columns)
    if columns == "100":
        assert [line.split()[0] for line in lines if "of 1 " in line] == [
            *("helpful:", "perturbed:", "unhelpful:") * 2,
        ]
