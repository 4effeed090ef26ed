"""The demo's whole evaluation: the kinds of users come out in their order, whatever the seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from arq_graph import arms
from arq_graph.milestones import Suite, evaluate

pytestmark = pytest.mark.slow
SUITE = Path(__file__).parents[2] / "examples" / "order_desk" / "suite.yaml"


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_the_better_a_user_knows_what_is_asked_the_further_the_desk_gets(seed: int | None) -> None:
    suite = Suite.from_yaml(SUITE)
    suite = suite if seed is None else suite.replace(seed=seed)
    report = evaluate(suite, arms(["guided", "pre-act"]), model="offline")
    assert (report.broken, report.missing) == ((), 0)
    assert [(one.id, one.error) for one in report.conversations if one.error] == []
    for kinds in report.summary.arms_by_user.values():
        helpful, perturbed, unhelpful = (kinds[kind] for kind in ("helpful", "perturbed", "unhelpful"))
        rates = [each.progress_rate.mean or 0.0 for each in (helpful, perturbed, unhelpful)]
        assert rates[0] > rates[1] > rates[2]
        goals = [
            each.goal_reached.count if each.goal_reached else 0 for each in (helpful, perturbed, unhelpful)
        ]
        assert goals[0] >= goals[1] >= goals[2]
        assert goals[0] > 0
