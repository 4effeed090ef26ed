"""`arq-graph demo`: the first thing that somebody runs."""

import sys
from pathlib import Path

import pytest

from arq_graph import OfflineChatModel
from tests.cli.shop import make_endpoint_handler, options
from tests.reasoning.endpoint import Endpoint

ALONE = "--no-evaluation"
KINDS = ("helpful", "perturbed", "unhelpful")


def test_without_a_key_a_conversation_is_run_and_can_be_explained(cli):
    result = cli("demo", ALONE)
    assert result.code == 0
    assert result.err.count("the offline model answers") == 1
    assert result.out.count("Customer") >= 5
    assert result.out.count("   Agent") == result.out.count("Customer")
    assert 'get_order_details(order_id="ORD-1002") →' in result.out
    assert "order_id missing" in result.out
    assert "100% goal completed" in result.out
    assert "arq-graph explain" in result.out
    assert Path(".arq_graph/.gitignore").read_text() == "*\n"  # threads are kept out of repositories


@pytest.mark.slow
def test_it_stays_within_the_terminal(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "24")
    result = cli("demo", ALONE)
    text = [line for line in result.out.splitlines() if not line.startswith("  arq-graph")]
    assert max(len(line) for line in text) <= 24
    for word in ("plain-words", "Northwind", "ORD-1002"):
        assert word in "".join("".join(text).split()), word


def test_without_the_sqlite_package_it_says_what_to_install(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "langgraph.checkpoint.sqlite", None)
    result = cli("demo", ALONE)
    assert result.code == 1
    assert 'pip install "arq_graph[cli]"' in result.words


@pytest.mark.slow
def test_a_model_that_costs_is_only_evaluated_on_request(cli):
    with Endpoint(make_endpoint_handler(OfflineChatModel())) as endpoint:
        result = cli("demo", *options(endpoint))
    assert "--evaluation runs them" in result.words
    assert not Path(".arq_graph/demo.html").exists()


@pytest.mark.slow
def test_it_ends_with_an_evaluation_by_arm_and_kind_of_user_and_a_page(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = cli("demo")
    assert result.code == 0
    assert "15 simulated customers" in result.out
    row_starts = tuple(f"{kind}  " for kind in (*KINDS, "all"))
    rows = [line for line in result.out.splitlines() if line.startswith(row_starts)]
    assert [row.split()[0] for row in rows] == [*KINDS, "all"]
    assert all(row.count("[") == row.count("]") == 2 for row in rows)  # no cell of them breaks
    assert "I would like to talk to a human" in Path(".arq_graph/demo.html").read_text(encoding="utf-8")
