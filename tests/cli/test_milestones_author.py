"""`arq-graph milestones author`: a milestone file from a workflow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arq_graph.milestones import MilestoneGraph
from tests.cli.conftest import Cli
from tests.cli.shop import options
from tests.milestones.authored import REFUNDS, TOOLS, WORKFLOW
from tests.reasoning.endpoint import Endpoint, ok


@pytest.fixture
def given(folder: Path) -> list[str]:
    """The options that name a workflow and tools."""
    (folder / "workflow.txt").write_text(WORKFLOW)
    (folder / "tools.json").write_text(json.dumps(TOOLS))
    named = "--workflow workflow.txt --tools tools.json --out graph.yaml"
    return ["milestones", "author", *named.split()]


def test_a_graph_is_written_and_the_next_step_is_said(cli: Cli, given: list[str]) -> None:
    with Endpoint(lambda _: ok(REFUNDS)) as endpoint:
        done = cli(*given, *options(endpoint))
        asked = endpoint.requests[0].messages
    assert done.code == 0, done.err
    graph = MilestoneGraph.from_yaml(Path("graph.yaml"), check=False)
    assert graph.is_unreviewed
    assert graph.generated_by == endpoint.model_name
    assert graph.milestone("refund").requires == "all"
    assert "arq-graph milestones draw graph.yaml" in done.out
    assert WORKFLOW in asked[-1]["content"]


def test_a_file_that_is_there_is_kept(cli: Cli, given: list[str]) -> None:
    Path("graph.yaml").write_text("mine")
    done = cli(*given, "--model", "offline")
    assert done.code == 1
    assert "is there already" in done.words
    assert Path("graph.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--workflow", "nowhere.txt", "nowhere.txt cannot be read"),
        ("--workflow", "latin.txt", "not UTF-8"),
        ("--out", "nowhere/graph.yaml", "cannot be written"),
    ],
)
def test_what_cannot_be_used_is_named(cli: Cli, given: list[str], option: str, value: str, said: str) -> None:
    Path("latin.txt").write_bytes(b"caf\xe9")
    given[given.index(option) + 1] = value
    done = cli(*given, "--model", "offline")
    assert done.code == 1
    assert said in done.words
    assert not Path("graph.yaml").exists()
