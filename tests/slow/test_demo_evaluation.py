"""The whole of the demo's evaluation: the kinds of users come out in their order, whatever the seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from arq_graph.apps.arms import arms
from arq_graph.cli.demo import demo_folder
from arq_graph.milestones.evaluation.runner import evaluate
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.reports.figures import Summary
from arq_graph.milestones.reports.report import Report
from tests.cli.conftest import Cli, cli, folder

__all__ = ["cli", "folder"]

pytestmark = pytest.mark.slow
ARMS = ["guided", "pre-act"]


def require_held(report: Report) -> None:
    """Every conversation was held to its end and measured."""
    assert report.broken == ()
    assert report.missing == 0
    assert [(one.id, one.error) for one in report.conversations if one.error] == []


def require_order(kinds: dict[str, Summary]) -> None:
    """The better a user knows what is asked, the further the desk gets."""
    helpful, perturbed, unhelpful = (kinds[kind] for kind in ("helpful", "perturbed", "unhelpful"))
    rates = [each.progress_rate.mean or 0.0 for each in (helpful, perturbed, unhelpful)]
    assert rates[0] > rates[1] > rates[2]
    goals = [each.goal_completion.count for each in (helpful, perturbed, unhelpful)]
    assert goals[0] >= goals[1] >= goals[2]


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_the_kinds_of_users_come_out_in_their_order(seed: int | None) -> None:
    suite = Suite.from_yaml(demo_folder() / "suite.yaml")
    suite = suite if seed is None else suite.replace(seed=seed)
    report = evaluate(suite, arms(ARMS), model="offline")
    require_held(report)
    for kinds in report.summary.arms_by_user.values():
        require_order(dict(kinds))


def test_the_demo_ends_with_it_and_the_conversation_held_is_still_explained(cli: Cli) -> None:
    done = cli("demo")
    assert done.code == 0
    assert "15 simulated customers" in done.out
    assert Path(".arq_graph/demo.html").is_file()
    explained = cli("explain")
    assert "Thanks, that is all. Goodbye!" in explained.out
    assert "turn 6" in explained.out
    assert cli("demo").code == 0  # the page of the first is replaced
