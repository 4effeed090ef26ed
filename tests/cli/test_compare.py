"""`arq-graph compare`: which of two reports is better, for people and for programs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from arq_graph.milestones import write_report
from tests.milestones.reported import reported, talk


def written(file: Path, *goals: bool, **more: object) -> Path:
    """A report over conversations 0, 1, … of which the goal was completed or not."""
    write_report(file, reported(*(talk(str(n), goal, **more) for n, goal in enumerate(goals))))
    return file


@pytest.fixture
def before(folder: Path) -> Path:
    return written(folder / "before.json", *[True] * 10 + [False] * 20)


@pytest.fixture
def after(folder: Path) -> Path:
    return written(folder / "after.json", *[True] * 22 + [False] * 8)


def test_a_better_report_is_named_with_the_figures(cli, before, after):
    done = cli("compare", before.name, after.name)
    assert (done.code, done.err) == (0, "")
    assert "A 30 conversations before.json" in done.words
    # 12 pairs all one way: p = 2 / 2^12.
    assert re.search(r"all 33% 73% \+40 \[\+\d\d, \+\d\d\] <0.001 30 B", done.words)
    assert re.search(r"progress rate .* all 0\.56 0\.82 \+0\.27 \[[^]]*\] <0.001 30 B", done.words)
    assert "completed by both 10, by neither 8, by A alone 0, by B alone 12" in done.words
    [found] = cli("compare", after, before, "--json").lines
    assert found["overall"]["goal_completion"]["verdict"] == "a better"
    assert found["overall"]["goal_completion"]["p"] == 2 / 2**12


def test_reports_with_nothing_in_common_cannot_be_compared(cli, folder, before):
    done = cli("compare", before, written(folder / "b.json", True, use_case="refund"))
    assert done.code == 1
    assert "there is nothing to compare" in done.words
    assert "0 pairs" in done.out
