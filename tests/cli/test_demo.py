"""`arq-graph demo`: the first thing that somebody runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli


def test_without_a_key_a_conversation_is_held_and_can_be_explained(cli: Cli) -> None:
    done = cli("demo")
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


def test_no_key_is_spoken_of_when_a_model_is_chosen(cli: Cli) -> None:
    assert "key" not in cli("demo", "--model", "offline").err


@pytest.mark.parametrize("mode", ["cot", "direct"])
def test_it_can_be_held_in_every_mode(cli: Cli, mode: str) -> None:
    assert cli("demo", "--mode", mode).code == 0
    assert f"mode {mode}" in cli("explain").out


def test_each_demo_is_a_thread_of_its_own(cli: Cli) -> None:
    first, second = cli("demo").out, cli("demo").out
    assert first.splitlines()[0] != second.splitlines()[0]
    assert " 1 " in second


@pytest.mark.parametrize("columns", ["24", "40", "200"])
def test_it_stays_within_the_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    done = cli("demo")
    commands = ("arq-graph", "  arq-graph")
    text = [line for line in done.out.splitlines() if not line.startswith(commands)]
    assert max(len(line) for line in text) <= int(columns)
    for word in ("plain-words", "Northwind", "ORD-1002"):
        assert word in "".join("".join(text).split()), word


def test_without_colour_there_are_no_escape_codes(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in cli("demo").out


def test_threads_are_kept_out_of_repositories(cli: Cli) -> None:
    cli("demo")
    assert Path(".arq_graph/threads.sqlite").exists()
    assert Path(".arq_graph/.gitignore").read_text() == "*\n"


def test_threads_are_kept_where_one_says(cli: Cli) -> None:
    cli("demo", "--db", "elsewhere/mine.sqlite")
    assert not Path(".arq_graph").exists()
    assert cli("explain", "--db", "elsewhere/mine.sqlite").code == 0


def test_without_the_sqlite_package_it_is_held_in_memory(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langgraph.checkpoint.sqlite", None)
    done = cli("demo")
    assert done.code == 0
    assert 'pip install "arq_graph[sqlite]"' in done.words
    assert "arq-graph explain" not in done.out
    assert cli("demo", "--db", "mine.sqlite").code == 1  # what cannot be kept is not pretended to be
