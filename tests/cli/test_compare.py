"""`arq-graph compare`: which of two reports is better, for people and for programs."""

import re
from pathlib import Path

import pytest

from arq_graph.milestones import score_transcripts, write_report
from tests.milestones.reported import make_chain, make_talk, report_on


def write_goals(file: Path, *goals: bool, **more: object) -> Path:
    """A report over conversations 0, 1, … of which the goal was completed or not."""
    write_report(file, report_on(*(make_talk(str(n), goal, **more) for n, goal in enumerate(goals))))
    return file


@pytest.fixture
def before(folder: Path) -> Path:
    return write_goals(folder / "before.json", *[True] * 10 + [False] * 20)


@pytest.fixture
def after(folder: Path) -> Path:
    return write_goals(folder / "after.json", *[True] * 22 + [False] * 8)


def test_a_better_report_is_named_with_the_figures(cli, before, after):
    result = cli("compare", before.name, after.name)
    assert (result.code, result.err) == (0, "")
    assert "A 30 conversations before.json" in result.words
    # 12 pairs all one way: p = 2 / 2^12.
    assert re.search(r"all 33% 73% \+40 \[\+\d\d, \+\d\d\] <0.001 30 B", result.words)
    assert re.search(r"progress rate .* all 0\.56 0\.82 \+0\.27 \[[^]]*\] <0.001 30 B", result.words)
    assert "completed by both 10, by neither 8, by A alone 0, by B alone 12" in result.words
    [comparison] = cli("compare", after, before, "--json").lines
    assert comparison["overall"]["goal_completion"]["verdict"] == "a better"
    assert comparison["overall"]["goal_completion"]["p"] == 2 / 2**12


def test_reports_with_nothing_in_common_cannot_be_compared(cli, folder, before):
    result = cli("compare", before, write_goals(folder / "b.json", True, use_case="refund"))
    assert result.code == 1
    assert "there is nothing to compare" in result.words
    assert "0 pairs" in result.out


def test_reports_measured_on_other_milestones_are_named_before_the_tables(cli, folder, before):
    graph = make_chain("find", "pay")
    graph.name = "stricter"
    write_report("b.json", score_transcripts(graph, [make_talk(str(n)) for n in range(30)]).report())
    words = cli("compare", before, "b.json").words
    warning = "the two reports were not measured alike: A on 'milestones', B on 'stricter'."
    assert warning in words.partition("goal completion")[0]


def test_ci_can_be_stopped_by_a_worse_report(cli, folder, before):
    after = write_goals(folder / "after.json", *[True] * 25 + [False] * 5)
    assert cli("compare", before, after, "--fail-if-worse").code == 0
    worse = cli("compare", after, before, "--fail-if-worse")
    assert worse.code == 5
    assert "B is worse: goal completion" in worse.words
    assert cli("compare", before, before, "--fail-if-worse").code == 0
