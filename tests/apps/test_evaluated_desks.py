"""Desks that are not orders: a clinic, a library, a bike rental, each tried on simulated users without a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from arq_graph.apps.arms import arms
from arq_graph.milestones.evaluation.running import evaluate
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.reports.report import Report

DESKS = Path(__file__).with_name("evaluated_desks")
DOMAINS = ("clinic", "library", "bikes")


def suite_of(name: str) -> Suite:
    return Suite.from_yaml(DESKS / name / "suite.yaml")


def require_held(report: Report) -> None:
    """Every conversation was held to its end and measured."""
    assert report.broken == ()
    assert report.missing == 0
    assert [(one.id, one.error) for one in report.conversations if one.error] == []
    assert {one.ended for one in report.conversations} <= {"user", "turns"}


@pytest.fixture(scope="module", params=DOMAINS)
def report(request: pytest.FixtureRequest) -> Report:
    return evaluate(suite_of(request.param), arms(["guided"]), model="offline")


def test_every_conversation_comes_to_an_end(report: Report) -> None:
    require_held(report)
    assert len(report.conversations) == 12


def test_a_helpful_customer_is_served(report: Report) -> None:
    helpful = [one for one in report.conversations if one.user == "helpful"]
    assert any(one.goal_completed for one in helpful)
    # What was reached rests on calls: somebody's wish was done, not only spoken of.
    assert any(one.goal_completed and one.calls > len(one.wasted_calls) for one in helpful)


def test_nobody_who_knows_less_gets_further(report: Report) -> None:
    kinds = report.summary.arms_by_user["guided"]
    helpful, perturbed = (kinds[kind].progress_rate.mean for kind in ("helpful", "perturbed"))
    assert helpful is not None
    assert perturbed is not None
    assert helpful >= perturbed


def test_no_conversation_sees_what_another_has_changed() -> None:
    suite = suite_of("clinic")
    suite = replace(suite, scenarios=(suite.scenario("cancel it (helpful)"),))
    report = evaluate(suite, arms(["guided"]), model="offline", runs=3)
    assert [one.goal_completed for one in report.conversations] == [True] * 3
